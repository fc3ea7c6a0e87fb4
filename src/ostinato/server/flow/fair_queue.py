"""Fair queue: hands out the work of many flows so that each gets its share of the time.

Start-time fair queueing on two levels:

- Work belongs to a `Line`, one per flow. Lines belong to a `Class`, one per priority level.
- Classes divide the time in proportion to their shares; the lines of a class divide its part equally.
- Each line has a tag, the time that it has used. The line with the lowest tag is served first.
- Unused time is not saved: an idle line resumes with the tag of the line served last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush, heapreplace
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST_LINES = 4096  # per class; beyond it, idle lines are dropped


class Class(Generic[T]):
    """The lines of a priority level."""

    __slots__ = ("exempt", "lines", "name", "ready", "shares", "start", "tag")

    def __init__(self, name: str, shares: float) -> None:
        self.name = name
        self.shares = shares
        self.exempt = False  # an exempt priority level: its flows do not compete with each other
        self.tag = 0.0  # the time that the class has used, divided by its shares
        self.start = 0.0  # tag of the line served last
        self.ready: list[tuple[float, int, Line[T]]] = []  # heap of waiting lines; tags may be stale
        self.lines: dict[Hashable, Line[T]] = {}


class Line(Generic[T]):
    """The waiting work of a flow, in order."""

    __slots__ = ("begins", "belongs", "expected", "flow", "seated", "tag", "waiting")

    def __init__(self, belongs: Class[T], flow: Hashable) -> None:
        self.belongs = belongs
        self.flow = flow
        self.tag = 0.0  # time used by the line
        self.begins = 0.0  # smoothed duration of the first step of a request, in seconds
        self.expected = 0.0  # smoothed duration of the further steps
        self.seated = 0  # requests of the flow that occupy seats
        self.waiting: deque[T] = deque()  # the line is in the heap of its class while this is not empty


class FairQueue(Generic[T]):
    """`push` work, `pop` the next, and `charge` its duration."""

    def __init__(self) -> None:
        self._classes: dict[str, Class[T]] = {}
        self._active: list[Class[T]] = []  # classes with waiting lines
        self._virtual = 0.0  # tag of the class served last
        self._length = 0
        self._number = 0  # of the latest heap entry: equal tags are served in order of arrival

    def __len__(self) -> int:
        return self._length

    def line(self, name: str, shares: float, flow: Hashable, *, exempt: bool = False) -> Line[T]:
        """Return the line of a flow; class and line are created on first use."""
        belongs = self._classes.get(name)
        if belongs is None:
            belongs = self._classes[name] = Class(name, 1.0)
        belongs.shares = max(shares, 1.0)
        belongs.exempt = exempt
        found = belongs.lines.get(flow)
        if found is None:
            if len(belongs.lines) >= _MOST_LINES:
                _drop_idle(belongs)
            found = belongs.lines[flow] = Line(belongs, flow)
        return found

    def push(self, line: Line[T], work: T) -> None:
        belongs = line.belongs
        if not line.waiting:
            line.tag = max(line.tag, belongs.start)
            if not belongs.ready:
                belongs.tag = max(belongs.tag, self._virtual)
                self._active.append(belongs)
            self._number += 1
            heappush(belongs.ready, (line.tag, self._number, line))
        line.waiting.append(work)
        self._length += 1

    def pop(self) -> tuple[Line[T], T]:
        """Return the next work; the queue must not be empty."""
        belongs = self._first()
        line = self._head(belongs)
        work = line.waiting.popleft()
        self._length -= 1
        if not line.waiting:
            heappop(belongs.ready)
            if not belongs.ready:
                self._active.remove(belongs)
        self._virtual = max(self._virtual, belongs.tag)
        belongs.start = max(belongs.start, line.tag)
        return line, work

    def charge(self, line: Line[T], seconds: float) -> None:
        """Charge time to a line. On the hot path: no function is called here."""
        belongs = line.belongs
        if line.tag < belongs.start:  # noqa: PLR1730 - twice as fast as max()
            line.tag = belongs.start
        if belongs.tag < self._virtual:  # noqa: PLR1730
            belongs.tag = self._virtual
        if not self._length:  # no line waited: earlier usage no longer counts
            belongs.start = line.tag
            self._virtual = belongs.tag
        line.tag += seconds
        belongs.tag += seconds / belongs.shares

    def is_first(self, line: Line[T]) -> bool:
        """Whether new work of a line would be served next."""
        if line.waiting:
            return False
        belongs = line.belongs
        if not self._length:
            return line.tag <= belongs.start or belongs.tag <= self._virtual
        first = self._first()
        if first is not belongs:
            return max(belongs.tag, self._virtual) < first.tag
        return max(line.tag, belongs.start) < self._head(belongs).tag

    def holds_only(self, line: Line[T]) -> bool:
        """Whether no other line waits."""
        return not self._length or len(line.waiting) == self._length

    def _first(self) -> Class[T]:
        """Return the class to serve next; the queue must not be empty."""
        active = self._active
        return active[0] if len(active) == 1 else min(active, key=_tag)

    def _head(self, belongs: Class[T]) -> Line[T]:
        """Return the line of a class to serve next; the class must have a waiting line."""
        tag, _, line = belongs.ready[0]
        while tag < line.tag:  # charged since it was pushed
            self._number += 1
            heapreplace(belongs.ready, (line.tag, self._number, line))
            tag, _, line = belongs.ready[0]
        return line


def _tag(each: Class[T]) -> float:
    return each.tag


def _drop_idle(belongs: Class[T]) -> None:
    for flow, line in list(belongs.lines.items()):
        if not line.waiting and line.tag <= belongs.start:
            del belongs.lines[flow]
