"""Index: current state and recent history of all objects, in memory, as bytes.

- One resourceVersion sequence for all objects; it never goes back.
- A read sees only durable state.
- History is kept for a limited time, for lists at an older resourceVersion and for resuming watches. Older history is
  compacted: requesting it is an error.
- Writing is the part of a subclass: `LocalIndex` is the only writer of its log, `EtcdIndex` one of several of an etcd.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ostinato.server.store.collection import Collection
from ostinato.server.store.records import (
    NO_CACHE,
    Compacted,
    Complete,
    Describe,
    Entry,
    Event,
    StoreFailed,
    UnusableStore,
)
from ostinato.world import Clock

if TYPE_CHECKING:
    from ostinato.api.gvk import GroupVersionKind

HISTORY_SECONDS = 300.0
HISTORY_EVENTS = 100_000
HISTORY_BYTES = 128 * 1024 * 1024
SHARED_EVENTS = 512  # the newest events share their encodings among watchers,
SHARED_BYTES = 16 * 1024 * 1024  # up to this total size of their objects


class Index(ABC):
    """All collections, their history, and the readers that wait for a resourceVersion."""

    is_shared = False  # whether other servers write to the same store
    # Otherwise a server opens all collections at its start, and finds an object that cannot be read then.
    opens_on_first_use = False

    def __init__(self, clock: Clock, version: int) -> None:
        self._clock = clock
        self._collections: dict[str, Collection] = {}
        self.version = version  # every event up to this resourceVersion has been applied; readers see that state
        self.compacted = version  # the history begins after this resourceVersion
        self.failure: str | None = None  # why the last write failed; None once one succeeds
        self.is_full = False  # it failed for lack of space
        self._unusable = asyncio.Event()  # the index no longer follows its store; see `failed`
        self._order: deque[Collection] = deque()  # the collection of each event in the histories, oldest first
        self._history_bytes = 0  # bytes that the histories retain
        self._shared: deque[Event] = deque()  # the events that cache their encodings
        self._shared_bytes = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []  # readers that wait for a resourceVersion

    def collection(
        self, name: str, describe: Describe, complete: Complete | None = None, kind: GroupVersionKind | None = None
    ) -> Collection:
        """The collection of a kind, created on first use.

        `complete` adds defaults to objects that other servers have stored. `kind`: of a custom resource, in its storage
        version. The arguments of a later call are used if it has a kind: the definition has changed.
        """
        found = self._collections.get(name)
        if found is not None and kind is not None:
            found.describe, found.complete, found.kind = describe, complete, kind
        if found is None:
            found = Collection(name, describe, complete, kind)
            self._fill(found)
            self._collections[name] = found  # not before all objects have been read
        return found

    def _fill(self, collection: Collection) -> None:
        """Add the stored objects to a new collection."""
        for key, version, data in sorted(self._take_loaded(collection)):
            try:
                collection.entries[key] = Entry(key, version, data, *collection.describe(data))
            except Exception as error:
                raise UnusableStore(
                    f"{collection.name} {key} (resourceVersion {version}): the stored object cannot be read: {error}; "
                    "restore a snapshot with `ostinato snapshot restore`"
                ) from error
            collection.keys.append(key)

    @abstractmethod
    def _take_loaded(self, collection: Collection) -> Iterable[tuple[str, int, bytes]]:
        """The stored objects of a collection that is opened: key, resourceVersion, data."""

    @property
    def collections(self) -> dict[str, Collection]:
        return self._collections

    # Writing

    @abstractmethod
    async def put(
        self,
        collection: Collection,
        entry: Entry,
        expected: Entry | None,
        encode: Callable[[int], bytes],
        ttl: float = 0.0,
    ) -> Entry:
        """Write an object if its newest state is `expected` (None: it must not exist); Conflict if it is not.

        `encode` returns the data to store, given the resourceVersion of the write. `ttl`: seconds after which a store
        that has leases removes the object. Returns when the write is durable and visible to readers.
        """

    @abstractmethod
    async def delete(self, collection: Collection, key: str, expected: Entry) -> int:
        """Delete an object if its newest state is `expected`; Conflict if it is not.

        Returns the deletion's resourceVersion, once it is durable and visible to readers.
        """

    @abstractmethod
    def is_outdated(self, collection: Collection, key: str) -> bool:
        """Whether an object should be written again, although it has not changed."""

    @abstractmethod
    async def wait_pending(self) -> None:
        """Wait until the state that a rejected or unchanged write was compared with is certain.

        It may be undone by a crash, or be outdated by the write of another server; its client must not get a response
        before.
        """

    @abstractmethod
    async def catch_up(self) -> None:
        """Wait until every write that any server has acknowledged is visible; Timeout if it takes too long."""

    async def failed(self) -> None:
        """Wait until the index is unusable, and raise StoreFailed: a defect keeps it from following its store.

        It rejects writes from then on; what it shows is older than the store. A restart loads the store again.
        """
        await self._unusable.wait()
        raise StoreFailed(f"the store is unusable: {self.failure}")

    @abstractmethod
    def when_current(self, reader: Callable[[str | None], None]) -> None:
        """Like `catch_up`, without a task: call a function once, with None or why it failed."""

    @abstractmethod
    async def close(self) -> None:
        """Reject new writes, finish pending ones, close the watchers, and close the store."""

    # History

    def _apply(self, collection: Collection, event: Event, *, alone: bool = False) -> None:
        """Make a durable event visible to readers and watchers. `alone`: no other event comes with it."""
        collection.apply(event)
        shared = self._shared
        self._order.append(collection)
        self._history_bytes += event.retained
        shared.append(event)
        self._shared_bytes += event.length
        while len(shared) > SHARED_EVENTS or self._shared_bytes > SHARED_BYTES:
            old = shared.popleft()
            self._shared_bytes -= old.length
            old.encoded = NO_CACHE
        self.version = event.version
        collection.hub.publish(event, alone=alone)

    def _compact(self) -> None:
        """Drop events that exceed the limits of age, number or size."""
        order = self._order
        horizon = self._clock.monotonic() - HISTORY_SECONDS
        while order and (
            len(order) > HISTORY_EVENTS or self._history_bytes > HISTORY_BYTES or order[0].history[0].time < horizon
        ):
            event = order.popleft().history.popleft()
            self._history_bytes -= event.retained
            self.compacted = event.version

    def drop_history(self) -> None:
        """Drop the history."""
        for collection in self._collections.values():
            collection.history.clear()
        self._order.clear()
        self._history_bytes = 0
        self.compacted = self.version

    def select_at(self, collection: Collection, version: int, prefix: str, after: str) -> list[Entry]:
        """A collection at a resourceVersion; Compacted if it is too old."""
        if version < self.compacted:
            raise Compacted(self.compacted)
        return collection.select_at(version, prefix, after)

    async def select_past(
        self, collection: Collection, version: int, prefix: str, after: str, limit: int
    ) -> tuple[list[Entry], int]:
        """Like `select_at`, before the history, from a store that has it; and how many there are beyond the limit.

        Compacted if there is none. `limit`: 0 for all.
        """
        raise Compacted(self.compacted)

    def since(self, collection: Collection, version: int) -> list[Event]:
        """The events after a resourceVersion; Compacted if it is too old."""
        if version < self.compacted:
            raise Compacted(self.compacted)
        return collection.since(version)

    # Waiting

    async def wait_for(self, version: int) -> None:
        """Wait until a resourceVersion is durable. The caller sets the timeout."""
        if version <= self.version:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((version, waiter))
        try:
            await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                self._waiting = [(wanted, other) for wanted, other in self._waiting if other is not waiter]

    def _wake(self) -> None:
        if self._waiting:
            waiting = self._waiting
            self._waiting = [(version, waiter) for version, waiter in waiting if version > self.version]
            for version, waiter in waiting:
                if version <= self.version and not waiter.done():
                    waiter.set_result(None)
