"""Listener: calls one event handler for every event, in order, at its own pace.

client-go's processorListener:

- Each listener has its own unbounded queue and task. A slow handler delays no other.
- An exception of a handler is logged; the next event follows.
- `has_synced`: the handler has returned from the last initial object. Wait for it rather than for the store where the
  effects of the handler matter.
- A resync is enqueued after the listener's own period.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Final

import msgspec

from ostinato.cache.events import Event, Predicate, Updated, filtered
from ostinato.cache.store.entry import Entry
from ostinato.world import Clock

Handler = Callable[[Event], Awaitable[object] | object]
"""Called with each event; an awaitable result is awaited."""

SHORTEST_RESYNC: Final = 1.0
_YIELD_EVERY: Final = 200  # events
_logger = logging.getLogger("ostinato.cache")


class _Marker:
    """Marks a position in a queue."""


_SYNCED: Final = _Marker()  # after the initial objects
_RESYNCED: Final = _Marker()  # after the objects of a resync


class ListenerOptions(msgspec.Struct, frozen=True):
    """
    - `resync`: seconds after which the handler receives all objects again (a resync), at least 1. Defaults to 0, never.
    - `predicate`: which objects the handler receives. Defaults to all.
    - `name`: for messages. Defaults to the name of the function.
    """

    resync: float = 0.0
    predicate: Predicate | None = None
    name: str = ""


class Listener:
    """One handler with its queue."""

    def __init__(self, handler: Handler, options: ListenerOptions, clock: Clock) -> None:
        self.name = options.name or getattr(handler, "__qualname__", "") or type(handler).__qualname__
        self.resync = max(options.resync, SHORTEST_RESYNC) if options.resync > 0 else 0.0
        self._handler = handler
        self._predicate = options.predicate
        self._clock = clock
        self._queue: deque[Event | _Marker] = deque()
        self._markers = 0  # in the queue
        self._waiter: asyncio.Future[None] | None = None  # set while `run` waits; the queue is empty then
        self._synced = asyncio.Event()
        self._resyncing = 0  # resyncs in the queue
        self._removed = False

    @property
    def has_synced(self) -> bool:
        """Whether the handler has processed all initial objects."""
        return self._synced.is_set()

    @property
    def pending(self) -> int:
        """The number of events in the queue."""
        return len(self._queue) - self._markers

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def enqueue(self, events: Iterable[Event]) -> None:
        """Append events to the queue."""
        self._queue.extend(events)
        self._wake()

    def mark_synced(self) -> None:
        """Mark the end of the initial objects."""
        self._mark(_SYNCED)

    def remove(self) -> None:
        """End `run`, and drop the queue."""
        self._removed = True
        self._queue.clear()
        self._markers = 0
        self._wake()

    def enqueue_resync(self, entries: Iterable[Entry]) -> None:
        """Append an `Updated` for each object, with the same entry twice."""
        self._resyncing += 1
        self.enqueue(Updated(entry, entry) for entry in entries)
        self._mark(_RESYNCED)

    @property
    def resyncing(self) -> bool:
        """Whether a resync is in the queue: another would only add to the backlog."""
        return self._resyncing > 0

    async def run(self) -> None:
        """Call the handler for each event until removed."""
        handled = 0
        while not self._removed:
            if not self._queue:
                await self._wait()
                continue
            event = self._queue.popleft()
            if isinstance(event, _Marker):
                self._pass(event)
                continue
            answer = self._call_handler(event)
            if answer is not None:
                await self._await_handler(answer, event)
            handled += 1
            if handled % _YIELD_EVERY == 0:
                await self._clock.sleep(0)

    def _mark(self, marker: _Marker) -> None:
        self._markers += 1
        self._queue.append(marker)
        self._wake()

    def _pass(self, marker: _Marker) -> None:
        self._markers -= 1
        if marker is _SYNCED:
            self._synced.set()
        else:
            self._resyncing -= 1

    def _call_handler(self, event: Event) -> Awaitable[object] | None:
        """Call the handler; return its result if it is awaitable."""
        try:
            seen = event if self._predicate is None else filtered(event, self._predicate)
            answer = None if seen is None else self._handler(seen)
            return answer if answer is not None and isawaitable(answer) else None
        except Exception:  # noqa: BLE001 - user code may raise anything
            self._failed(event)
            return None

    async def _await_handler(self, answer: Awaitable[object], event: Event) -> None:
        try:
            await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failed(event)  # something that it awaited was cancelled, not this task
        except Exception:  # noqa: BLE001
            self._failed(event)

    def _failed(self, event: Event) -> None:
        kind = type(event).__name__
        _logger.exception("event handler failed handler=%s event=%s object=%s", self.name, kind, event.object)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
