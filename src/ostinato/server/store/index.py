"""The index: the present and the recent past of every object, in memory, as bytes.

- One version for all: each write takes the next number, whatever it writes. Versions never go back.
- A write is checked against the newest state, durable or not; a read sees only what is durable.
- The past is kept for a while, so that a list can be read as it was and a watch can start where another ended. What is
  older than that is compacted: asking for it is an error, never a gap.
- A write that the log refuses never was: it and those that were waiting behind it fail, and reads go on. The next write
  tries again.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from ostinato.server.store.hub import Hub
from ostinato.world import Clock

_logger = logging.getLogger(__name__)

HISTORY_SECONDS = 300.0
HISTORY_EVENTS = 100_000
HISTORY_BYTES = 128 * 1024 * 1024
SHARED_EVENTS = 512  # the newest events keep their encodings for all watchers,
SHARED_BYTES = 16 * 1024 * 1024  # up to this size of their objects


class Entry:
    """One version of one object."""

    __slots__ = ("converted", "data", "fields", "key", "labels", "uid", "version")

    # By apiVersion, what a conversion webhook made of it. Set only where there is one.
    converted: dict[str, Entry]

    def __init__(
        self, key: str, version: int, data: bytes, labels: dict[str, str], fields: dict[str, str], uid: str
    ) -> None:
        self.key = key  # "namespace/name", or "name" for cluster-scoped objects
        self.version = version
        self.data = data  # the object as JSON, without kind and apiVersion, which the resource adds
        self.labels = labels
        self.fields = fields  # what field selectors may ask for
        self.uid = uid


class _Forgetful(dict[Any, bytes]):
    """The encodings of an event that few will still ask for: none are kept."""

    def __setitem__(self, key: Any, value: bytes) -> None:
        pass


_FORGETFUL = _Forgetful()


class Event:
    """One write: what was there before, and what is there since. Both are never None at once."""

    __slots__ = ("encoded", "entry", "kept", "key", "length", "previous", "time", "version")

    def __init__(self, key: str, version: int, entry: Entry | None, previous: Entry | None, time: float) -> None:
        self.key = key
        self.version = version
        self.entry = entry  # None: deleted
        self.previous = previous  # None: created
        self.time = time
        self.kept = 0 if previous is None else len(previous.data)  # the bytes that the history holds because of it
        self.length = self.kept if entry is None else len(entry.data)  # the bytes of the object that it shows
        self.encoded: dict[Any, bytes] = {}  # the encodings that watchers have asked for, shared by all of them


class Write(msgspec.Struct, frozen=True):
    """One write on its way to the log."""

    collection: str
    key: str
    version: int
    data: bytes | None  # None: deleted
    replaces: int = 0  # the version of the object that was there before; 0: none was


class Log(Protocol):
    """What makes writes durable. It is called from one task at a time."""

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        """The last version, and every object: collection, key, version, data."""

    async def append(self, writes: Sequence[Write]) -> None:
        """Make the writes durable, all or none; raises if it could not."""

    def close(self) -> None: ...


class Conflict(Exception):  # noqa: N818
    """The object is not in the version that the write expects; `current` is what is there."""

    def __init__(self, current: Entry | None) -> None:
        super().__init__("the object has changed")
        self.current = current


class Compacted(Exception):  # noqa: N818
    """The version asked for is older than the history that is kept."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest version kept is {oldest}")
        self.oldest = oldest


class UnusableStore(Exception):  # noqa: N818
    """What should hold the log cannot; the message says why, and what to do."""


class StoreFailed(Exception):  # noqa: N818
    """A write could not be made durable; it never was."""


class NoSpace(Exception):  # noqa: N818
    """The log has no room for a batch of writes."""


# Reads labels, selectable fields and uid of stored data: the collection's owner knows its kind.
Describe = Callable[[bytes], tuple[dict[str, str], dict[str, str], str]]


