"""FIFO between reflector and store: deltas in the order in which the server sent them.

client-go's atomic FIFO (1.36):

- Nothing is merged or dropped.
- Changes of single objects are popped in batches of up to 1,000; deltas of the whole store (a new state, a resync, a
  bookmark) one at a time.
- Bounded: the reflector waits while 2,000 deltas are queued, so a slow consumer slows the reading of the watch.
- One producer and one consumer, on one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import msgspec

from ostinato.cache.listener import Listener
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.store import Replacement

BATCH: Final = 1_000
CAPACITY: Final = 2 * BATCH


class Put(msgspec.Struct, frozen=True, gc=False):
    """An object was added or updated; the store decides which."""

    entry: Entry


class Remove(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted; `entry` is its final state."""

    entry: Entry


class ReplacedAll(msgspec.Struct, frozen=True):
    """The complete state of a list. `restored`: the server was restored, so known resourceVersions mean nothing."""

    replacement: Replacement
    resource_version: str
    restored: bool = False


class SyncAll(msgspec.Struct, frozen=True):
    """Replay all objects to a listener."""

    listener: Listener


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The server sent all changes up to this resourceVersion."""

    resource_version: str


class Idle(msgspec.Struct, frozen=True, gc=False):
    """Nothing has arrived for a while."""


Change = Put | Remove
Delta = Change | ReplacedAll | SyncAll | Bookmark | Idle
Popped = list[Change] | ReplacedAll | SyncAll | Bookmark | Idle
_CHANGES: Final = (Put, Remove)


class Fifo:
    def __init__(self) -> None:
        self._deltas: deque[Delta] = deque()
        self._consumer: asyncio.Future[None] | None = None  # set while the consumer waits; the queue is empty then
        self._producer: asyncio.Future[None] | None = None  # set while the producer waits; the queue is full then

    def __len__(self) -> int:
        return len(self._deltas)

    @property
    def full(self) -> bool:
        """Whether the producer should `wait_for_room`."""
        return len(self._deltas) >= CAPACITY

    def put(self, delta: Delta) -> None:
        self._deltas.append(delta)
        if self._consumer is not None and not self._consumer.done():
            self._consumer.set_result(None)

    async def wait_for_room(self) -> None:
        """Wait until it is not full."""
        while self.full:
            self._producer = asyncio.get_running_loop().create_future()
            try:
                await self._producer
            finally:
                self._producer = None

    async def pop(self) -> Popped:
        """Wait for the first delta; return it, or the batch of changes that begins with it."""
        deltas = self._deltas
        while not deltas:
            self._consumer = asyncio.get_running_loop().create_future()
            try:
                await self._consumer
            finally:
                self._consumer = None
        first = deltas.popleft()
        popped = self._batch(first) if isinstance(first, _CHANGES) else first
        if self._producer is not None and not self._producer.done():
            self._producer.set_result(None)
        return popped

    def _batch(self, first: Change) -> list[Change]:
        deltas, batch = self._deltas, [first]
        while deltas and len(batch) < BATCH and isinstance(change := deltas[0], _CHANGES):
            batch.append(change)
            deltas.popleft()
        return batch
