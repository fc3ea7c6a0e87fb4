"""Listeners: each handler hears every event in order, at its own pace.

- Each has a queue and a task of its own. A slow handler delays nobody; what it has not heard yet takes memory.
- A handler that raises is reported, and hears the next event.
- A handler is synced when it has returned from the last of the objects that were there at the beginning. Who counts on
  what a handler did, rather than on what is in the store, waits for that.
- Resyncs come to a handler when its own period has passed.
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
"""Called with each event; what it returns is awaited if it can be."""

SHORTEST_RESYNC: Final = 1.0
_TURN: Final = 200  # events after which others get their turn
_logger = logging.getLogger("ostinato.cache")


class _Marker:
    """Stands in a queue behind events that belong together."""


_SYNCED: Final = _Marker()  # the objects that were there at the beginning
_RESYNCED: Final = _Marker()


class ListenerOptions(msgspec.Struct, frozen=True):
    """
    - `resync`: seconds after which the handler is handled of everything once more; 0 is never. At least 1.
    - `predicate`: of which objects the handler is handled. Defaults to all.
    - `name`: for messages. Defaults to the name of the function.
    """

    resync: float = 0.0
    predicate: Predicate | None = None
    name: str = ""


class Listener:
    """One handler: what it has still to hear, and the task that tells it."""

    def __init__(self, handler: Handler, options: ListenerOptions, clock: Clock) -> None:
        self.name = options.name or getattr(handler, "__qualname__", "") or type(handler).__qualname__
        self.resync = max(options.resync, SHORTEST_RESYNC) if options.resync > 0 else 0.0
        self._handler = handler
        self._predicate = options.predicate
        self._clock = clock
        self._queue: deque[Event | _Marker] = deque()
        self._markers = 0  # of them, markers
        self._waiter: asyncio.Future[None] | None = None  # set while there is nothing to tell
        self._synced = asyncio.Event()
        self._resyncing = 0  # resyncs that the handler has still to hear to their end
        self._removed = False

    @property
    def has_synced(self) -> bool:
        """Whether the handler has returned from every object that was there at the beginning."""
        return self._synced.is_set()

    @property
    def pending(self) -> int:
        """How many events it has still to hear."""
        return len(self._queue) - self._markers

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def enqueue(self, events: Iterable[Event]) -> None:
        """Add events behind those that are waiting."""
        self._queue.extend(events)
        self._wake()

    def mark_synced(self) -> None:
        """What comes now was not there at the beginning."""
        self._mark(_SYNCED)

    def remove(self) -> None:
        """Tell it nothing more, not even what is waiting."""
        self._removed = True
        self._queue.clear()
        self._markers = 0
        self._wake()

    def enqueue_resync(self, entries: Iterable[Entry]) -> None:
        """A resync: these objects, as if they had changed."""
        self._resyncing += 1
        self.enqueue(Updated(entry, entry) for entry in entries)
        self._mark(_RESYNCED)

    @property
    def resyncing(self) -> bool:
        """Whether it has still to hear the last resync: another would only make it later."""
        return self._resyncing > 0

    async def run(self) -> None:
        """Tell the handler what there is to tell, until it is removed."""
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
            if handled % _TURN == 0:
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
        """Tell the handler; what is to be awaited."""
        try:
            seen = event if self._predicate is None else filtered(event, self._predicate)
            answer = None if seen is None else self._handler(seen)
            return answer if answer is not None and isawaitable(answer) else None
        except Exception:  # noqa: BLE001 - whatever the user's function does
            self._failed(event)
            return None

    async def _await_handler(self, answer: Awaitable[object], event: Event) -> None:
        try:
            await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failed(event)  # by something that it awaited: nobody wants this to end
        except Exception:  # noqa: BLE001
            self._failed(event)

    def _failed(self, event: Event) -> None:
        _logger.exception("handler %s failed on %s of %s", self.name, type(event).__name__, event.object)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
