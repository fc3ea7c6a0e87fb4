"""Series: which events are the same one again, and which come too often to be told.

- Events that agree in all but their note and time are one series: the first is created, the second makes it a series,
  further ones are only counted. The server learns the count when the series ends, and now and then before.
- Of one source about one object no more than 25 are written at once, then one every five minutes. What is not written
  is still counted in its series, if it has one.
- What is remembered is bounded: the least recently used is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple

import msgspec

from ostinato.kinds.core_v1 import ObjectReference
from ostinato.kinds.events_v1 import Event
from ostinato.world import Clock

BURST: Final = 25
REFILL: Final = 1 / 300  # tokens a second
MOST_REMEMBERED: Final = 4096
FINISHED_AFTER: Final = 360.0  # seconds without another event after which a series is over

Reference = tuple[str | None, ...]


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
            _fields(event.regarding),
            _fields(event.related),
        )

    @property
    def source(self) -> Hashable:
        """Whose events about what are limited together."""
        return self.controller, self.instance, self.type, self.regarding


class Known(msgspec.Struct):
    """An event that was told, and how often it has happened since."""

    event: Event
    count: int
    last: float  # on the monotonic clock
    untold: int = 0  # of the count, those that the server does not know of

    @property
    def is_series(self) -> bool:
        return self.count > 1


class SeriesBook:
    """All series of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, Known] = OrderedDict()  # least recently used first
        self._spam = SpamFilter(clock)

    def __len__(self) -> int:
        return len(self._known)

    def note(self, event: Event) -> Known | None:
        """What is to be told the server now, if anything."""
        key, now = Key.of(event), self._clock.monotonic()
        known = self._known.get(key)
        if known is None:
            if not self._spam.admits(key.source):
                return None
            known = self._known[key] = Known(event, 1, now)
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            return known
        self._known.move_to_end(key)
        begins = not known.is_series
        known.count += 1
        known.untold += 1
        known.last = now
        return known if begins and self._spam.admits(key.source) else None

    def forget(self, known: Known) -> None:
        """The server does not take it: a next one is a first one."""
        self._known.pop(Key.of(known.event), None)

    def untold(self) -> list[Known]:
        """Series with a count that the server does not know."""
        return [known for known in self._known.values() if known.untold]

    def finished(self) -> list[Known]:
        """Forget what has not happened for long, and give the series of these that are still to be told."""
        now = self._clock.monotonic()
        over = [key for key, known in self._known.items() if now - known.last > FINISHED_AFTER]
        return [known for known in map(self._known.pop, over) if known.untold]


class SpamFilter:
    """A bucket of tokens for each source."""

    def __init__(self, clock: Clock, *, burst: int = BURST, refill: float = REFILL) -> None:
        self._clock = clock
        self._burst = burst
        self._refill = refill
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # tokens, and as of when

    def admits(self, source: Hashable) -> bool:
        now = self._clock.monotonic()
        tokens, since = self._buckets.pop(source, (float(self._burst), now))
        tokens = min(tokens + (now - since) * self._refill, self._burst)
        admitted = tokens >= 1
        self._buckets[source] = (tokens - 1 if admitted else tokens, now)
        if len(self._buckets) > MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        return admitted


def _fields(reference: ObjectReference | None) -> Reference:
    if reference is None:
        return ()
    return (  # without its version: the same thing happens to an object in whatever version it is
        reference.api_version,
        reference.kind,
        reference.namespace,
        reference.name,
        reference.uid,
        reference.field_path,
    )
