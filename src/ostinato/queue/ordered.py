"""Ordered queue: hands out things one at a time, strictly in the order in which they were added.

- The head stays the head until it is done: nothing behind it is handed out before, and nobody else gets it meanwhile.
- A head that failed is handed out again after a wait, which grows with each failure. The rest waits behind it.
- Nothing is left out: things are tasks rather than keys, so equal ones are all handed out.
- On shutdown nothing more is added. What is queued is still handed out, up to the first failure: the wait after it is
  not served any more, and what stands behind it must not overtake.

For work that has to happen in the order in which it was asked for, such as the steps of a start. For keys use
`WorkQueue`, in which one failing key holds up no other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Generic, TypeVar

from ostinato.queue.drain import Drain
from ostinato.queue.getters import Getters, QueueShutDown
from ostinato.queue.limiters import ExponentialBackoff, RateLimiter
from ostinato.world import Clock, Timer

T = TypeVar("T")

_HEAD = "head"  # what the limiter counts the failures of: one at a time is the head


class _Head(Enum):
    READY = auto()  # to be handed out, if there is one
    PROCESSING = auto()  # by a worker
    WAITING = auto()  # for its next try


class OrderedQueue(Generic[T]):
    def __init__(self, clock: Clock, *, limiter: RateLimiter[str] | None = None) -> None:
        """`limiter` says how long a head that failed waits. Defaults to 5 s doubled with each failure, up to 32 s."""
        self._clock = clock
        self._limiter = ExponentialBackoff[str](5.0, 32.0) if limiter is None else limiter
        self._items: deque[T] = deque()
        self._head = _Head.READY  # PROCESSING and WAITING only while there is a head
        self._getters = Getters()
        self._timer: Timer | None = None  # while the head is WAITING
        self._shutting_down = False
        self._drain = Drain()

    def __len__(self) -> int:
        """How many things are not done, the head that is held or waits included."""
        return len(self._items)

    def add(self, item: T) -> None:
        """Put a thing at the end."""
        if self._shutting_down:
            return
        self._items.append(item)
        if len(self._items) == 1:
            self._getters.wake_one()

    async def get(self) -> T:
        """The head, which is the caller's until `done` or `retry`. `QueueShutDown` when none will come any more."""
        if not self._is_ready() or self._getters.woken:
            if self._shutting_down:
                raise QueueShutDown
            await self._getters.wait()
        self._head = _Head.PROCESSING
        return self._items[0]

    def done(self) -> None:
        """The head that the caller holds is finished: the next may follow."""
        self._check_processing()
        self._limiter.forget(_HEAD)
        self._items.popleft()
        self._release()

    def retry(self) -> None:
        """The head that the caller holds has failed: it is handed out again after a wait."""
        self._check_processing()
        wait = self._limiter.when(_HEAD)
        self._head = _Head.WAITING
        if not self._shutting_down:
            self._timer = self._clock.timer(wait, self._release)
        self._drain.notify()

    @property
    def retries(self) -> int:
        """How many times the head has failed."""
        return self._limiter.requeues(_HEAD)

    @asynccontextmanager
    async def item(self) -> AsyncIterator[T]:
        """`async with queue.item() as thing:` is the head, done at the end of the block, or tried again if it raises.

        A worker that is cancelled in the block gives the head back as it was: that is no failure.
        """
        item = await self.get()
        try:
            yield item
        except Exception:
            self.retry()
            raise
        except BaseException:
            self._release()
            raise
        self.done()

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    def shut_down(self) -> None:
        """Add nothing more, and do not wait for a head that has failed. What is queued is still handed out."""
        self._shutting_down = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._getters.shut_down()
        self._drain.abandon()

    async def shut_down_with_drain(self) -> None:
        """Shut down, and return when no worker holds the head; what is queued is waited for if its worker goes on."""
        self.shut_down()
        await self._drain.wait_while(lambda: self._head is _Head.PROCESSING)

    def _is_ready(self) -> bool:
        return self._head is _Head.READY and bool(self._items)

    def _release(self) -> None:
        self._timer = None
        self._head = _Head.READY
        self._drain.notify()
        if self._items:
            self._getters.wake_one()

    def _check_processing(self) -> None:
        if self._head is not _Head.PROCESSING:
            raise ValueError("no worker holds the head of the queue")
