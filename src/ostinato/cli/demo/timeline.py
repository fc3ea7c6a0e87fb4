"""The timeline: a line a change, with a lane for each part, so that the eye sees it pass from part to part.

What one part does to several Pods in a row is one line, with the time of the first; of counts in a row, the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.cli.demo.screen import FAINT, Line, Span, Style
from ostinato.cli.demo.story import AGENT, COLLECTOR, COUNTS, DEPLOYMENTS, PARTS, REPLICA_SETS, SCHEDULER, YOU, Change

_STYLES: Final = {
    YOU: Style("1;37", "#f0f6fc", bold=True),
    DEPLOYMENTS: Style("34", "#58a6ff"),
    REPLICA_SETS: Style("36", "#39c5cf"),
    SCHEDULER: Style("33", "#e3b341"),
    AGENT: Style("32", "#3fb950"),
    COLLECTOR: Style("35", "#bc8cff"),
}
_WIDTH: Final = max(len(part) for part in PARTS)


class Entry(msgspec.Struct):
    """Changes that are told in one line."""

    first: Change
    names: list[str]


def gathered(changes: Iterable[Change]) -> list[Entry]:
    """Changes of the same sort together, in the order of their beginnings."""
    entries: list[Entry] = []
    for change in changes:
        if entries and change.verb == COUNTS == entries[-1].first.verb:
            entries.pop()
        same = next((each for each in reversed(entries) if _alike(each.first, change)), None)
        if same is None or _overtaken(entries, same, change):
            entries.append(Entry(change, [change.name]))
        else:
            same.names.append(change.name)
    return entries


def _alike(one: Change, other: Change) -> bool:
    return one.kind == other.kind == "Pod" and (one.part, one.verb, one.note) == (other.part, other.verb, other.note)


def _overtaken(entries: list[Entry], same: Entry, change: Change) -> bool:
    """Whether something has happened since to the same Pod, or the entry has it already."""
    since = entries[entries.index(same) :]
    return any(change.name in each.names for each in since)


def drawn(entry: Entry, began: float) -> Line:
    change = entry.first
    style = _STYLES[change.part]
    lanes = [Span("● " if part == change.part else "│ ", style if part == change.part else FAINT) for part in PARTS]
    return (
        Span(f"{max(0.0, change.at - began) * 1000:6.0f} ms  ", FAINT),
        *lanes,
        Span(f" {change.part:<{_WIDTH}}  ", style),
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
    """What tells it from its siblings."""
    return pod.rpartition("-")[2]
