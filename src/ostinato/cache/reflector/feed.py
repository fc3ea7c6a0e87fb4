"""Feed: keeps one store in sync with one collection on a server, and emits events of its changes.

Reflector, FIFO and store together; client-go's low-level `cache.Controller`.

- The store decides on the type of an event: an object that it has is updated, any other is added, whatever the watch
  event was called.
- The store is changed before handlers are called, so a handler never reads a state older than its event.
- Changed objects are packed (`store.packing`) when the feed is idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from ostinato.api.object import KindInfo
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.listener import Listener
from ostinato.cache.metrics import (
    OBJECTS,
    PROCESSING_LATENCY,
    QUEUED_ITEMS,
    STORE_VERSION,
    CacheMetrics,
    version_number,
)
from ostinato.cache.own_writes.expectations import Expectations, ExpectedState
from ostinato.cache.reflector.fifo import Bookmark, Change, Fifo, Idle, Popped, Put, ReplacedAll, SyncAll
from ostinato.cache.reflector.reflector import Reflector, ReflectorOptions
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder, Transform
from ostinato.cache.store.indexes import IndexBy
from ostinato.cache.store.store import Replacement, Store
from ostinato.client.list_watch import ListWatch
from ostinato.metrics import Sample
from ostinato.world import Timer, World

_PACKED_PER_STEP: Final = 16  # objects


class FeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `indexes`: in addition to the index by namespace. Defaults to none.
    - `transform`: reduces an object to what the cache stores. Defaults to removing managedFields.
    - `keep_managed_fields`: store managedFields too. Defaults to False.
    - `metadata_only`: the source serves PartialObjectMetadata. Defaults to False.
    - `last_stored`: a deleted object is emitted as the store had it, so that the source may send its identity alone.
      Defaults to False: as it is received.
    - `reflector`: how to list and watch.
    - `most_unpacked`: changed objects that may wait until the feed is idle before they are packed. Defaults to 4,000.
    - `idle_after`: seconds without a delta after which the feed is idle. Defaults to 1.
    - `metrics`: receives observations. Defaults to nothing.
    - `name`: the label `name` of the metrics.
    """

    indexes: tuple[IndexBy, ...] = ()
    transform: Transform | None = None
    keep_managed_fields: bool = False
    metadata_only: bool = False
    last_stored: bool = False
    reflector: ReflectorOptions = ReflectorOptions()
    most_unpacked: int = 4_000
    idle_after: float = 1.0
    metrics: CacheMetrics | None = None
    name: str = ""


class FeedCallbacks(msgspec.Struct, frozen=True):
    """The callbacks of a feed."""

    on_events: Callable[[list[Event]], object]
    on_synced: Callable[[], object]
    on_error: Callable[[Exception], object]


