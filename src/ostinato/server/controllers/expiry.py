"""Expiry: delete objects some time after they were last written.

- A write restarts an object's time to live.
- Objects in the store at start count from the newest timestamp in their metadata.
- An object that is written while it is being deleted is kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any

import msgspec

from ostinato.api.time import Time
from ostinato.server.store import records
from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Event
from ostinato.world import Clock, Timer

_logger = logging.getLogger(__name__)

SHORTEST = 1.0  # minimum seconds between two scans


class Expiry:
    """Deletes the objects of one collection after their time to live."""

    def __init__(self, index_: Index, collection: Collection, clock: Clock, lifetime: float) -> None:
        self._index = index_
        self._collection = collection
        self._clock = clock
        self._lifetime = lifetime
        self._due: OrderedDict[str, float] = OrderedDict()  # expiry times by key, earliest first
        self._timer: Timer | None = None
        self._sweep: asyncio.Task[None] | None = None
        collection.hub.listen(self._note)

    def start(self) -> None:
        """Schedule the objects that the store already holds."""
        if self._collection.entries:
            now, wall = self._clock.monotonic(), self._clock.wall()
            entries = self._collection.entries.items()
            ages = [(max(0.0, wall - _last_written(entry.data, wall)), key) for key, entry in entries]
            for age, key in sorted(ages, reverse=True):
                self._due[key] = now + self._lifetime - age
            self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sweep is not None:
            self._sweep.cancel()

    def _note(self, event: Event) -> None:
        """Schedule a written object."""
        self._due.pop(event.key, None)
        if event.entry is not None:
            self._due[event.key] = self._clock.monotonic() + self._lifetime
            self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._due:
            wait = next(iter(self._due.values())) - self._clock.monotonic()
            self._timer = self._clock.timer(max(wait, SHORTEST), self._begin)

    def _begin(self) -> None:
        self._sweep = asyncio.get_running_loop().create_task(self._remove_due(), name="expiry")

    async def _remove_due(self) -> None:
        try:
            now = self._clock.monotonic()
            while self._due and next(iter(self._due.values())) <= now:
                key, _ = self._due.popitem(last=False)
                current = self._collection.newest(key)
                if current is not None:
                    try:
                        await self._index.delete(self._collection, key, current)
                    except records.Conflict:  # rewritten meanwhile and scheduled again
                        continue
        except records.StoreFailed:
            _logger.warning("store rejects writes, expired objects kept collection=%s", self._collection.name)
        finally:
            self._timer = None
        self._arm()


def _last_written(data: bytes, otherwise: float) -> float:
    """The newest time in an object's metadata, as seconds since 1970."""
    metadata: dict[str, Any] = msgspec.json.decode(data).get("metadata", {})
    times = [entry.get("time") for entry in metadata.get("managedFields", ())]
    known = [time for time in (metadata.get("creationTimestamp"), *times) if time]
    return Time.parse(max(known)).timestamp() if known else otherwise
