"""Delayed adds: keys that are to be added when their time has come.

- A key waits once: told twice, it comes at the earlier of the times, and with the higher of the priorities.
- Keys come in the order of their times, and those of the same time in the order in which they were told.
- There is one timer, for the first of them, however many wait; and none when nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Generic, NamedTuple, TypeVar

from ostinato.world import Clock, Timer

K = TypeVar("K", bound=Hashable)

_STALE_ALLOWED = 64  # and as many as there are keys that wait: then the heap is made anew


class DelayedAdds(Generic[K]):
    def __init__(self, clock: Clock, add: Callable[[K, int], None]) -> None:
        """`add(key, priority)` is called when the time of a key has come."""
        self._clock = clock
        self._add = add
        self._waits: dict[K, _Wait[K]] = {}
        self._heap: list[_Wait[K]] = []  # all of _waits, and stale ones that a better wait has replaced
        self._numbers = count()
        self._timer: Timer | None = None
        self._timer_at = inf  # when the timer fires; never later than the first of the heap

    def __len__(self) -> int:
        return len(self._waits)

    def add_after(self, key: K, delay: float, priority: int) -> None:
        """Add the key when `delay` seconds have passed. Needs a running loop."""
        if not delay < inf:
            raise ValueError(f"{key!r} cannot be added after {delay} seconds")
        ready_at = self._clock.monotonic() + delay
        known = self._waits.get(key)
        if known is not None:
            if known.ready_at <= ready_at and known.priority >= priority:
                return
            ready_at, priority = min(ready_at, known.ready_at), max(priority, known.priority)
        wait = _Wait(ready_at, next(self._numbers), key, priority)
        self._waits[key] = wait
        heappush(self._heap, wait)
        self._compact()
        if ready_at < self._timer_at:
            self._set_timer()

    def clear(self) -> None:
        """Forget all that waits."""
        self._waits.clear()
        self._heap.clear()
        self._stop_timer()

    def _fire(self) -> None:
        self._stop_timer()
        now = self._clock.monotonic()
        while self._heap:
            wait = self._heap[0]
            is_stale = self._waits.get(wait.key) is not wait
            if wait.ready_at > now and not is_stale:
                self._set_timer()
                break
            heappop(self._heap)
            if not is_stale:
                del self._waits[wait.key]
                self._add(wait.key, wait.priority)

    def _set_timer(self) -> None:
        self._stop_timer()
        self._timer_at = self._heap[0].ready_at
        self._timer = self._clock.timer(self._timer_at - self._clock.monotonic(), self._fire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = inf

    def _compact(self) -> None:
        """Keep the heap in proportion to what waits, whoever keeps on shortening a wait."""
        if len(self._heap) > 2 * len(self._waits) + _STALE_ALLOWED:
            self._heap = list(self._waits.values())
            heapify(self._heap)


class _Wait(NamedTuple, Generic[K]):
    """One key's wait. They are compared as tuples: by time, then by number, which no two have in common."""

    ready_at: float  # on the clock's monotonic()
    number: int
    key: K
    priority: int
