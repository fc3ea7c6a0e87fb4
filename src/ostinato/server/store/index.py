"""Index: current state and recent history of all objects, in memory, as bytes.

- One resourceVersion sequence for all objects; it never goes back.
- A write is checked against the newest state, durable or not; a read sees only durable state.
- History is kept for a limited time, for lists at an older resourceVersion and for resuming watches. Older history is
  compacted: requesting it is an error.
- Group commit: writes that arrive while a batch is being committed form the next batch.
- If the log rejects a batch, the batch and all writes queued behind it fail; reads continue, and the next write tries
  again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from ostinato.server.store.collection import Collection
from ostinato.server.store.records import (
    NO_CACHE,
    Compacted,
    Conflict,
    Describe,
    Entry,
    Event,
    Log,
    NoSpace,
    StoreFailed,
    UnusableStore,
    Write,
)
from ostinato.world import Clock

_logger = logging.getLogger(__name__)

HISTORY_SECONDS = 300.0
HISTORY_EVENTS = 100_000
HISTORY_BYTES = 128 * 1024 * 1024
SHARED_EVENTS = 512  # the newest events share their encodings among watchers,
SHARED_BYTES = 16 * 1024 * 1024  # up to this total size of their objects


class Index:
    """All collections, and the task that commits their writes in batches (group commit)."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._collections: dict[str, Collection] = {}
        self._loaded: dict[str, list[tuple[str, int, bytes]]] = {}  # of collections that are not open yet
        last, objects = log.load()
        self._assigned = max(last, 1)  # last assigned resourceVersion; at least 1, since clients use 0 for "any"
        self.version = self._assigned  # last durable resourceVersion, the one that readers see
        self.compacted = self._assigned  # the history begins after this resourceVersion
        for collection, key, version, data in objects:
            self._loaded.setdefault(collection, []).append((key, version, data))
        self._queue: list[tuple[Collection, Event, asyncio.Future[None]]] = []
        self._committing = False
        self._closed = False
        self.failure: str | None = None  # why the last batch failed; None once one succeeds
        self.is_full = False  # it failed for lack of space
        self._order: deque[Collection] = deque()  # the collection of each event in the histories, oldest first
        self._history_bytes = 0  # bytes that the histories retain
        self._shared: deque[Event] = deque()  # the events that cache their encodings
        self._shared_bytes = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []  # readers that wait for a resourceVersion
        self._finished = self._assigned  # last resourceVersion that is durable or has failed
        self._batch_waiters: list[asyncio.Future[None]] = []  # waiters for the end of the current batch

    def collection(self, name: str, describe: Describe) -> Collection:
        """The collection of a kind, created on first use."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name)
            for key, version, data in sorted(self._loaded.pop(name, ())):
                try:
                    found.entries[key] = Entry(key, version, data, *describe(data))
                except Exception as error:
                    raise UnusableStore(
                        f"{name} {key} (resourceVersion {version}): the stored object cannot be read: {error}; "
                        "restore a snapshot with `ostinato snapshot restore`"
                    ) from error
                found.keys.append(key)
        return found

    @property
    def collections(self) -> dict[str, Collection]:
        return self._collections

    async def put(
        self, collection: Collection, entry: Entry, expected: Entry | None, encode: Callable[[int], bytes]
    ) -> Entry:
        """Write an object if its newest state is `expected` (None: it must not exist).

        `encode` returns the data to store, given the resourceVersion of the write. Returns when durable.
        """
        current = self._check(collection, entry.key, expected)
        entry.version = self._assigned + 1
        entry.data = encode(entry.version)
        self._assigned = entry.version
        await self._enqueue(collection, Event(entry.key, entry.version, entry, current, self._clock.monotonic()))
        return entry

    async def delete(self, collection: Collection, key: str, expected: Entry) -> int:
        """Delete an object if its newest state is `expected`. Returns the deletion's resourceVersion, once durable."""
        current = self._check(collection, key, expected)
        self._assigned += 1
        version = self._assigned
        await self._enqueue(collection, Event(key, version, None, current, self._clock.monotonic()))
        return version

    def is_outdated(self, collection: Collection, key: str) -> bool:
        """Whether an object should be written again, although it has not changed."""
        return self._log.is_outdated(collection.name, key)

    def _check(self, collection: Collection, key: str, expected: Entry | None) -> Entry | None:
        if self._closed:
            raise StoreFailed("the server is shutting down")
        current = collection.newest(key)
        if current is not expected:
            raise Conflict(current)
        return current

    def _enqueue(self, collection: Collection, event: Event) -> asyncio.Future[None]:
        collection.add_pending(event)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.append((collection, event, done))
        if not self._committing:
            self._committing = True
            self._committer = loop.create_task(self._commit(), name="store commit")
        return done

    async def _commit(self) -> None:
        """Commit queued writes, in batches, until the queue is empty."""
        try:
            while self._queue:
                batch, self._queue = self._queue, []
                writes = [
                    Write(
                        collection.name,
                        event.key,
                        event.version,
                        None if event.entry is None else event.entry.data,
                        0 if event.previous is None else event.previous.version,
                    )
                    for collection, event, _ in batch
                ]
                try:
                    await self._log.append(writes)
                except Exception as error:  # noqa: BLE001 - whatever the error, the batch must not be acknowledged
                    self._end_batch(self._fail(batch, error))
                    continue
                self.failure = None
                for collection, event, _ in batch:
                    collection.apply(event)
                    self._record(collection, event)
                    self.version = event.version
                    collection.hub.publish(event)
                for _, _, done in batch:
                    if not done.done():
                        done.set_result(None)
                self._wake()
                self._end_batch(batch[-1][1].version)
                self._compact()
        finally:
            self._committing = False

    def _fail(self, batch: list[tuple[Collection, Event, asyncio.Future[None]]], error: Exception) -> int:
        """Undo a failed batch and all writes based on it; return the last resourceVersion undone."""
        self.failure = str(error)
        self.is_full = isinstance(error, NoSpace)
        _logger.error("store write failed error=%s", error)
        refused = [*batch, *self._queue]
        for collection, event, done in refused:
            collection.remove_pending(event)
            if not done.done():
                done.set_exception(StoreFailed(f"the store cannot write: {error}"))
        self._queue = []
        return refused[-1][1].version

    # History

    def _record(self, collection: Collection, event: Event) -> None:
        shared = self._shared
        self._order.append(collection)
        self._history_bytes += event.retained
        shared.append(event)
        self._shared_bytes += event.length
        while len(shared) > SHARED_EVENTS or self._shared_bytes > SHARED_BYTES:
            old = shared.popleft()
            self._shared_bytes -= old.length
            old.encoded = NO_CACHE

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

    async def wait_pending(self) -> None:
        """Wait until every write so far is durable or has failed.

        A rejected or unchanged write was compared with the newest state, which a crash could still undo; its client
        must not get a response before that state is durable.
        """
        last = self._assigned
        while self._committing and self._finished < last:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._batch_waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        if self._waiting:
            waiting = self._waiting
            self._waiting = [(version, waiter) for version, waiter in waiting if version > self.version]
            for version, waiter in waiting:
                if version <= self.version and not waiter.done():
                    waiter.set_result(None)

    def _end_batch(self, version: int) -> None:
        self._finished = version
        waiters, self._batch_waiters = self._batch_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def close(self) -> None:
        """Reject new writes, finish pending ones, close the watchers, and close the log."""
        if self._closed:
            return
        self._closed = True
        while self._committing:
            await asyncio.shield(self._committer)
        for collection in self._collections.values():
            collection.hub.close()
        self._log.close()
