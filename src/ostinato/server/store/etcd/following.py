"""An index that follows an etcd: changes come from one watch of all keys, and from the answers to own writes.

- Own writes and those of other servers are applied in the order of their revisions: every server has the same history.
- An own write is applied with etcd's answer if it is the next revision, so that its writer need not wait for the watch.
  After a gap, all up to it come from the watch.
- The previous state of an event is the one in the index, so the watch does not ask etcd for it.
- Keys of kinds that are not served yet are kept, undecoded. Other keys are ignored.
- The watch resumes after the last revision that it has delivered. If etcd has compacted that, all objects are loaded
  again: watchers are closed, and their resourceVersions are too old then.
- An etcd that has gone back to an earlier revision has lost writes: all objects are loaded again, also those that
  have the same revision.
"""

from __future__ import annotations

import asyncio
import logging

from ostinato.etcd import Compacted as CompactedRevision
from ostinato.etcd import EtcdClient, EtcdError, KeyValue, Watch, WatchBatch, WatchStream, prefix_end
from ostinato.etcd import Event as EtcdEvent
from ostinato.server.store.collection import Collection
from ostinato.server.store.etcd.layout import Layout
from ostinato.server.store.etcd.objects import Objects, load
from ostinato.server.store.etcd.values import Draft, Values
from ostinato.server.store.index import Index
from ostinato.server.store.records import Entry, Event
from ostinato.world import Clock

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class PendingWrite:
    """A write of this server that is under way. Other writes of its key wait for its end."""

    def __init__(self, collection: Collection, key: str, entry: Entry | None, draft: Draft | None, epoch: int) -> None:
        self.collection = collection
        self.key = key
        self.entry = entry  # None: a deletion
        self.draft = draft
        self.epoch = epoch  # in which it began
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class FollowingIndex(Index):
    is_shared = True

    def __init__(self, client: EtcdClient, layout: Layout, values: Values, clock: Clock) -> None:
        super().__init__(clock, 0)
        self._client = client
        self._layout = layout
        self._values = values
        self._unopened: Objects = {}  # of collections that are not open yet
        self._writes: dict[bytes, PendingWrite] = {}  # by key in etcd
        self._answered: dict[int, PendingWrite] = {}  # by revision: own writes that wait for earlier revisions
        self._epoch = 0  # how often all objects were loaded; a revision may have another meaning after that
        self._stream: WatchStream | None = None
        self._watch: Watch | None = None
        self._is_outdated = False  # the state cannot be followed: all objects have to be loaded
        self._has_gone_back = False  # etcd, to an earlier revision

    async def _load(self) -> None:
        """Load the objects at the current revision. Raises EtcdError."""
        self.version, self._unopened = await load(self._client, self._layout)
        self.compacted = self.version

    def _take_loaded(self, collection: Collection) -> list[tuple[str, int, bytes]]:
        found = []
        for key, kv in self._unopened.get(collection.name, {}).items():
            found.append((key, kv.mod_revision, self._values.read(collection, kv.key, kv.value, kv.mod_revision)))
        self._unopened.pop(collection.name, None)
        return found

    async def _follow(self) -> None:
        """Follow the changes from the present state on; if that is not possible, from a loaded one."""
        while True:
            try:
                async with self._client.watch_stream() as stream:
                    await self._follow_on(stream)
                continue
            except CompactedRevision:
                _logger.warning("etcd has compacted unseen events, loading all objects revision=%d", self.version)
                self._is_outdated = True
                continue
            except EtcdError as error:
                _logger.warning("etcd watch failed, retrying retry_seconds=%g error=%s", _RETRY_SECONDS, error)
            except Exception:
                _logger.exception("cannot apply events of etcd, loading all objects revision=%d", self.version)
                self._is_outdated = True
            finally:
                self._stream = self._watch = None
            await self._clock.sleep(_RETRY_SECONDS)

    async def _follow_on(self, stream: WatchStream) -> None:
        start, after = self._layout.start, 0 if self._is_outdated else self.version + 1
        watch = stream.watch(start, prefix_end(start), start_revision=after, progress_notify=True)
        if self._is_outdated:
            await watch.created()  # before the objects are loaded, so that no compaction can come between
            self._replace(*await load(self._client, self._layout))
        self._stream, self._watch = stream, watch
        async for batch in watch:
            self._receive(batch)

    async def start_over(self, revision: int) -> None:
        """Load all objects, if etcd is at a revision before that of the state."""
        if revision >= self.version or self._has_gone_back or self._watch is None:
            return
        _logger.error("etcd has lost writes, loading all objects revision=%d previous=%d", revision, self.version)
        self._is_outdated = self._has_gone_back = True
        await self._watch.cancel()

    def _receive(self, batch: WatchBatch) -> None:
        now, seen = self._clock.monotonic(), self.version
        revision = batch.revision
        for event in batch.events:
            revision = event.kv.mod_revision
            if revision > seen:
                self._take(event, now)
        self.version = max(self.version, revision)
        self._take_answered(now)
        self._wake()
        self._compact()

    def _confirm(self, write: PendingWrite, revision: int) -> None:
        """Take the answer to an own write, which etcd has made at a revision of its own."""
        if write.epoch == self._epoch and revision > self.version:
            self._answered[revision] = write
            if revision == self.version + 1:
                self._take_answered(self._clock.monotonic())
                self._wake()

    def _take_answered(self, now: float) -> None:
        """Apply the own writes that follow the state without a gap; not while it is loaded."""
        answered = self._answered
        while answered and not self._is_outdated:
            version = self.version + 1
            write = answered.pop(version, None)
            if write is None:
                return
            collection, key, entry = write.collection, write.key, write.entry
            previous = collection.entries.get(key)
            if entry is not None:
                assert write.draft is not None
                entry.version, entry.data = version, write.draft.data(version)
            self._apply(collection, Event(key, version, entry, previous, now))

    def _take(self, event: EtcdEvent, now: float) -> None:
        kv = event.kv
        place = self._layout.split(kv.key)
        if place is None:
            return
        name, key = place
        collection = self._collections.get(name)
        if collection is None:
            unopened = self._unopened.setdefault(name, {})
            if event.is_delete:
                unopened.pop(key, None)
            else:
                unopened[key] = kv
            return
        previous = collection.entries.get(key)
        entry = None if event.is_delete else self._entry(collection, key, kv)
        if event.is_delete:
            self._values.forget(kv.key)
        if entry is not None or (event.is_delete and previous is not None):
            self._apply(collection, Event(key, kv.mod_revision, entry, previous, now))

    def _entry(self, collection: Collection, key: str, kv: KeyValue) -> Entry | None:
        """The entry of a value; None, which is logged, if it cannot be read."""
        version = kv.mod_revision
        write = self._writes.get(kv.key)
        if write is not None and write.draft is not None and write.draft.value == kv.value:
            entry = write.entry
            assert entry is not None
            entry.version, entry.data = version, write.draft.data(version)
            return entry
        try:
            data = self._values.read(collection, kv.key, kv.value, version)
            return Entry(key, version, data, *collection.describe(data))
        except Exception as error:  # noqa: BLE001 - other objects are served
            _logger.error("stored object cannot be read collection=%s key=%s error=%s", collection.name, key, error)
            return None

    def _replace(self, revision: int, objects: Objects) -> None:
        """Replace the state by the loaded one. The listeners receive the differences; watchers are closed."""
        for collection, event in self._differences(revision, objects):
            collection.apply(event)
            collection.hub.notify(event)
        self._unopened = {name: found for name, found in objects.items() if name not in self._collections}
        self.version = revision
        self._epoch += 1
        self._answered.clear()
        self.drop_history()
        self._is_outdated = self._has_gone_back = False
        for collection in self._collections.values():
            collection.hub.end()
        self._wake()

    def _differences(self, revision: int, objects: Objects) -> list[tuple[Collection, Event]]:
        """The events that lead from the present state to the objects of a revision."""
        found: list[tuple[Collection, Event]] = []
        now = self._clock.monotonic()
        for name, collection in self._collections.items():
            stored = objects.get(name, {})
            for key, old in collection.entries.items():
                if key not in stored:
                    found.append((collection, Event(key, revision, None, old, now)))
            for key, kv in stored.items():
                previous = collection.entries.get(key)
                if previous is None or previous.version != kv.mod_revision or self._has_gone_back:
                    entry = self._entry(collection, key, kv)
                    if entry is not None:
                        found.append((collection, Event(key, entry.version, entry, previous, now)))
        return sorted(found, key=lambda each: each[1].version)
