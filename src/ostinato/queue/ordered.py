"""Ordered queue: hands out items one at a time, strictly in the order in which they were added.

- The head stays at the head until it is done: no later item is handed out before, and no other worker gets it.
- A head that failed is handed out again after a delay, which grows with each failure. Later items wait behind it.
- Items are tasks rather than keys: equal ones are not coalesced.
- On shutdown no further items are added. Queued ones are still handed out, up to the first failure: its retry is not
  waited for, and later items must not overtake it.

For work that has to happen in the order of its requests, such as the steps of a start. For keys use `WorkQueue`, in
which a failing key does not hold up others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Generic, TypeVar

from ostinato.queue.drain import Drain
from ostinato.queue.getters import Getters, QueueShutDown
from ostinato.queue.limiters import ExponentialBackoff, RateLimiter
from ostinato.world import Clock, Timer

T = TypeVar("T")

_HEAD = "head"  # the limiter's key: only the head can fail


class _Head(Enum):
    READY = auto()  # to be handed out, if there is one
    PROCESSING = auto()  # a worker holds it
    WAITING = auto()  # for its retry


class OrderedQueue(Generic[T]):
    def __init__(self, clock: Clock, *, limiter: RateLimiter[str] | None = None) -> None:
        """
        - `limiter`: the delay before a failed head is retried. Defaults to 5 s, doubled with each failure up to 32 s.
        """
        self._clock = clock
        self._limiter = ExponentialBackoff[str](5.0, 32.0) if limiter is None else limiter
        self._items: deque[T] = deque()
        self._head = _Head.READY  # PROCESSING and WAITING only while there is a head
        self._getters = Getters()
        self._timer: Timer | None = None  # while the head is WAITING
        self._shutting_down = False
        self._drain = Drain()

    def __len__(self) -> int:
        """Number of items that are not done, including a head that is processed or waits for its retry."""
        return len(self._items)

    def add(self, item: T) -> None:
        """Append an item. Ignored after shutdown."""
        if self._shutting_down:
            return
        self._items.append(item)
        if len(self._items) == 1:
            self._getters.wake_one()

    def add_first(self, items: Sequence[T]) -> None:
        """Insert items in their order before all others, but after a head that a worker holds or that waits."""
        if self._shutting_down or not items:
            return
        before = self._items.popleft() if self._items and self._head is not _Head.READY else None
        self._items.extendleft(reversed(items))
        if before is not None:
            self._items.appendleft(before)
        elif len(self._items) == len(items):
            self._getters.wake_one()

    def take_following(self, matches: Callable[[T], object]) -> list[T]:
        """Remove and return the items that directly follow the head, up to the first that does not match.

        For a worker that processes them together with the head that it holds.
        """
        self._check_processing("take_following")
        head = self._items.popleft()
        taken: list[T] = []
        while self._items and matches(self._items[0]):
            taken.append(self._items.popleft())
        self._items.appendleft(head)
        return taken

    def waiting(self) -> tuple[T, ...]:
        """Return all items in their order, the head first."""
        return tuple(self._items)

    async def get(self) -> T:
        """Wait for the head, which the caller holds until it calls `done` or `retry`.

        Raises `QueueShutDown` when the queue is shut down and hands out no further item.
        """
        if not self._is_ready() or self._getters.woken:
            if self._shutting_down:
                raise QueueShutDown
            await self._getters.wait()
        self._head = _Head.PROCESSING
        return self._items[0]

    def done(self) -> None:
        """Remove the head, which the caller has processed: the next item follows."""
        self._check_processing("done")
        self._limiter.forget(_HEAD)
        self._items.popleft()
        self._release()

    def retry(self, delay: float | None = None) -> None:
        """Hand the head, which the caller failed to process, out again after a delay.

        `delay`: seconds. Defaults to those of the limiter.
        """
        self._check_processing("retry")
        limited = self._limiter.when(_HEAD)
        delay = limited if delay is None else delay
        self._head = _Head.WAITING
        if not self._shutting_down:
            self._timer = self._clock.timer(delay, self._release)
        self._drain.notify()

    @property
    def retries(self) -> int:
        """Number of times that the head has failed."""
        return self._limiter.requeues(_HEAD)

    @asynccontextmanager
    async def item(self) -> AsyncIterator[T]:
        """Hold the head for a block: `async with queue.item() as item:`.

        - `done` is called at the end of the block, `retry` if it raises.
        - A cancelled block returns the head to the queue without counting a failure.
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
        """Add no further items, and do not retry a failed head. Queued items are still handed out.

        Ends the waits of `shut_down_with_drain`.
        """
        self._shutting_down = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._getters.shut_down()
        self._drain.abandon()

    async def shut_down_with_drain(self) -> None:
        """Shut down, and wait until no worker holds the head.

        Queued items are included as long as the worker calls `get` again immediately after `done`.
        """
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

    def _check_processing(self, method: str) -> None:
        if self._head is not _Head.PROCESSING:
            raise ValueError(f"{method}() called while no worker holds the head; call get() first")