class Feed:
    def __init__(self, source: ListWatch, world: World, options: FeedOptions, callbacks: FeedCallbacks) -> None:
        self.source = source
        self.store = Store(options.indexes)
        self.expectations = Expectations(self.store, source, self._lost)
        self.has_synced = False  # the first list is in the store, and its events are emitted
        self.last_error: Exception | None = None  # None after the next successful delta
        self._options = options
        self._callbacks = callbacks
        self._clock = world.clock
        self.info: KindInfo | None = None  # known before the first list
        self._decoder: EntryDecoder | None = None  # set with `info`
        self._fifo = Fifo()
        self._popped_at = 0.0  # when the last delta was popped
        self._timer: Timer | None = None  # set while objects wait to be packed
        self._labels = _labels(options.name, source)
        self.reflector = Reflector(source, self._fifo, self, world, options.reflector, self._failed)

    def gauges(self) -> list[Sample]:
        """Return the current values of the gauges."""
        return [
            Sample(QUEUED_ITEMS, self._labels, len(self._fifo)),
            Sample(STORE_VERSION, self._labels, version_number(self.store.resource_version)),
            Sample(OBJECTS, self._labels, len(self.store)),
        ]

    @property
    def is_reliable(self) -> bool:
        """Whether the store has every object of the server, and there is no sign that the server was restored."""
        return not (self.reflector.restore_suspected or (self._decoder is not None and self._decoder.has_skipped))

    async def run(self) -> None:
        """Run until cancelled; all tasks have ended when it returns."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._consume(), name=f"cache of {self.source}")
                group.create_task(self.reflector.run(), name=f"reflector of {self.source}")
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.expectations.clear()

    def resync(self, listener: Listener) -> None:
        """Replay all objects to a listener, after the deltas in the FIFO."""
        if self.has_synced:
            self._fifo.put(SyncAll(listener))

    # Target of the reflector

    def decoder(self, info: KindInfo) -> EntryDecoder:
        self.info = info
        self._labels["resource"] = info.plural
        self._decoder = EntryDecoder(
            CollectionInfo(info, self._options.metadata_only),
            keep_managed_fields=self._options.keep_managed_fields,
            transform=self._options.transform,
            fields=[index.field for index in self.store.indexes if index.field],
        )
        return self._decoder

    def replacement(self, *, restored: bool) -> Replacement:
        return self.store.replacement(restored=restored)

    def _lost(self, state: ExpectedState) -> None:
        if self.reflector.is_watching:  # otherwise the next watch may still deliver it
            self.expectations.clear()
            self.reflector.suspect_restore(f"{state} was not observed")

    def _failed(self, error: Exception) -> None:
        self.last_error = error
        self._callbacks.on_error(error)

    # From the FIFO to the store

    async def _consume(self) -> NoReturn:
        while True:
            popped = await self._next()
            if isinstance(popped, Idle):
                await self._pack(0)
                continue
            began = self._popped_at = self._clock.monotonic()
            self.last_error = None
            if isinstance(popped, list):
                self._emit(self._changed(popped))
            elif isinstance(popped, ReplacedAll):
                self._emit(self._replaced(popped))
                if not self.has_synced:
                    self.has_synced = True
                    self._callbacks.on_synced()
            elif isinstance(popped, Bookmark):
                self.store.bookmark(popped.resource_version)
            else:
                popped.listener.enqueue_resync(self.store.entries())
            self.expectations.observe()
            if self._options.metrics is not None:
                self._options.metrics.observe(PROCESSING_LATENCY, self._clock.monotonic() - began, self._labels)

    async def _next(self) -> Popped:
        """Pop the next delta; meanwhile, pack changed objects once idle: until then they may soon change again."""
        if self.store.unpacked:
            await self._pack(self._options.most_unpacked)
            if self._timer is None:
                self._timer = self._clock.timer(self._options.idle_after, self._check_idle)
        return await self._fifo.pop()

    def _check_idle(self) -> None:
        """Put `Idle` into the FIFO if idle for long enough, else check again later."""
        left = self._popped_at + self._options.idle_after - self._clock.monotonic()
        self._timer = None if left <= 0 else self._clock.timer(left, self._check_idle)
        if left <= 0:
            self._fifo.put(Idle())

    async def _pack(self, most: int) -> None:
        """Pack changed objects until at most `most` are left, or a delta arrives."""
        while not self._fifo and self.store.unpacked > most:
            await self._clock.sleep(0)
            if not self._fifo:
                self.store.pack(_PACKED_PER_STEP)

    def _emit(self, events: list[Event]) -> None:
        if events:
            self._callbacks.on_events(events)

    def _changed(self, changes: list[Change]) -> list[Event]:
        store, events = self.store, list[Event]()
        for change in changes:
            entry = change.entry
            if isinstance(change, Put):
                known = store.put(entry)
                if known is None:
                    events.append(Added(entry))
                else:
                    events += _differences(known, entry)
            else:  # also of an unknown object: whoever created it may not know that it is gone
                known = store.remove(entry)
                if self._options.last_stored and known is not None and known.uid == entry.uid:
                    entry = msgspec.structs.replace(known, resource_version=entry.resource_version)
                events.append(Deleted(entry))
        return events

    def _replaced(self, delta: ReplacedAll) -> list[Event]:
        before = self.store.replace(delta.replacement, delta.resource_version)
        after = delta.replacement.contents.entries
        initial = not self.has_synced
        if delta.restored:  # what controllers did for these objects may be lost
            self.expectations.clear()
            return [
                *(Deleted(entry, final_state_known=False) for entry in before.values()),
                *(Added(entry, relisted=True) for entry in after.values()),
            ]
        removed = [entry for key, entry in before.items() if key not in after]
        events: list[Event] = [Deleted(entry, final_state_known=False) for entry in removed]
        for key, entry in after.items():
            known = before.get(key)
            if known is None:
                events.append(Added(entry, initial, relisted=not initial))
            elif known is not entry:
                events += _differences(known, entry, relisted=True)
        return events


def _differences(known: Entry, entry: Entry, *, relisted: bool = False) -> tuple[Event, ...]:
    """Return the events of an object that the store had."""
    if known.same_state(entry):
        return ()
    if known.uid != entry.uid:
        return Deleted(known, final_state_known=False), Added(entry, relisted=relisted)
    return (Updated(known, entry, relisted),)


def _labels(name: str, source: ListWatch) -> dict[str, str]:
    gvk = source.gvk
    return {"name": name, "group": gvk.group, "version": gvk.version, "resource": ""}
