"""What a section is given: its options, its peers, and where its figures go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from bench import peers
from bench.plane import Measured
from bench.suite.results import Figure
from bench.suite.table import rows_of


class Options(msgspec.Struct, kw_only=True):
    """Options of the run that sections know."""

    rows: list[str]  # the keys to measure
    quick: bool = False
    rounds: int = 5
    real: str = ""
    peer_cache: bool = False


class Report(msgspec.Struct, kw_only=True):
    """A line of a section's output: a figure, a run of the plane, or versions."""

    figure: Figure | None = None
    plane: Measured | None = None
    versions: dict[str, str] = {}


class Context:
    """The run of one section."""

    def __init__(self, section: str, options: Options, directory: Path, output: Path) -> None:
        self.options = options
        self.directory = directory
        self._section = section
        self._output = output

    @property
    def quick(self) -> bool:
        return self.options.quick

    @property
    def rounds(self) -> int:
        return 1 if self.quick else self.options.rounds

    def wants(self, *keys: str) -> bool:
        return any(key in self.options.rows for key in keys)

    def wanted(self) -> list[str]:
        return [row.key for row in rows_of(self._section) if row.key in self.options.rows]

    def kubernetes(self) -> peers.Command:
        """Return the command that starts Kubernetes. Raises peers.Missing."""
        return peers.kubernetes(self.options.real or None)

    def go(self) -> str:
        found = shutil.which("go")
        if found is None:
            raise peers.Missing("no `go` on PATH")
        return found

    def figure(self, figure: Figure) -> None:
        if figure.row in self.options.rows:
            self._write(Report(figure=figure))

    def values(self, row: str, ours: Iterable[float], peer: Iterable[float] = (), problem: str = "") -> None:
        """Report the values of a row, one per round."""
        self.figure(Figure(row=row, ours=list(ours), peer=list(peer), problem=problem))

    def plane(self, measured: Measured) -> None:
        self._write(Report(plane=measured))

    def versions(self, **found: str) -> None:
        self._write(Report(versions={name.replace("_", " "): each for name, each in found.items()}))

    def place(self, name: str) -> Path:
        """Return a new directory."""
        made = self.directory / name
        made.mkdir()
        return made

    def _write(self, report: Report) -> None:
        with self._output.open("ab") as output:
            output.write(msgspec.json.encode(report) + b"\n")


Measure = Callable[[Context], None]
