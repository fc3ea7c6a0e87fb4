"""Series: which Events of events.k8s.io are the same one again, and which come too often to be told.

- Events that agree in all but their note and time are one series: the first is created, the second makes it a series,
  further ones are only counted. The server learns the count when the series ends, and now and then before.
- Of one source about one object no more than 25 are written at once, then one every five minutes. What is not written
  is still counted in its series, if it has one.
- What is remembered is bounded: the least recently used is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from datetime import timedelta
from typing import Final, NamedTuple

from ostinato.api import access
from ostinato.api.errors import NotFound
from ostinato.api.time import MicroTime
from ostinato.client.client import Client
from ostinato.client.patching import StrategicMergePatch
from ostinato.kinds.events_v1 import Event, EventSeries
from ostinato.manager.events.books import MOST_REMEMBERED, Known, Reference, SpamFilter, described, identity
from ostinato.world import Clock

FINISHED_AFTER: Final = 360.0  # seconds without another event after which a series is over


class Key(NamedTuple):
    """What two events have in common that are the same one again."""

    type: str | None
    action: str | None
    reason: str | None
    controller: str | None
    instance: str | None
    regarding: Reference
    related: Reference

    @staticmethod
    def of(event: Event) -> Key:
        return Key(
            event.type,
            event.action,
            event.reason,
            event.reporting_controller,
            event.reporting_instance,
            identity(event.regarding),
            identity(event.related),
        )

    @property
    def source(self) -> Hashable:
        """Whose events about what are limited together."""
        return self.controller, self.instance, self.type, self.regarding


class Series(Known):
    """An event that was told, and how often it has happened since."""

    def __init__(self, event: Event, book: SeriesBook, now: float) -> None:
        self.event = event
        self.count = 1
        self.last = now  # on the monotonic clock
        self._book = book

    @property
    def is_series(self) -> bool:  # type: ignore[override]  # it becomes one
        return self.count > 1

    async def write(self, client: Client) -> None:
        event = self.event
        if self.is_series:
            count, last = self.count, self._book.time_of(self.last)
            event.series = EventSeries(count=count, last_observed_time=last)
            patch = StrategicMergePatch({"series": {"count": count, "lastObservedTime": str(last)}})
            try:
                await client.patch(Event, access.key(event), patch)
                return
            except NotFound:
                pass  # it was never told, or is forgotten by now
        await client.create(event)

    def forget(self) -> None:
        self._book.forget(self)

    def __str__(self) -> str:
        return described(self.event.reason, self.event.regarding)


class SeriesBook:
    """All series of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, Series] = OrderedDict()  # least recently used first
        self._spam = SpamFilter(clock)

    def __len__(self) -> int:
        return len(self._known)

    def note(self, event: Event) -> Series | None:
        """What is to be told the server now, if anything."""
        key, now = Key.of(event), self._clock.monotonic()
        known = self._known.get(key)
        if known is None:
            if not self._spam.admits(key.source):
                return None
            known = self._known[key] = Series(event, self, now)
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            return known
        self._known.move_to_end(key)
        begins = not known.is_series
        known.count += 1
        known.untold += 1
        known.last = now
        return known if begins and self._spam.admits(key.source) else None

    def forget(self, known: Series) -> None:
        self._known.pop(Key.of(known.event), None)

    def time_of(self, moment: float) -> MicroTime:
        """A moment of the monotonic clock on the wall clock: as long ago as it is on the other."""
        return MicroTime.of(self._clock.now() - timedelta(seconds=self._clock.monotonic() - moment))

    def untold(self) -> list[Known]:
        return [known for known in self._known.values() if known.untold]

    def finished(self) -> list[Known]:
        now = self._clock.monotonic()
        over = [key for key, known in self._known.items() if now - known.last > FINISHED_AFTER]
        return [known for known in map(self._known.pop, over) if known.untold]
