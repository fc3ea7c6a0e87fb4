"""Work queue: hands each key to one worker at a time, in order, without losing a change.

- Fair: keys are handed out in the order in which they were added, those of a higher priority first; workers are served
  in the order in which they came.
- Stingy: a key added many times before it is processed is processed once.
- Safe: a key is never processed by two workers; added while processed, it is processed again after. A worker that is
  cancelled while it waits takes nothing with it.
- Patient: a key can be added after a delay, or after as long as a rate limiter says. The earliest time wins; adding a
  key that also waits does not end the wait.
- Polite: on shutdown nothing more is added and what waits for its time is dropped; what is queued is still handed out,
  and what is under way finishes.

A queue belongs to one event loop and has no lock: call it from that loop alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from ostinato.queue.delay import DelayedAdds
from ostinato.queue.drain import Drain
from ostinato.queue.getters import Getters, QueueShutDown
from ostinato.queue.limiters import ExponentialBackoff, MaxOf, RateLimiter, TokenBucket
from ostinato.queue.metrics import QueueMetrics
from ostinato.queue.order import PriorityOrder
from ostinato.world import Clock

K = TypeVar("K", bound=Hashable)

LOW_PRIORITY: Final = -100
"""For what nobody waits for: the objects of a first list, and resyncs of objects that did not change."""


class WorkQueue(Generic[K]):
    def __init__(
        self, clock: Clock, *, limiter: RateLimiter[K] | None = None, metrics: QueueMetrics[K] | None = None
    ) -> None:
        """
        - `limiter` says how long `add_rate_limited` waits. Defaults to 5 ms doubled with each failure of a key up to
          1000 s, and to 10 keys a second after the first 100, whichever is longer.
        - `metrics` is told what happens. Defaults to nobody.
        """
        self._order = PriorityOrder[K]()  # waiting keys, in order; each is in _dirty, none in _processing
        self._dirty: dict[K, int] = {}  # keys that need processing, and their priority
        self._processing: dict[K, int] = {}  # keys that a worker holds, and the priority they were handed out with
        self._getters = Getters()  # workers that wait; never while there is a key that is not promised to one of them
        self._delayed = DelayedAdds(clock, self.add)
        self._limiter = MaxOf(ExponentialBackoff[K](), TokenBucket(clock)) if limiter is None else limiter
        self._metrics = metrics
        self._shutting_down = False
        self._drain = Drain()

    def __len__(self) -> int:
        """How many keys are ready to be handed out: none that is processed, and none that waits for its time."""
        return self._order.length

    def add(self, key: K, priority: int = 0) -> None:
        """Have the key processed. One that is queued already keeps its place, unless its priority rises."""
        if self._shutting_down:
            return
        known = self._dirty.get(key)
        if known is not None:
            if priority > known:
                self._raise_priority(key, known, priority)
            return
        if self._metrics is not None:
            self._metrics.added(key, priority)
        self._dirty[key] = priority
        if key not in self._processing:
            self._order.push(key, priority)
            self._getters.wake_one()

    def add_after(self, key: K, delay: float, priority: int = 0) -> None:
        """Add the key when `delay` seconds have passed; now, if that is not more than none."""
        if self._shutting_down:
            return
        if self._metrics is not None:
            self._metrics.retried()
        if delay <= 0:
            self.add(key, priority)
        else:
            self._delayed.add_after(key, delay, priority)

    def add_rate_limited(self, key: K, priority: int = 0) -> float:
        """Add the key when the rate limiter says: after a failure. In how many seconds that is."""
        delay = self._limiter.when(key)
        self.add_after(key, delay, priority)
        return delay

    def forget(self, key: K) -> None:
        """The key succeeded or was given up: its failures are no longer counted. A worker still calls `done`."""
        self._limiter.forget(key)

    def requeues(self, key: K) -> int:
        """How many times the key was added with a rate limit since it was last forgotten."""
        return self._limiter.requeues(key)

    async def get(self) -> K:
        """The next key, which is the caller's until it calls `done`. `QueueShutDown` when none will come any more."""
        if self._order.length <= self._getters.woken:
            if self._shutting_down:
                raise QueueShutDown
            await self._getters.wait()
        return self._take()

    def get_nowait(self) -> K:
        """The next key, if there is one that nobody waits for; `asyncio.QueueEmpty` otherwise."""
        if self._order.length <= self._getters.woken:
            raise QueueShutDown if self._shutting_down else asyncio.QueueEmpty
        return self._take()

    def done(self, key: K) -> None:
        """The caller has processed the key. Added in the meantime, it is queued again, behind the others."""
        if key not in self._processing:
            raise ValueError(f"{key!r} is not being processed")
        if self._metrics is not None:
            self._metrics.done(key)
        del self._processing[key]
        priority = self._dirty.get(key)
        if priority is not None:
            self._order.push(key, priority)
            self._getters.wake_one()
        if self._shutting_down and not self._processing:
            self._drain.notify()

    @asynccontextmanager
    async def item(self) -> AsyncIterator[K]:
        """`async with queue.item() as key:` gets the next key, and calls `done` at the end of the block."""
        key = await self.get()
        try:
            yield key
        finally:
            self.done(key)

    def priority_of(self, key: K) -> int:
        """The priority with which a key that is being processed was handed out: to try it again with the same."""
        return self._processing[key]

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    def shut_down(self) -> None:
        """Add nothing more. What is queued is still handed out; then `get` raises `QueueShutDown`.

        Whoever waits in `shut_down_with_drain` waits no longer.
        """
        self._shutting_down = True
        self._delayed.clear()
        self._getters.shut_down()
        self._drain.abandon()

    async def shut_down_with_drain(self) -> None:
        """Shut down, and return when no key is being processed.

        A key that `done` queues again is waited for if its worker comes straight back for it. Keys that are queued
        while no worker is busy are not: there may be nobody left to take them.
        """
        self.shut_down()
        await self._drain.wait_while(lambda: bool(self._processing))

    def _take(self) -> K:
        key = self._order.pop()
        priority = self._dirty.pop(key)
        if self._metrics is not None:
            self._metrics.taken(key, priority)
        self._processing[key] = priority
        return key

    def _raise_priority(self, key: K, before: int, after: int) -> None:
        if self._metrics is not None:
            self._metrics.priority_raised(key, before, after)
        self._dirty[key] = after
        if key not in self._processing:
            self._order.move(key, before, after)
