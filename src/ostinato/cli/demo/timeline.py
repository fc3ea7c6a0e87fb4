"""The timeline: one line per change, with a lane per component.

The same action of one component on several Pods is one line, with the time of the first. Of successive availability
counts only the last is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.cli.demo.changes import (
    AGENT,
    COLLECTOR,
    COMPONENTS,
    COUNTS,
    DEPLOYMENTS,
    REPLICA_SETS,
    SCHEDULER,
    YOU,
    Change,
)
from ostinato.cli.demo.screen import FAINT, Line, Span, Style

_STYLES: Final = {
    YOU: Style("1;37", "#f0f6fc", bold=True),
    DEPLOYMENTS: Style("34", "#58a6ff"),
    REPLICA_SETS: Style("36", "#39c5cf"),
    SCHEDULER: Style("33", "#e3b341"),
    AGENT: Style("32", "#3fb950"),
    COLLECTOR: Style("35", "#bc8cff"),
}
_WIDTH: Final = max(len(component) for component in COMPONENTS)


class Entry(msgspec.Struct):
    """Changes that are shown in one line."""

    first: Change
    names: list[str]


def grouped(changes: Iterable[Change]) -> list[Entry]:
    """Group equal actions on Pods, in the order of their first change."""
    entries: list[Entry] = []
    for change in changes:
        if entries and change.verb == COUNTS == entries[-1].first.verb:
            entries.pop()
        same = next((each for each in reversed(entries) if _is_same_action(each.first, change)), None)
        if same is None or _overtaken(entries, same, change):
            entries.append(Entry(change, [change.name]))
        else:
            same.names.append(change.name)
    return entries


def _is_same_action(one: Change, other: Change) -> bool:
    return one.kind == other.kind == "Pod" and (one.component, one.verb, one.note) == (
        other.component,
        other.verb,
        other.note,
    )


def _overtaken(entries: list[Entry], same: Entry, change: Change) -> bool:
    """Whether the Pod has another change since the entry, or is in it already."""
    since = entries[entries.index(same) :]
    return any(change.name in each.names for each in since)


def render(entry: Entry, began: float) -> Line:
    change = entry.first
    style = _STYLES[change.component]
    lanes = [
        Span("● " if component == change.component else "│ ", style if component == change.component else FAINT)
        for component in COMPONENTS
    ]
    return (
        Span(f"{max(0.0, change.at - began) * 1000:6.0f} ms  ", FAINT),
        *lanes,
        Span(f" {change.component:<{_WIDTH}}  ", style),
        Span(f"{change.verb} {_what(entry)}"),
        Span(f"  {change.note}" if change.note else "", FAINT),
    )


def _what(entry: Entry) -> str:
    kind, names = entry.first.kind, entry.names
    if kind != "Pod":
        return f"{kind} {names[0]}"
    short = " ".join(short_name(name) for name in names)
    return f"Pod {short}" if len(names) == 1 else f"{len(names)} Pods {short}"


def short_name(pod: str) -> str:
    """Return the random suffix of a Pod's name."""
    return pod.rpartition("-")[2]
