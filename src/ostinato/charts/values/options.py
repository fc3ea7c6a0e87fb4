"""The options of a command line that give values, in Helm's order of precedence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ostinato.charts.chart import ChartError
from ostinato.charts.values.documents import Values, read_values
from ostinato.charts.values.set_flags import SetError, set_files, set_json, set_literal, set_strings, set_values


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """`--values` first, then `--set-json`, `--set`, `--set-string`, `--set-file` and `--set-literal`; the last wins."""

    files: Sequence[Path | str] = ()
    json: Sequence[str] = ()
    set: Sequence[str] = ()
    strings: Sequence[str] = ()
    from_files: Sequence[str] = ()
    literal: Sequence[str] = ()

    def values(self) -> Values:
        """Read and merge them. Raises ChartError."""
        made: Values = {}
        for place in self.files:
            made = merged(made, read_values(_read(place), str(place)))
        applied: list[tuple[str, Sequence[str], Any]] = [
            ("--set-json", self.json, set_json),
            ("--set", self.set, set_values),
            ("--set-string", self.strings, set_strings),
            ("--set-file", self.from_files, lambda text, into: set_files(text, into, _read_text)),
            ("--set-literal", self.literal, set_literal),
        ]
        for option, texts, apply in applied:
            for text in texts:
                try:
                    apply(text, made)
                except SetError as error:
                    raise ChartError(f"failed parsing {option} data: {error}") from None
        return made


def merged(base: Values, over: Values) -> Values:
    """Return maps merged; other values of `over` win, null included."""
    made = dict(base)
    for key, value in over.items():
        below = made.get(key)
        made[key] = merged(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return made


def _read(place: Path | str) -> bytes:
    try:
        return Path(place).read_bytes()
    except OSError as error:
        raise ChartError(f"{place}: {error.strerror or error}") from None


def _read_text(place: str) -> str:
    return _read(place).decode("utf-8", "surrogateescape")
