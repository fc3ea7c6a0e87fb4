"""Local index: the only writer of its log.

- It assigns the resourceVersions. A write is checked against the newest state, durable or not.
- Group commit: writes that arrive while a batch is being committed form the next batch.
- If the log rejects a batch, the batch and all writes queued behind it fail; reads continue, and the next write tries
  again.
- If a durable batch cannot be applied, which is a defect, the index is unusable: see `Index.failed`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry, Event, Log, NoSpace, OutcomeUnknown, StoreFailed, Write
from ostinato.world import Clock

_logger = logging.getLogger(__name__)


class LocalIndex(Index):
    """The index of one process, and the task that commits its writes in batches (group commit)."""

    def __init__(self, log: Log, clock: Clock) -> None:
        # Those of collections that are not open yet.
        last, self._loaded = self._load(log)
        self._assigned = max(last, 1)  # last assigned resourceVersion; at least 1, since clients use 0 for "any"
        super().__init__(clock, self._assigned)
        self._log = log
        self._queue: list[tuple[Collection, Event, asyncio.Future[None]]] = []
        self._committing = False
        self._closed = False
        self._finished = self._assigned  # last resourceVersion that is durable or has failed
        self._batch_waiters: list[asyncio.Future[None]] = []  # waiters for the end of the current batch
        self._failures = 0  # batches that failed

    def _load(self, log: Log) -> tuple[int, dict[str, list[tuple[str, int, bytes]]]]:
        """Return the last resourceVersion and, by collection, the stored objects."""
        last, objects = log.load()
        loaded: dict[str, list[tuple[str, int, bytes]]] = {}
        for collection, key, version, data in objects:
            loaded.setdefault(collection, []).append((key, version, data))
        return last, loaded

    def _take_loaded(self, collection: Collection) -> Iterable[tuple[str, int, bytes]]:
        return self._loaded.pop(collection.name, ())

    async def put(
        self,
        collection: Collection,
        entry: Entry,
        expected: Entry | None,
        encode: Callable[[int], bytes],
        ttl: float = 0.0,  # here, `Expiry` removes objects
    ) -> Entry:
        current = self._check(collection, entry.key, expected)
        entry.version = self._assigned + 1
        entry.data = encode(entry.version)
        self._assigned = entry.version
        await self._enqueue(collection, Event(entry.key, entry.version, entry, current, self._clock.monotonic()))
        return entry

    async def delete(self, collection: Collection, key: str, expected: Entry) -> int:
        current = self._check(collection, key, expected)
        self._assigned += 1
        version = self._assigned
        await self._enqueue(collection, Event(key, version, None, current, self._clock.monotonic()))
        return version

    def is_outdated(self, collection: Collection, key: str) -> bool:
        return self._log.is_outdated(collection.name, key)

    def _check(self, collection: Collection, key: str, expected: Entry | None) -> Entry | None:
        if self._closed:
            raise StoreFailed("the server is shutting down")
        if self._unusable.is_set():
            raise StoreFailed(f"the store is unusable: {self.failure}")
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
                try:
                    for collection, event, _ in batch:
                        self._apply(collection, event, alone=len(batch) == 1)
                except Exception as error:
                    _logger.exception("durable write not applied, restart the server key=%s", event.key)
                    self._give_up(batch, f"internal error: {type(error).__name__}; see the server log")
                    return
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
        self._failures += 1
        self.is_full = isinstance(error, NoSpace)
        _logger.error("store write failed error=%s", error)
        refused = [*batch, *self._queue]
        for collection, event, done in refused:
            collection.remove_pending(event)
            if not done.done():
                done.set_exception(StoreFailed(f"the store cannot write: {error}"))
        self._queue = []
        return refused[-1][1].version

    def _give_up(self, batch: list[tuple[Collection, Event, asyncio.Future[None]]], reason: str) -> None:
        """Answer all waiting writes, end the watches, and reject what follows: the index differs from the log."""
        self._failures += 1
        for _, _, done in batch:
            if not done.done():
                done.set_exception(OutcomeUnknown(reason, timed_out=False))
        for _, _, done in self._queue:
            if not done.done():
                done.set_exception(StoreFailed(reason))
        self._queue = []
        self.failure = reason
        self._unusable.set()
        for collection in self._collections.values():
            collection.hub.close()
        self._end_batch(self._assigned)

    async def wait_pending(self) -> None:
        """Wait until every write so far is durable; StoreFailed if one has failed.

        An answer that was decided on a failed write would tell of a state that never existed.
        """
        last, failures = self._assigned, self._failures
        while self._committing and self._finished < last:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._batch_waiters.append(waiter)
            await waiter
        if self._failures != failures:
            raise StoreFailed(f"the store cannot write: {self.failure or 'a concurrent write failed'}")

    async def catch_up(self) -> None:
        """Nothing to wait for: this index acknowledges only what it shows."""

    def when_current(self, reader: Callable[[str | None], None]) -> None:
        reader(None)

    def _end_batch(self, version: int) -> None:
        self._finished = version
        waiters, self._batch_waiters = self._batch_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        while self._committing:
            await asyncio.shield(self._committer)
        for collection in self._collections.values():
            collection.hub.close()
        self._log.close()
