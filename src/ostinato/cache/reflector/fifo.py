"""The FIFO between the reflector and the store: what the server told, in the order in which it did.

- Nothing is merged or dropped.
- Changes of single objects come out in batches of up to 1,000. What concerns the store as a whole (a new state, a
  resync, a bookmark) comes out alone.
- A reflector that is ahead by 2,000 has to wait: a slow consumer slows the reading of the watch, and memory is bounded.

There is one who puts and one who takes, on one event loop.
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
    """An object was added or has changed; the store knows which."""

    entry: Entry


class Remove(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted; `entry` is its last state."""

    entry: Entry


class ReplacedAll(msgspec.Struct, frozen=True):
    """The server was listed: this is all there is. `restored`: it went back, and nothing is as it was before."""

    replacement: Replacement
    resource_version: str
    restored: bool = False


class SyncAll(msgspec.Struct, frozen=True):
    """A listener is to be told of everything once more."""

    listener: Listener


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """Nothing else has happened up to this version."""

    resource_version: str


class Idle(msgspec.Struct, frozen=True, gc=False):
    """Nothing has come for a while."""


Change = Put | Remove
Delta = Change | ReplacedAll | SyncAll | Bookmark | Idle
Popped = list[Change] | ReplacedAll | SyncAll | Bookmark | Idle
_CHANGES: Final = (Put, Remove)


class Fifo:
    def __init__(self) -> None:
        self._deltas: deque[Delta] = deque()
        self._taker: asyncio.Future[None] | None = None  # set while the one who takes waits; there is nothing then
        self._putter: asyncio.Future[None] | None = None  # set while the one who puts waits; it is full then

    def __len__(self) -> int:
        return len(self._deltas)

    @property
    def full(self) -> bool:
        """Whether the one who puts should wait for `room`."""
        return len(self._deltas) >= CAPACITY

    def put(self, delta: Delta) -> None:
        self._deltas.append(delta)
        if self._taker is not None and not self._taker.done():
            self._taker.set_result(None)

    async def wait_for_room(self) -> None:
        """Return when it is not full."""
        while self.full:
            self._putter = asyncio.get_running_loop().create_future()
            try:
                await self._putter
            finally:
                self._putter = None

    async def pop(self) -> Popped:
        """What came first, and with a change those that follow it."""
        deltas = self._deltas
        while not deltas:
            self._taker = asyncio.get_running_loop().create_future()
            try:
                await self._taker
            finally:
                self._taker = None
        first = deltas.popleft()
        taken = self._with_changes(first) if isinstance(first, _CHANGES) else first
        if self._putter is not None and not self._putter.done():
            self._putter.set_result(None)
        return taken

    def _with_changes(self, first: Change) -> list[Change]:
        deltas, batch = self._deltas, [first]
        while deltas and len(batch) < BATCH and isinstance(change := deltas[0], _CHANGES):
            batch.append(change)
            deltas.popleft()
        return batch
