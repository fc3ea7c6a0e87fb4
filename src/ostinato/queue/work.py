"""Work queue: hands each key to one worker at a time, in order, without losing a change.

- Fair: keys of a higher priority are handed out first, and within a priority in the order in which they were added.
  Workers are served in the order of their calls of `get`.
- Stingy: a key added many times before it is processed is processed once.
- Safe: a key is never processed by two workers; added while processed, it is processed again after. No key is lost
  when a worker is cancelled while it waits.
- Delayed: a key can be added after a delay, or after the delay of a rate limiter. Of several delays the earliest time
  counts. `add` of a key that also waits does not cancel the wait.
- Polite: on shutdown no further keys are added and delayed keys are dropped. Queued keys are still handed out, and keys
  being processed are finished.

A queue belongs to one event loop and has no lock: call it from that loop only.
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
"""Priority of keys that are not urgent: the objects of the initial list, and resyncs of unchanged objects."""


class WorkQueue(Generic[K]):
    def __init__(
        self, clock: Clock, *, limiter: RateLimiter[K] | None = None, metrics: QueueMetrics[K] | None = None
    ) -> None:
        """
        - `limiter`: the delay of `add_rate_limited`. Defaults to the longer of two: 5 ms, doubled with each failure of
          the key up to 1000 s; and 10 keys per second after a burst of 100.
        - `metrics`: called on every step of a key. Defaults to None.
        """
        self._order = PriorityOrder[K]()  # waiting keys, in order; each is in _dirty, none in _processing
        self._dirty: dict[K, int] = {}  # keys that need processing, and their priority
        self._processing: dict[K, int] = {}  # keys that a worker holds, and their priority when handed out
        self._getters = Getters()  # waiting workers; none while a key in _order is not reserved
        self._delayed = DelayedAdds(clock, self.add)
        self._limiter = MaxOf(ExponentialBackoff[K](), TokenBucket(clock)) if limiter is None else limiter
        self._metrics = metrics
        self._shutting_down = False
        self._drain = Drain()

    def __len__(self) -> int:
        """Number of keys ready to be handed out; keys that are processed or delayed do not count."""
        return self._order.length

    def add(self, key: K, priority: int = 0) -> None:
        """Enqueue the key. A queued key keeps its place, unless its priority rises. Ignored after shutdown."""
        if self._shutting_down:
            return
        current = self._dirty.get(key)
        if current is not None:
            if priority > current:
                self._raise_priority(key, current, priority)
            return
        if self._metrics is not None:
            self._metrics.added(key, priority)
        self._dirty[key] = priority
        if key not in self._processing:
            self._order.push(key, priority)
            self._getters.wake_one()

    def add_after(self, key: K, delay: float, priority: int = 0) -> None:
        """Add the key after `delay` seconds; immediately, if that is zero or negative. Ignored after shutdown."""
        if self._shutting_down:
            return
        if self._metrics is not None:
            self._metrics.retried()
        if delay <= 0:
            self.add(key, priority)
        else:
            self._delayed.add_after(key, delay, priority)

    def add_rate_limited(self, key: K, priority: int = 0) -> float:
        """Add a failed key after the delay of the rate limiter, and return that delay in seconds."""
        delay = self._limiter.when(key)
        self.add_after(key, delay, priority)
        return delay

    def count_failure(self, key: K) -> None:
        """Count a failure of a key that is requeued by `add_after`, as `add_rate_limited` does."""
        self._limiter.when(key)

    def forget(self, key: K) -> None:
        """Reset the failures of a key that succeeded or was dropped. The worker still has to call `done`."""
        self._limiter.forget(key)

    def requeues(self, key: K) -> int:
        """Number of failures of the key since its last `forget`."""
        return self._limiter.requeues(key)

    async def get(self) -> K:
        """Wait for the next key, which the caller holds until it calls `done`.

        Raises `QueueShutDown` when the queue is shut down and empty.
        """
        if self._order.length <= self._getters.woken:
            if self._shutting_down:
                raise QueueShutDown
            await self._getters.wait()
        return self._take()

    def get_nowait(self) -> K:
        """Return the next key that is not reserved for a waiting worker.

        Raises `asyncio.QueueEmpty` if there is none, `QueueShutDown` if the queue is also shut down.
        """
        if self._order.length <= self._getters.woken:
            raise QueueShutDown if self._shutting_down else asyncio.QueueEmpty
        return self._take()

    def done(self, key: K) -> None:
        """Release a processed key. If it was added meanwhile, it is queued again, as the last of its priority."""
        if key not in self._processing:
            raise ValueError(f"done() called with {key!r}, which is not being processed; call it once per get()")
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
        """Hold the next key for a block: `async with queue.item() as key:` calls `done` at its end."""
        key = await self.get()
        try:
            yield key
        finally:
            self.done(key)

    def priority_of(self, key: K) -> int:
        """Priority with which a key being processed was handed out; pass it on to requeue with the same."""
        return self._processing[key]

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    def shut_down(self) -> None:
        """Add no further keys and drop delayed ones. Queued keys are handed out; then `get` raises `QueueShutDown`.

        Ends the waits of `shut_down_with_drain`.
        """
        self._shutting_down = True
        self._delayed.clear()
        self._getters.shut_down()
        self._drain.abandon()

    async def shut_down_with_drain(self) -> None:
        """Shut down, and wait until no key is being processed.

        Includes a key that `done` queues again if its worker calls `get` again immediately. Does not include keys that
        are queued while no worker is busy: there may be no worker left to take them.
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
