"""A fair queue: work of many flows, handed out so that each flow gets its part of the time.

Start-time fair queueing on two levels:

- Work belongs to a `Line`, one for each flow. Lines belong to a `Class`, one for each priority level.
- Classes share the time in proportion to their shares, the lines of a class share its part equally.
- Each line has a tag: the time it has used. The line with the lowest tag goes first.
- Time that was not asked for is not saved up: a line that was idle starts level with the line served last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush, heapreplace
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST_LINES = 4096  # of a class, beyond which lines that nobody uses are dropped


class Class(Generic[T]):
    """The lines that share the time of a priority level."""

    __slots__ = ("lines", "name", "ready", "shares", "start", "tag")

    def __init__(self, name: str, shares: float) -> None:
        self.name = name
        self.shares = shares
        self.tag = 0.0  # the time that the class has used, divided by its shares
        self.start = 0.0  # the tag of the line served last
        self.ready: list[tuple[float, int, Line[T]]] = []  # a heap of the lines that wait; tags may be out of date
        self.lines: dict[Hashable, Line[T]] = {}


class Line(Generic[T]):
    """The work of a flow that waits, in order."""

    __slots__ = ("begins", "belongs", "expected", "flow", "seated", "tag", "waiting")

    def __init__(self, belongs: Class[T], flow: Hashable) -> None:
        self.belongs = belongs
        self.flow = flow
        self.tag = 0.0  # the time that the line has used
        self.begins = 0.0  # seconds that the first step of a request takes, smoothed
        self.expected = 0.0  # the same for the further ones
        self.seated = 0  # requests of the flow that have seats
        self.waiting: deque[T] = deque()  # the line is in the class's heap exactly while this is not empty


class FairQueue(Generic[T]):
    """`push` work, `pop` what is next, and `charge` what it took."""

    def __init__(self) -> None:
        self._classes: dict[str, Class[T]] = {}
        self._active: list[Class[T]] = []  # those that have lines which wait
        self._virtual = 0.0  # the tag of the class served last
        self._length = 0
        self._number = 0  # of the latest entry of a heap: equal tags go in the order in which they came

    def __len__(self) -> int:
        return self._length

    def line(self, name: str, shares: float, flow: Hashable) -> Line[T]:
        """The line of a flow of a class; both are made on first use."""
        belongs = self._classes.get(name)
        if belongs is None:
            belongs = self._classes[name] = Class(name, 1.0)
        belongs.shares = max(shares, 1.0)
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
        """The work that is next; the queue is not empty."""
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
        """Work of a line has run for so long. Called for every request: no function is called here."""
        belongs = line.belongs
        if line.tag < belongs.start:  # noqa: PLR1730 - twice as fast as max()
            line.tag = belongs.start
        if belongs.tag < self._virtual:  # noqa: PLR1730
            belongs.tag = self._virtual
        if not self._length:  # nobody waited for it: what was used before does not count any more
            belongs.start = line.tag
            self._virtual = belongs.tag
        line.tag += seconds
        belongs.tag += seconds / belongs.shares

    def is_first(self, line: Line[T]) -> bool:
        """Whether new work of a line would be next."""
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
        """Whether nobody waits but a line."""
        return not self._length or len(line.waiting) == self._length

    def _first(self) -> Class[T]:
        """The class that is served next; some work waits."""
        active = self._active
        return active[0] if len(active) == 1 else min(active, key=_tag)

    def _head(self, belongs: Class[T]) -> Line[T]:
        """The line of a class that is served next; some of its work waits."""
        tag, _, line = belongs.ready[0]
        while tag < line.tag:  # it was charged since
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
