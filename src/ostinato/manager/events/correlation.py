"""Event correlation: repeated Events are counted instead of created, as by client-go's EventCorrelator.

There are two correlators: `series` for Events of events.k8s.io, `counts` for Events of the core group. This module has
their interface and the spam filter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Protocol

from ostinato.client.client import Client
from ostinato.kinds.core_v1 import ObjectReference
from ostinato.world import Clock

BURST: Final = 25
REFILL: Final = 1 / 300  # tokens a second
MAX_REMEMBERED: Final = 4096

Reference = tuple[str | None, ...]


class RecordedEvent(ABC):
    """An Event that happened once or several times."""

    pending = 0  # occurrences that are not written yet
    is_series = False

    @abstractmethod
    async def write(self, client: Client) -> None:
        """Write the current state to the server. Raises the client's errors."""

    @abstractmethod
    def forget(self) -> None:
        """Forget the Event: the next occurrence creates a new one."""

    @abstractmethod
    def __str__(self) -> str:
        """Description for logs."""


class Correlator(Protocol):
    def pending(self) -> list[RecordedEvent]:
        """Return the Events with occurrences that are not written yet."""

    def finished(self) -> list[RecordedEvent]:
        """Forget the Events that have not recurred for long, and return those with pending occurrences."""


class SpamFilter:
    """A token bucket for each source and object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = (
            OrderedDict()
        )  # tokens, and the time of the last refill

    def admits(self, source: Hashable) -> bool:
        now = self._clock.monotonic()
        tokens, since = self._buckets.pop(source, (float(BURST), now))
        tokens = min(tokens + (now - since) * REFILL, BURST)
        admitted = tokens >= 1
        self._buckets[source] = (tokens - 1 if admitted else tokens, now)
        if len(self._buckets) > MAX_REMEMBERED:
            self._buckets.popitem(last=False)
        return admitted


def identity(reference: ObjectReference | None) -> Reference:
    """Return the identity of a reference, without its resourceVersion."""
    if reference is None:
        return ()
    return (
        reference.api_version,
        reference.kind,
        reference.namespace,
        reference.name,
        reference.uid,
        reference.field_path,
    )


def described(reason: str | None, about: ObjectReference | None) -> str:
    about = about or ObjectReference()
    return f"{reason} about {about.kind} {about.namespace or ''}/{about.name}"
