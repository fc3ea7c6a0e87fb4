"""Timeline: what happened in a world, one line an action, in the order in which it happened.

    t+5.000   user        create Widget a
    t+5.000   operator-1    widgets default/a: apply deployments.apps default/a -> 201
              FAULT         crash-after @ apply deployments.apps default/a #1
    t+5.000   operator-1  process is killed

What repeats is counted; events that nothing followed are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ostinato.testing.explore.world.record import FAULT, Entry

_SHOWN = 60  # lines


class Line(NamedTuple):
    time: float
    actor: str
    text: str
    is_fault: bool = False
    is_wrong: bool = False


def lines_of(entries: Sequence[Entry]) -> list[Line]:
    """Return the lines of a timeline."""
    found: list[Line] = []
    for each in entries:
        text = _text(each)
        if text is None:
            continue
        line = Line(each.time, each.actor, text, each.actor == FAULT, each.action == "failed")
        if found and found[-1].actor == line.actor and found[-1].text.partition(" (x")[0] == line.text:
            count = int(found[-1].text.rpartition(" (x")[2].rstrip(")")) if " (x" in found[-1].text else 1
            found[-1] = found[-1]._replace(text=f"{line.text} (x{count + 1})")
        else:
            found.append(line)
    return found


def render(entries: Sequence[Entry]) -> list[str]:
    """Return the timeline as text; the middle of a long one is left out, but never the faults."""
    lines = lines_of(entries)
    width = max((len(line.actor) for line in lines), default=0)
    texts = [f"t+{line.time:<9.3f} {('FAULT' if line.is_fault else line.actor):{width}}  {line.text}" for line in lines]
    if len(texts) <= _SHOWN:
        return texts
    first = next((number for number, line in enumerate(lines) if line.is_fault), 0)
    start = max(0, first - 10)
    shown = texts[start : start + _SHOWN]
    head = [f"... {start} lines before"] if start else []
    left = len(texts) - start - len(shown)
    return [*head, *shown, *([f"... {left} lines after"] if left > 0 else [])]


def _text(entry: Entry) -> str | None:
    if entry.action == "request":
        where = f"{entry.reconcile}: " if entry.reconcile else ""
        return f"{where}{entry.what} -> {entry.outcome}"
    if entry.action == "failed":
        return f"{entry.what}: failed: {entry.outcome}"
    if entry.action == "event":
        return f"sees {entry.what}"
    if entry.action == "external":
        return f"calls {entry.what}"
    if entry.action == "reconciled":
        return None
    return entry.what
