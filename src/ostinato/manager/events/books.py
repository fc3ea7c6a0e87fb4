"""Books of events: what the server was told, so that what happens again is counted and not told anew.

There are two, for Events of two groups: `event_series` and `event_counts`. What they share is how they are asked, and
the limit for whoever tells too much.
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
MOST_REMEMBERED: Final = 4096

Reference = tuple[str | None, ...]


class Known(ABC):
    """Something that happened, once or several times."""

    untold = 0  # of the times, those that the server does not know of
    is_series = False  # whether it is one in which the server counts

    @abstractmethod
    async def write(self, client: Client) -> None:
        """Tell the server how it stands. Whatever a client raises if that fails."""

    @abstractmethod
    def forget(self) -> None:
        """The server does not take it: a next one is a first one."""

    @abstractmethod
    def __str__(self) -> str:
        """What it is about, for logs."""


class Book(Protocol):
    def untold(self) -> list[Known]:
        """What has happened more often than the server knows."""

    def finished(self) -> list[Known]:
        """Forget what has not happened for long, and give what is still to be told of that."""


class SpamFilter:
    """A bucket of tokens for each source."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # tokens, and as of when

    def admits(self, source: Hashable) -> bool:
        now = self._clock.monotonic()
        tokens, since = self._buckets.pop(source, (float(BURST), now))
        tokens = min(tokens + (now - since) * REFILL, BURST)
        admitted = tokens >= 1
        self._buckets[source] = (tokens - 1 if admitted else tokens, now)
        if len(self._buckets) > MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        return admitted


def identity(reference: ObjectReference | None) -> Reference:
    """What makes two references the same, without versions: a thing happens to an object whatever version it is in."""
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
