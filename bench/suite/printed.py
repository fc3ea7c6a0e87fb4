"""The table as text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.suite.results import Figure, Run
from bench.suite.table import SECTIONS


def table(run: Run) -> str:
    """Return all rows of a run, by section."""
    lines: list[str] = []
    for section in SECTIONS.values():
        figures = [each for each in run.figures if each.info.section == section.name]
        if figures:
            lines += ["", section.title, *map(_line, figures)]
    lines.append(f"\n{len(run.figures)} rows in {run.seconds / 60:.1f} minutes; * varies much between rounds")
    return "\n".join(lines)


def _line(figure: Figure) -> str:
    info = figure.info
    ours, peer = amount(figure.ours, info.unit), amount(figure.peer, info.unit)
    goal = f"goal {info.goal:g}" if info.goal else f"most {info.most:g}" if info.most else ""
    missed = "  missed" if figure.reached is False else ""
    beside = f" beside {info.peer}" if figure.peer else ""
    problem = f"  ({figure.problem})" if figure.problem else ""
    line = f"  {info.key:<28}{info.title:<42}{ours:>16}{peer:>18}{ratio_text(figure):>22}  {goal:<9}{missed}"
    return f"{line.rstrip()}{beside}{problem}"


def ratio_text(figure: Figure) -> str:
    """Return the ratio with its range, such as `2.5x (2.4-2.6)`."""
    if figure.ratio is None:
        return "-"
    least = ">" if figure.at_least else ""
    between = f" ({short(figure.range[0])}-{short(figure.range[1])})" if figure.range else ""
    return f"{least}{short(figure.ratio)}x{between}{'*' if figure.is_unsteady else ''}"


def amount(values: Sequence[float], unit: str) -> str:
    """Return the median with its unit."""
    return f"{number(statistics.median(values))} {unit}".replace(" /s", "/s") if values else "-"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
