"""Series: correlates Events of events.k8s.io.

- Events that are equal except for note and time form a series: the first is created, the second makes it a series,
  further ones are only counted. The count is written when the series ends, and every half hour.
- The spam filter allows 25 Events of one source about one object at once, then one every five minutes. Filtered Events
  are still counted in their series.
- The memory is bounded; the least recently used entry is evicted first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from datetime import timedelta
from typing import Final, NamedTuple

from ostinato.api import accessors as access
from ostinato.api.errors import NotFound
from ostinato.api.time import MicroTime
from ostinato.client.client import Client
from ostinato.client.patching import StrategicMergePatch
from ostinato.kinds.events_v1 import Event, EventSeries
from ostinato.manager.events.correlation import (
    MAX_REMEMBERED,
    RecordedEvent,
    Reference,
    SpamFilter,
    described,
    identity,
)
from ostinato.world import Clock

FINISHED_AFTER: Final = 360.0  # seconds without another occurrence after which a series ends


class Key(NamedTuple):
    """The fields in which the Events of a series are equal."""

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
        """The key of the spam filter."""
        return self.controller, self.instance, self.type, self.regarding


class Series(RecordedEvent):
    """A recorded Event and the number of its occurrences."""

    def __init__(self, event: Event, correlator: SeriesCorrelator, now: float) -> None:
        self.event = event
        self.count = 1
        self.last = now  # on the monotonic clock
        self._correlator = correlator

    @property
    def is_series(self) -> bool:  # type: ignore[override]  # it becomes one
        return self.count > 1

    async def write(self, client: Client) -> None:
        event = self.event
        if self.is_series:
            count, last = self.count, self._correlator.time_of(self.last)
            event.series = EventSeries(count=count, last_observed_time=last)
            patch = StrategicMergePatch({"series": {"count": count, "lastObservedTime": str(last)}})
            try:
                await client.patch(Event, access.key(event), patch)
                return
            except NotFound:
                pass  # never written, or deleted by now
        await client.create(event)

    def forget(self) -> None:
        self._correlator.forget(self)

    def __str__(self) -> str:
        return described(self.event.reason, self.event.regarding)


class SeriesCorrelator:
    """The correlator of events.k8s.io Events of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, Series] = OrderedDict()  # least recently used first
        self._spam = SpamFilter(clock)

    def __len__(self) -> int:
        return len(self._known)

    def note(self, event: Event) -> Series | None:
        """Record an occurrence. Returns the Event to write, if any."""
        key, now = Key.of(event), self._clock.monotonic()
        known = self._known.get(key)
        if known is None:
            if not self._spam.admits(key.source):
                return None
            known = self._known[key] = Series(event, self, now)
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
            return known
        self._known.move_to_end(key)
        begins = not known.is_series
        known.count += 1
        known.pending += 1
        known.last = now
        return known if begins and self._spam.admits(key.source) else None

    def forget(self, known: Series) -> None:
        self._known.pop(Key.of(known.event), None)

    def time_of(self, moment: float) -> MicroTime:
        """Convert a monotonic time to wall-clock time."""
        return MicroTime.of(self._clock.now() - timedelta(seconds=self._clock.monotonic() - moment))

    def pending(self) -> list[RecordedEvent]:
        return [known for known in self._known.values() if known.pending]

    def finished(self) -> list[RecordedEvent]:
        now = self._clock.monotonic()
        over = [key for key, known in self._known.items() if now - known.last > FINISHED_AFTER]
        return [known for known in map(self._known.pop, over) if known.pending]
