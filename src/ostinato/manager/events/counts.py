"""Counts: correlates Events of the core group, as kube-controller-manager and kubelets do.

- Identical Events are one Event with a count; every count is written.
- From the tenth distinct message of one reason about one object, within ten minutes of the last, Events are aggregated
  into one, "(combined from similar events)", with the latest message.
- The spam filter allows 25 Events of one source about one object at once, then one every five minutes. Filtered Events
  are still counted.
- The memory is bounded; the least recently used entry is evicted first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import NotFound
from ostinato.client.client import Client
from ostinato.client.patching import StrategicMergePatch
from ostinato.kinds.core_v1 import Event, EventSource
from ostinato.manager.events.correlation import MAX_REMEMBERED, RecordedEvent, SpamFilter, described, identity
from ostinato.world import Clock

MOST_MESSAGES: Final = 10
SIMILAR_WITHIN: Final = 600.0  # seconds
COMBINED: Final = "(combined from similar events): "


class Counted(RecordedEvent):
    """A recorded Event and its count."""

    def __init__(self, event: Event, correlator: CountCorrelator, key: Hashable) -> None:
        self.event = event
        self._correlator = correlator
        self._key = key

    def again(self, event: Event, message: str | None) -> None:
        """Record another occurrence."""
        self.event.count = (self.event.count or 0) + 1
        self.event.last_timestamp = event.last_timestamp
        self.event.message = message

    async def write(self, client: Client) -> None:
        event = self.event
        if (event.count or 0) > 1:
            news = {"count": event.count, "lastTimestamp": str(event.last_timestamp), "message": event.message}
            try:
                await client.patch(Event, access.key(event), StrategicMergePatch(news))
                return
            except NotFound:
                pass  # never written, or deleted by now
        await client.create(event)

    def forget(self) -> None:
        self._correlator.forget(self._key)

    def __str__(self) -> str:
        return described(self.event.reason, self.event.involved_object)


class _Similar(msgspec.Struct):
    """Events that differ only in their message."""

    messages: set[str | None]  # fewer than MOST_MESSAGES
    last: float  # on the monotonic clock


class CountCorrelator:
    """The correlator of core Events of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Hashable, Counted] = OrderedDict()  # least recently used first
        self._similar: OrderedDict[Hashable, _Similar] = OrderedDict()
        self._spam = SpamFilter(clock)

    def __len__(self) -> int:
        return len(self._known)

    def note(self, event: Event) -> Counted | None:
        """Record an occurrence. Returns the Event to write, if any."""
        source = event.source or EventSource()
        whose = (source.component, source.host, event.type, identity(event.involved_object))
        kind = (*whose, event.reason)
        key: Hashable = (*kind, event.message)
        message = event.message
        if self._is_one_of_many(kind, message):
            key, message = kind, f"{COMBINED}{message}"
        known = self._known.pop(key, None)
        if known is None:
            event.message = message
            known = Counted(event, self, key)
        else:
            known.again(event, message)
        self._known[key] = known
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return known if self._spam.admits(whose) else None

    def forget(self, key: Hashable) -> None:
        self._known.pop(key, None)

    def pending(self) -> list[RecordedEvent]:
        """Empty: counts are written with each occurrence."""
        return []

    def finished(self) -> list[RecordedEvent]:
        return []

    def _is_one_of_many(self, kind: Hashable, message: str | None) -> bool:
        now = self._clock.monotonic()
        similar = self._similar.pop(kind, None)
        if similar is None or now - similar.last > SIMILAR_WITHIN:
            similar = _Similar(set(), now)
        similar.messages.add(message)
        similar.last = now
        self._similar[kind] = similar
        if len(self._similar) > MAX_REMEMBERED:
            self._similar.popitem(last=False)
        if len(similar.messages) < MOST_MESSAGES:
            return False
        similar.messages.discard(message)
        return True
