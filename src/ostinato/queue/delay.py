"""Delayed adds: keys that are added to the queue when their delay has passed.

- A key waits once: added again with another delay, it keeps the earlier time and the higher priority.
- Keys become ready in the order of their times, and at the same time in the order of their `add_after` calls.
- One timer, for the earliest key, serves all of them; there is none while no key waits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Generic, NamedTuple, TypeVar

from ostinato.world import Clock, Timer

K = TypeVar("K", bound=Hashable)

_STALE_ALLOWED = 64  # replaced entries, beyond one per waiting key, before the heap is rebuilt


class DelayedAdds(Generic[K]):
    def __init__(self, clock: Clock, add: Callable[[K, int], None]) -> None:
        """`add`: called with key and priority when the delay of the key has passed."""
        self._clock = clock
        self._add = add
        self._waits: dict[K, _Wait[K]] = {}  # the current entry of each waiting key
        self._heap: list[_Wait[K]] = []  # all of _waits, and stale entries that were replaced in it
        self._numbers = count()
        self._timer: Timer | None = None
        self._timer_at = inf  # never later than the first entry of the heap

    def __len__(self) -> int:
        return len(self._waits)

    def add_after(self, key: K, delay: float, priority: int) -> None:
        """Add the key after `delay` seconds. Requires a running event loop."""
        if not delay < inf:
            raise ValueError(f"add_after() delay of {key!r} is {delay}; it must be a finite number of seconds")
        ready_at = self._clock.monotonic() + delay
        current = self._waits.get(key)
        if current is not None:
            if current.ready_at <= ready_at and current.priority >= priority:
                return
            ready_at, priority = min(ready_at, current.ready_at), max(priority, current.priority)
        wait = _Wait(ready_at, next(self._numbers), key, priority)
        self._waits[key] = wait
        heappush(self._heap, wait)
        self._compact()
        if ready_at < self._timer_at:
            self._set_timer()

    def clear(self) -> None:
        """Drop all waiting keys."""
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
        """Bound the stale entries of the heap, which grow while delays are shortened repeatedly."""
        if len(self._heap) > 2 * len(self._waits) + _STALE_ALLOWED:
            self._heap = list(self._waits.values())
            heapify(self._heap)


class _Wait(NamedTuple, Generic[K]):
    """One key's wait. Compared as tuples: by time, then by number, which is unique."""

    ready_at: float  # on the clock's monotonic()
    number: int
    key: K
    priority: int
