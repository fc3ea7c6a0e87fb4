"""A feed: keeps one store equal to one collection on a server, and tells what changes.

Reflector, FIFO and store, joined together. The store decides what has happened: an object that it has is updated, one
that it has not is added, whatever the event was called. It is changed first, and then handlers are told: who reads the
store from a handler sees a state that is not older than what the handler was told.
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

_AT_ONCE: Final = 16  # objects that are packed in one step
_QUIET: Final = 1.0  # seconds in which nothing comes
_MOST_UNPACKED: Final = 4_000  # objects that have changed and wait for that


class FeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `indexes`: kept besides that by namespace.
    - `transform`: what to hold of an object. Defaults to all but its managedFields.
    - `keep_managed_fields`: hold them, too.
    - `metadata_only`: the source gives nothing but metadata.
    - `reflector`: how the server is asked.
    - `metrics`: is told what happens. Defaults to nobody.
    - `name`: whose cache it is, in the metrics.
    """

    indexes: tuple[IndexBy, ...] = ()
    transform: Transform | None = None
    keep_managed_fields: bool = False
    metadata_only: bool = False
    reflector: ReflectorOptions = ReflectorOptions()
    metrics: CacheMetrics | None = None
    name: str = ""


class FeedCallbacks(msgspec.Struct, frozen=True):
    """Who is told what a feed does."""

    on_events: Callable[[list[Event]], object]
    on_synced: Callable[[], object]
    on_error: Callable[[Exception], object]


class Feed:
    def __init__(self, source: ListWatch, world: World, options: FeedOptions, callbacks: FeedCallbacks) -> None:
        self.source = source
        self.store = Store(options.indexes)
        self.expectations = Expectations(self.store, source, self._lost)
        self.has_synced = False  # whether the first list is in the store, and its events are told
        self.last_error: Exception | None = None  # since the last time that all was well
        self._options = options
        self._callbacks = callbacks
        self._clock = world.clock
        self.info: KindInfo | None = None  # what the server calls the kind; known when the first list is asked for
        self._decoder: EntryDecoder | None = None  # since then
        self._fifo = Fifo()
        self._taken_at = 0.0  # when something last came out of the FIFO
        self._timer: Timer | None = None  # while something is to be packed
        self._labels = _labels(options.name, source)
        self.reflector = Reflector(source, self._fifo, self, world, options.reflector, self._failed)

    def gauges(self) -> list[Sample]:
        """What is the case now, for whoever keeps metrics."""
        return [
            Sample(QUEUED_ITEMS, self._labels, len(self._fifo)),
            Sample(STORE_VERSION, self._labels, version_number(self.store.resource_version)),
            Sample(OBJECTS, self._labels, len(self.store)),
        ]

    @property
    def is_sure(self) -> bool:
        """Whether the store has all that the server told, and nothing speaks against what it told."""
        return not (self.reflector.restore_suspected or (self._decoder is not None and self._decoder.has_skipped))

    async def run(self) -> None:
        """Until it is cancelled; returns after all of it has ended."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._consume(), name=f"cache of {self.source}")
                group.create_task(self.reflector.run(), name=f"reflector of {self.source}")
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.expectations.clear()

    def resync(self, listener: Listener) -> None:
        """Tell a listener of everything once more, after what has already come from the server."""
        if self.has_synced:
            self._fifo.put(SyncAll(listener))

    # What the reflector needs

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
        if self.reflector.is_watching:  # else it is yet to come: nothing does
            self.expectations.clear()
            self.reflector.suspect_restore(f"{state} does not come")

    def _failed(self, error: Exception) -> None:
        self.last_error = error
        self._callbacks.on_error(error)

    # From the FIFO into the store

    async def _consume(self) -> NoReturn:
        while True:
            taken = await self._next()
            if isinstance(taken, Idle):
                await self._pack(0)
                continue
            began = self._taken_at = self._clock.monotonic()
            self.last_error = None
            if isinstance(taken, list):
                self._emit(self._changed(taken))
            elif isinstance(taken, ReplacedAll):
                self._emit(self._replaced(taken))
                if not self.has_synced:
                    self.has_synced = True
                    self._callbacks.on_synced()
            elif isinstance(taken, Bookmark):
                self.store.bookmark(taken.resource_version)
            else:
                taken.listener.enqueue_resync(self.store.entries())
            self.expectations.observe()
            if self._options.metrics is not None:
                self._options.metrics.observe(PROCESSING_LATENCY, self._clock.monotonic() - began, self._labels)

    async def _next(self) -> Popped:
        """What comes next. Until then what has changed is packed: when it is quiet, for it may soon change again."""
        if self.store.unpacked:
            await self._pack(_MOST_UNPACKED)
            if self._timer is None:
                self._timer = self._clock.timer(_QUIET, self._listen)
        return await self._fifo.pop()

    def _listen(self) -> None:
        """Whether it is quiet, or when to listen again."""
        left = self._taken_at + _QUIET - self._clock.monotonic()
        self._timer = None if left <= 0 else self._clock.timer(left, self._listen)
        if left <= 0:
            self._fifo.put(Idle())

    async def _pack(self, most: int) -> None:
        """Pack what has changed until no more than so many are left, as long as nothing else comes."""
        while not self._fifo and self.store.unpacked > most:
            await self._clock.sleep(0)
            if not self._fifo:
                self.store.pack(_AT_ONCE)

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
            elif store.remove(entry) is not None:
                events.append(Deleted(entry))
        return events

    def _replaced(self, delta: ReplacedAll) -> list[Event]:
        before = self.store.replace(delta.replacement, delta.resource_version)
        after = delta.replacement.contents.entries
        initial = not self.has_synced
        if delta.restored:  # whoever has done something about an object may have done it in vain
            self.expectations.clear()
            return [
                *(Deleted(entry, final_state_known=False) for entry in before.values()),
                *(Added(entry, relisted=True) for entry in after.values()),
            ]
        gone = [entry for key, entry in before.items() if key not in after]
        events: list[Event] = [Deleted(entry, final_state_known=False) for entry in gone]
        for key, entry in after.items():
            known = before.get(key)
            if known is None:
                events.append(Added(entry, initial, relisted=not initial))
            elif known is not entry:
                events += _differences(known, entry, relisted=True)
        return events


def _differences(known: Entry, entry: Entry, *, relisted: bool = False) -> tuple[Event, ...]:
    """What has happened to an object that the store had."""
    if known.same_state(entry):
        return ()
    if known.uid != entry.uid:
        return Deleted(known, final_state_known=False), Added(entry, relisted=relisted)
    return (Updated(known, entry, relisted),)


def _labels(name: str, source: ListWatch) -> dict[str, str]:
    gvk = source.gvk
    return {"name": name, "group": gvk.group, "version": gvk.version, "resource": ""}
