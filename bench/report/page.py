"""The page: `page.template.md` with the tables of a run in place of `{{section NAME}}` and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bench.large import OBJECTIVES, Large
from bench.suite.printed import amount, number, short
from bench.suite.results import Figure, Run
from bench.suite.table import rows_of

TEMPLATE = Path(__file__).with_name("page.template.md")
DISTURBED = "**Rows with ‡ were measured while other programs used the machine: an order of magnitude.**\n\n"
QUICK = "**These figures are of `--quick`, on a machine with other work: not to be quoted.**\n\n"
HEAD = "| | Ostinato | peer | | times better | goal | row |\n|---|---|---|---|---|---|---|"

_PLACE = re.compile(r"^\{\{(?P<what>\w+) ?(?P<name>\w*)\}\}\n", re.MULTILINE)


def page(run: Run, large: Large | None) -> str:
    def put(place: re.Match[str]) -> str:
        if place["what"] == "section":
            return _section(run, place["name"])
        if place["what"] == "machine":
            return _machine(run)
        if place["what"] == "warning":
            return QUICK if run.quick else DISTURBED if any(each.origin.is_disturbed for each in run.figures) else ""
        return _large(large) if large is not None else "Not measured.\n"

    return _PLACE.sub(put, TEMPLATE.read_text(encoding="utf-8"))


def _section(run: Run, name: str) -> str:
    figures = [run.figure(row.key) for row in rows_of(name)]
    return "\n".join((HEAD, *map(_row, figures), "", *_footnotes(run, figures)))


def _row(figure: Figure) -> str:
    info = figure.info
    peer = amount(figure.peer, info.unit) + (" †" if figure.peer_from else "")
    if figure.at_least and figure.peer:
        peer = f"> {peer}"
    title = f"{info.title} ‡" if figure.origin.is_disturbed and figure.ours else info.title
    ours = amount(figure.ours, info.unit)
    cells = [title, ours, peer, info.peer, _ratio(figure), _goal(figure), f"`{info.key}`"]
    return f"| {' | '.join(cells)} |"


def _ratio(figure: Figure) -> str:
    if figure.ratio is None:
        return "-"
    least = "> " if figure.at_least else ""
    between = f" ({short(figure.range[0])} to {short(figure.range[1])})" if figure.range else ""
    mark = r" \*" if figure.is_unsteady else ""
    return f"{least}**{short(figure.ratio)}**{between}{mark}"


def _goal(figure: Figure) -> str:
    info = figure.info
    if not info.goal and not info.most:
        return ""
    goal = f"≥ {info.goal:g}" if info.goal else f"≤ {info.most:g} {info.unit}"
    return goal + {True: " ✓", False: " missed", None: ""}[figure.reached]


def _footnotes(run: Run, figures: list[Figure]) -> Iterator[str]:
    earlier = sorted({each.peer_from for each in figures if each.peer_from})
    if earlier:
        yield f"† measured earlier: {', '.join(earlier)}.\n"
    problems: dict[str, list[str]] = {}
    for each in figures:
        if each.problem:
            problems.setdefault(each.problem, []).append(f"`{each.row}`")
    for reason, rows in problems.items():
        yield f"Without a comparison: {', '.join(rows)}: {reason}.\n"
    others = {each.origin for each in figures if each.origin.commit}
    for origin in sorted(others, key=lambda each: each.date):
        rows = [f"`{each.row}`" for each in figures if each.origin == origin]
        if (origin.date, origin.commit) != (run.origin.date, run.origin.commit):
            yield f"Measured on {origin.date} at commit {origin.commit}: {', '.join(rows)}.\n"
        if origin.is_disturbed:
            yield f"‡ Other programs used {short(origin.others or 0.0)} cores meanwhile: {', '.join(rows)}.\n"


def _large(large: Large) -> str:
    lines = [
        "| | |",
        "|---|---|",
        f"| {large.nodes:,} nodes ready | {number(large.joined)} s |",
        f"| {large.pods:,} Pods available | {number(large.available)} s |",
        f"| Pods lost | {large.lost} |",
        f"| all deleted | {number(large.deleted)} s |",
        f"| peak memory, all processes | {number(large.memory)} MB |",
        f"| processor time, all processes | {number(large.cpu)} s |",
        *([] if large.rest is None else [f"| the same between both, per cent of a core | {number(large.rest)} |"]),
        f"| most Pods on one node | {large.most_on_a_node} |",
        "",
        "| request | count | errors | p50 | p99 | slowest | objective (p99) |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, each in large.latencies.items():
        reached = "✓" if each.p99 <= OBJECTIVES[what] and not each.errors else "missed"
        times = " | ".join(f"{number(ms)} ms" for ms in (each.p50, each.p99, each.most))
        lines.append(f"| {what} | {each.count:,} | {each.errors} | {times} | {OBJECTIVES[what]:,.0f} ms {reached} |")
    lines += ["", f"Measured on {large.origin.date} at commit {large.origin.commit}.", ""]
    if large.origin.is_disturbed:
        lines += [f"‡ Other programs used {short(large.origin.others or 0.0)} cores meanwhile.", ""]
    return "\n".join(lines)


def _machine(run: Run) -> str:
    machine = run.machine
    quick = "; a quick run, not to be quoted" if run.quick else ""
    versions = "; ".join(f"{name} {run.versions[name]}" for name in sorted(run.versions, key=str.lower))
    return f"""\
| | |
|---|---|
| date, commit | {run.origin.date}, {run.origin.commit}{quick} |
| machine | {machine.processor}, {machine.cores} cores, {machine.memory:.0f} GB, {machine.system} |
| load average before | {machine.load:.1f} |
| duration | {run.seconds / 60:.0f} minutes |
| versions | {versions} |
"""
