"""Prometheus text format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from ostinato.metrics.families import Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def text(families: Iterable[Family], names: Collection[str] = ()) -> str:
    """Return the families in the text format, in the given order. `names`: those that are wanted. Defaults to all."""
    wanted = (family for family in families if not names or family.name in names)
    return "".join([f"{line}\n" for family in wanted for line in _lines(family)])


def _lines(family: Family) -> Iterator[str]:
    help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {family.name} {help_text}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in family.samples:
        line = f"{sample.name}{_labels(sample.labels)} {number(sample.value)}"
        yield line if sample.timestamp is None else f"{line} {sample.timestamp}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    # Sorted by name, as Prometheus' Go library prints them; `le` is last.
    ordered = sorted(labels.items(), key=lambda label: (label[0] == "le", label[0]))
    return "{" + ",".join([f'{name}="{_escaped(value)}"' for name, value in ordered]) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number(value: float) -> str:
    """Return the shortest text that parses to the same number; integers without a decimal point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value).removesuffix(".0")
