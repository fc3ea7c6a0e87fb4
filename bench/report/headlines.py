"""The few rows that the README shows, between its marks."""

from __future__ import annotations

import re

from bench.suite.printed import short
from bench.suite.results import Run
from bench.suite.table import ROWS, SECTIONS

CHOSEN = (
    "api-get",
    "api-list",
    "api-create",
    "api-create-pod",
    "api-apply",
    "api-memory",
    "etcd-create",
    "etcd-list",
    "plane-available",
    "plane-deleted",
    "plane-memory",
    "kopf-rate",
    "kopf-memory",
    "runtime-rate",
    "sync-time",
    "sync-official",
    "start-time",
    "suite-time",
)

_BLOCK = re.compile(r"(<!-- performance: [^\n]*-->\n).*?(<!-- performance -->)", re.DOTALL)


def with_headlines(readme: str, run: Run) -> str:
    """Return the README with the ratios of a run; rows without one are left out."""
    lines = ["| | beside | times better |", "|---|---|---|"]
    for key in CHOSEN:
        info, figure = ROWS[key], run.figure(key)
        if figure.ratio is not None:
            least = "more than " if figure.at_least else ""
            title = f"{SECTIONS[info.section].title}: {info.title}"
            mark = " ‡" if figure.origin.is_disturbed else ""
            lines.append(f"| {title} | {info.peer} | {least}{short(figure.ratio)}{mark} |")
    if any(line.endswith("‡ |") for line in lines):
        lines += ["", "‡ measured while other programs used the machine: an order of magnitude."]
    table = "\n".join(lines)
    return _BLOCK.sub(lambda block: f"{block[1]}{table}\n{block[2]}", readme)
