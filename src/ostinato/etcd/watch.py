"""One watch: its events, and where it has got to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Self

from msgspec import Struct

from ostinato.etcd.errors import EtcdError, WatchCancelled
from ostinato.etcd.messages import KeyValue
from ostinato.etcd.wire import data, number

_MAX_UNREAD: Final = 1 << 20  # bytes of a watch that wait for its reader


class Event(Struct, frozen=True, gc=False):
    """A change of a key. Of a deletion, `kv` has the key and the revision only."""

    is_delete: bool
    kv: KeyValue
    prev: KeyValue | None = None


class WatchBatch(Struct, frozen=True):
    """Events of one or more revisions, or progress up to a revision."""

    revision: int
    events: list[Event]


class Watch:
    """One watch; iterate over it once: `async for batch in watch`."""

    def __init__(
        self,
        identifier: int,
        request: bytes,
        start_revision: int,
        *,
        on_room: Callable[[], None],
        on_cancel: Callable[[Watch], None],
    ) -> None:
        self.id = identifier
        self.next_revision = start_revision  # of the next event; 0: not known before etcd has confirmed the watch
        self._on_room = on_room
        self._on_cancel = on_cancel
        self._request = request
        self._created: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._batches: deque[tuple[WatchBatch, int]] = deque()  # and the size of its message
        self._unread = 0
        self._fragments: list[Event] = []  # of a batch that is not complete
        self._error: EtcdError | None = None
        self._is_ended = False
        self._changed: asyncio.Future[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        while not self._batches:
            if self._error is not None:
                raise self._error
            if self._is_ended:
                raise StopAsyncIteration
            self._changed = asyncio.get_running_loop().create_future()
            try:
                await self._changed
            finally:
                self._changed = None
        batch, size = self._batches.popleft()
        self._unread -= size
        if self._unread < _MAX_UNREAD:
            self._on_room()
        return batch

    async def created(self) -> int:
        """Wait until etcd has confirmed the watch; return its revision at that time."""
        return await asyncio.shield(self._created)

    async def cancel(self) -> None:
        """End the watch; its iteration stops."""
        self._on_cancel(self)
        self.end(None)

    @property
    def is_full(self) -> bool:
        """Whether too much waits for the reader."""
        return self._unread >= _MAX_UNREAD

    def create_request(self, *, fragment: bool) -> bytes:
        """Return the request that creates the watch, from where it has got to."""
        body = self._request + number(3, self.next_revision) + number(7, self.id) + number(8, fragment)
        self._fragments = []
        return data(1, body)

    def confirm(self, revision: int) -> None:
        if not self.next_revision:
            self.next_revision = revision + 1
        if not self._created.done():
            self._created.set_result(revision)

    def deliver(self, revision: int, events: list[Event], size: int, *, is_fragment: bool) -> None:
        """Take events of a response."""
        if self._fragments:
            events = self._fragments + events
        if is_fragment:
            self._fragments = events
            return
        self._fragments = []
        self.next_revision = max(self.next_revision, events[-1].kv.mod_revision + 1)
        self._append(WatchBatch(revision, events), size)

    def progress(self, revision: int, *, is_trusted: bool) -> None:
        """Take a progress notification. `is_trusted`: the next events are certainly later."""
        if is_trusted:
            self.next_revision = max(self.next_revision, revision + 1)
        self._append(WatchBatch(revision, []), 0)

    def end(self, error: EtcdError | None) -> None:
        if self._is_ended:
            return
        self._is_ended, self._error = True, error
        if not self._created.done():
            self._created.set_exception(error or WatchCancelled("the watch was cancelled"))
            self._created.exception()  # it may not be awaited
        self._wake()

    def _append(self, batch: WatchBatch, size: int) -> None:
        self._batches.append((batch, size))
        self._unread += size
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