class Collection:
    """The objects of one kind."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []  # the keys of entries, sorted as the API lists them
        self.history: deque[Event] = deque()  # the recent writes, oldest first
        self.pending: dict[str, Entry | None] = {}  # written but not durable yet; None: deleted
        self._pending_versions: dict[str, int] = {}  # of the newest write of each key that is pending
        self._selected: tuple[str, list[Entry]] | None = None  # the last answer of `select`, until it is an old one
        self.hub = Hub()

    def newest(self, key: str) -> Entry | None:
        """The newest version, durable or not: what a write goes by."""
        if key in self.pending:
            return self.pending[key]
        return self.entries.get(key)

    def select(self, prefix: str = "", after: str = "") -> list[Entry]:
        """The present objects whose key starts with the prefix, from the key `after` (exclusive) on, in order.

        The list is not to be changed.
        """
        if not after and self._selected is not None and self._selected[0] == prefix:
            return self._selected[1]
        keys = self.keys
        start = bisect_right(keys, after) if after > prefix else bisect_left(keys, prefix)
        end = bisect_left(keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(keys)
        found = list(map(self.entries.__getitem__, keys[start:end]))
        if not after:
            self._selected = prefix, found
        return found

    def select_at(self, version: int, prefix: str = "", after: str = "") -> list[Entry]:
        """The same as it was at a version of the recent past."""
        undone: dict[str, Entry | None] = {}
        for event in reversed(self.history):
            if event.version <= version:
                break
            undone[event.key] = event.previous
        if not undone:
            return self.select(prefix, after)
        then = {entry.key: entry for entry in self.select(prefix, after) if entry.key not in undone}
        then |= {key: e for key, e in undone.items() if e is not None and key.startswith(prefix) and key > after}
        return [then[key] for key in sorted(then)]

    def since(self, version: int) -> list[Event]:
        """The recent writes after a version, oldest first."""
        found: list[Event] = []
        for event in reversed(self.history):
            if event.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def pend(self, event: Event) -> None:
        """Let writes go by an event that is on its way to the log."""
        self.pending[event.key] = event.entry
        self._pending_versions[event.key] = event.version

    def unpend(self, event: Event) -> None:
        """An event is durable, or never will be. Later writes of its key may still be on their way."""
        key = event.key
        if self._pending_versions.get(key) == event.version:
            del self.pending[key], self._pending_versions[key]

    def apply(self, event: Event) -> None:
        """Let readers see an event, which is durable."""
        key, entry = event.key, event.entry
        if self._selected is not None and key.startswith(self._selected[0]):
            self._selected = None
        if entry is None:
            del self.entries[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if event.previous is None:
                insort(self.keys, key)
            self.entries[key] = entry
        self.unpend(event)
        self.history.append(event)


class Index:
    """All collections, and the one task that makes their writes durable, many at a time."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._collections: dict[str, Collection] = {}
        self._loaded: dict[str, list[tuple[str, int, bytes]]] = {}  # of collections that nobody has opened yet
        last, objects = log.load()
        self._assigned = max(last, 1)  # the last version given out; clients take 0 for "any"
        self.version = self._assigned  # the last durable version: what readers see
        self.compacted = self._assigned  # the history begins after this version
        for collection, key, version, data in objects:
            self._loaded.setdefault(collection, []).append((key, version, data))
        self._queue: list[tuple[Collection, Event, asyncio.Future[None]]] = []
        self._committing = False
        self._closed = False
        self.failure: str | None = None  # why the last batch of writes was refused, until one succeeds
        self.is_full = False  # that was for want of space
        self._order: deque[Collection] = deque()  # of every event of every history, oldest first
        self._past_bytes = 0  # what the histories hold beyond the present
        self._shared: deque[Event] = deque()  # the events that keep their encodings
        self._shared_bytes = 0
        self._arrived: list[tuple[int, asyncio.Future[None]]] = []  # readers that wait for a version
        self._ended = self._assigned  # the last version that is durable or has failed
        self._turns: list[asyncio.Future[None]] = []  # who waits for the end of the batch under way

    def collection(self, name: str, describe: Describe) -> Collection:
        """The collection of a kind, made on first use."""
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
        """Write an object if the newest version of it is `expected` (None: it must not exist).

        `encode` is called with the version that the write takes, and gives the bytes to store. Returns when durable.
        """
        current = self._check(collection, entry.key, expected)
        entry.version = self._assigned + 1
        entry.data = encode(entry.version)
        self._assigned = entry.version
        await self._enqueue(collection, Event(entry.key, entry.version, entry, current, self._clock.monotonic()))
        return entry

    async def delete(self, collection: Collection, key: str, expected: Entry) -> int:
        """Remove an object if the newest version of it is `expected`. Returns the deletion's version, once durable."""
        current = self._check(collection, key, expected)
        self._assigned += 1
        version = self._assigned
        await self._enqueue(collection, Event(key, version, None, current, self._clock.monotonic()))
        return version

    def _check(self, collection: Collection, key: str, expected: Entry | None) -> Entry | None:
        if self._closed:
            raise StoreFailed("the server is shutting down")
        current = collection.newest(key)
        if current is not expected:
            raise Conflict(current)
        return current

    def _enqueue(self, collection: Collection, event: Event) -> asyncio.Future[None]:
        collection.pend(event)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.append((collection, event, done))
        if not self._committing:
            self._committing = True
            self._committer = loop.create_task(self._commit(), name="store commit")
        return done

    async def _commit(self) -> None:
        """Make what is queued durable, as one batch a turn, until nothing is."""
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
                except Exception as error:  # noqa: BLE001 - whatever went wrong, the batch may not be acknowledged
                    self._end_turn(self._fail(batch, error))
                    continue
                self.failure = None
                for collection, event, _ in batch:
                    collection.apply(event)
                    self._remember(collection, event)
                    self.version = event.version
                    collection.hub.publish(event)
                for _, _, done in batch:
                    if not done.done():
                        done.set_result(None)
                self._wake()
                self._end_turn(batch[-1][1].version)
                self._compact()
        finally:
            self._committing = False

    def _fail(self, batch: list[tuple[Collection, Event, asyncio.Future[None]]], error: Exception) -> int:
        """Undo a batch that the log refused, and what was written on top of it meanwhile; the last version undone."""
        self.failure = str(error)
        self.is_full = isinstance(error, NoSpace)
        _logger.error("the store cannot write: %s", error)
        refused = [*batch, *self._queue]
        for collection, event, done in refused:
            collection.unpend(event)
            if not done.done():
                done.set_exception(StoreFailed(f"the store cannot write: {error}"))
        self._queue = []
        return refused[-1][1].version

    # The past

    def _remember(self, collection: Collection, event: Event) -> None:
        shared = self._shared
        self._order.append(collection)
        self._past_bytes += event.kept
        shared.append(event)
        self._shared_bytes += event.length
        while len(shared) > SHARED_EVENTS or self._shared_bytes > SHARED_BYTES:
            old = shared.popleft()
            self._shared_bytes -= old.length
            old.encoded = _FORGETFUL

    def _compact(self) -> None:
        """Forget what is too old, or too much."""
        order = self._order
        horizon = self._clock.monotonic() - HISTORY_SECONDS
        while order and (
            len(order) > HISTORY_EVENTS or self._past_bytes > HISTORY_BYTES or order[0].history[0].time < horizon
        ):
            event = order.popleft().history.popleft()
            self._past_bytes -= event.kept
            self.compacted = event.version

    def forget(self) -> None:
        """Let the history begin now."""
        for collection in self._collections.values():
            collection.history.clear()
        self._order.clear()
        self._past_bytes = 0
        self.compacted = self.version

    def select_at(self, collection: Collection, version: int, prefix: str, after: str) -> list[Entry]:
        """A collection as it was at a version; Compacted if that is too long ago."""
        if version < self.compacted:
            raise Compacted(self.compacted)
        return collection.select_at(version, prefix, after)

    def since(self, collection: Collection, version: int) -> list[Event]:
        """The writes after a version; Compacted if that is too long ago."""
        if version < self.compacted:
            raise Compacted(self.compacted)
        return collection.since(version)

    # Waiting for a version

    async def arrived(self, version: int) -> None:
        """Wait until a version is durable. The caller bounds the time."""
        if version <= self.version:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrived.append((version, waiter))
        try:
            await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                self._arrived = [(wanted, other) for wanted, other in self._arrived if other is not waiter]

    async def settled(self) -> None:
        """Wait until every write so far is durable or has failed.

        A write that is refused, or changes nothing, goes by the newest state, which a crash could still undo; its
        client must not be told before it cannot.
        """
        last = self._assigned
        while self._committing and self._ended < last:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            await turn

    def _wake(self) -> None:
        if self._arrived:
            waiting = self._arrived
            self._arrived = [(version, waiter) for version, waiter in waiting if version > self.version]
            for version, waiter in waiting:
                if version <= self.version and not waiter.done():
                    waiter.set_result(None)

    def _end_turn(self, version: int) -> None:
        self._ended = version
        turns, self._turns = self._turns, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)

    async def close(self) -> None:
        """Take no more writes, finish those that are under way, end the watches, and close the log."""
        if self._closed:
            return
        self._closed = True
        while self._committing:
            await asyncio.shield(self._committer)
        for collection in self._collections.values():
            collection.hub.close()
        self._log.close()
