"""The results of a run: figures by row, their medians, ratios and spread; reading and writing them."""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec

from bench.plane import Measured
from bench.suite.table import LESS, ROWS, Row

RESULTS = Path(__file__).resolve().parents[1] / "results"
LATEST = RESULTS / "latest.json"
QUIET = 0.1  # cores that other programs may use; above, rows are marked
UNSTEADY = 1.5  # the largest ratio of the rounds over the smallest; above, a row is marked


class Origin(msgspec.Struct, frozen=True):
    """When and from which sources a figure was measured.

    - `others`: cores that other programs used meanwhile; None: not known.
    """

    date: str
    commit: str
    others: float | None = None

    @property
    def is_disturbed(self) -> bool:
        return self.others is not None and self.others > QUIET


class Figure(msgspec.Struct, kw_only=True):
    """What was measured for a row: one value per round, of each side.

    - `at_least`: the peer was stopped before it was done, so that the ratio is a lower bound.
    - `peer_from`: empty if the peer was measured in this run, otherwise when.
    - `problem`: the reason for missing values.
    """

    row: str
    ours: list[float] = []
    peer: list[float] = []
    at_least: bool = False
    peer_from: str = ""
    problem: str = ""
    origin: Origin = Origin("", "")

    @property
    def info(self) -> Row:
        return ROWS[self.row]

    @property
    def ratios(self) -> list[float]:
        """How many times better than the peer: of each round if both have as many, otherwise of the medians."""
        pairs = list(zip(self.ours, self.peer, strict=False))
        if len(self.ours) != len(self.peer) and pairs:
            pairs = [(statistics.median(self.ours), statistics.median(self.peer))]
        if self.info.better == LESS:
            pairs = [(peer, ours) for ours, peer in pairs]
        return [more / less for more, less in pairs if less]

    @property
    def ratio(self) -> float | None:
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def range(self) -> tuple[float, float] | None:
        return (min(self.ratios), max(self.ratios)) if len(self.ratios) > 1 else None

    @property
    def is_unsteady(self) -> bool:
        return self.range is not None and self.range[1] > self.range[0] * UNSTEADY

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None if there is no goal or no ratio."""
        if self.info.most and self.ours:
            return statistics.median(self.ours) <= self.info.most
        if not self.info.goal or self.ratio is None:
            return None
        return self.ratio >= self.info.goal


class Machine(msgspec.Struct, kw_only=True):
    processor: str = ""
    cores: int = 0
    memory: float = 0.0  # GB
    system: str = ""
    load: float = 0.0  # average of a minute, before the run


class Run(msgspec.Struct, kw_only=True):
    """A run, as it is stored."""

    origin: Origin
    machine: Machine
    versions: dict[str, str] = {}
    seconds: float = 0.0
    quick: bool = False
    figures: list[Figure] = []
    growth: list[Measured] = []  # of the plane, by contender and number of Pods
    sections: dict[str, float] = {}  # seconds that each took

    def figure(self, row: str) -> Figure:
        return next((each for each in self.figures if each.row == row), Figure(row=row, problem="not measured"))

    def merged(self, other: Run) -> Run:
        """Return this run with the figures of another where it has some; none of a quick run remain beside others."""
        if self.quick and not other.quick:
            return other
        newer = {each.row: each for each in other.figures}
        figures = [newer.pop(each.row, each) for each in self.figures] + list(newer.values())
        places = {(each.contender, each.pods): each for each in (*self.growth, *other.growth)}
        return msgspec.structs.replace(
            self,
            figures=figures,
            growth=list(places.values()),
            versions={**self.versions, **other.versions},
            sections={**self.sections, **other.sections},
        )


def load(file: Path = LATEST) -> Run:
    """Return a stored run; figures of rows that no longer exist are left out."""
    run = msgspec.json.decode(file.read_bytes(), type=Run)
    run.figures = [each for each in run.figures if each.row in ROWS]
    return run


def save(run: Run, file: Path = LATEST) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(rounded(run)), indent=1) + b"\n")


def rounded(value: msgspec.Struct) -> object:
    """Return it as plain values with four significant digits, which is more than the measurements have."""
    return _rounded(msgspec.to_builtins(value))


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value
