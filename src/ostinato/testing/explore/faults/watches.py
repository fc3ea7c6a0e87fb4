"""Faults of watches and caches: streams that break, events that are never seen, caches that are behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.server.faults import AnswerLost, Operation
from ostinato.server.request import Answer
from ostinato.testing.explore.faults.kind import EventHead, FaultKind
from ostinato.testing.explore.points import Point, PointKind
from ostinato.testing.explore.world.director import STALE

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run

_LAG: Final = 10.0  # seconds
_UNSEEN: Final = 3.0


class WatchCut(FaultKind):
    """The watch breaks before an event is delivered, and is resumed."""

    name = "watch-cut"
    points = frozenset({PointKind.EVENT})
    rank = 4

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        raise AnswerLost("the watch was cut")


class Relist(FaultKind):
    """The watch breaks, and the server has forgotten the position (410): the cache lists again."""

    name = "relist"
    points = frozenset({PointKind.EVENT})
    rank = 4

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        run.expired.add(operation.kind)
        raise AnswerLost("the watch was cut")


class Unobserved(FaultKind):
    """The watch breaks; the next step of the scenario happens before the cache lists again: states are never seen."""

    name = "unobserved"
    points = frozenset({PointKind.EVENT})
    rank = 2

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        run.expired.add(operation.kind)
        hold(run, operation.kind, _UNSEEN)
        run.soon()
        raise AnswerLost("the watch was cut")


class Lag(FaultKind):
    """The cache of one kind is behind: its events arrive seconds later than those of others."""

    name = "lag"
    points = frozenset({PointKind.EVENT})
    rank = 2

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        hold(run, operation.kind, _LAG)
        await run.lagging(operation)


class BookmarksOnly(Lag):
    """Only a bookmark arrives, at the position just before an event, which itself is seconds late.

    A bookmark past the event would be a lie: it promises that everything before it was sent.
    """

    name = "bookmarks-only"
    rank = 5

    @classmethod
    def applies(cls, point: Point) -> bool:
        """Not while the initial state is sent, which has objects that were added."""
        return super().applies(point) and not point.text.startswith("event ADDED")

    def ahead(self, operation: Operation, event: EventHead) -> bytes:
        if not operation.bookmarks:
            return b""
        about = {"resourceVersion": str(event.version - 1), "creationTimestamp": None}
        object_ = {"kind": event.kind, "apiVersion": event.api_version, "metadata": about}
        return msgspec.json.encode({"type": "BOOKMARK", "object": object_}) + b"\n"


class StaleRead(FaultKind):
    """A read at any resourceVersion is answered by a server that is behind: with the state before the current step."""

    name = "stale-read"
    points = frozenset({PointKind.READ, PointKind.LIST})
    rank = 2

    @classmethod
    def applies(cls, point: Point) -> bool:
        return super().applies(point) and point.text.endswith(STALE)

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        run.reads_stale = True
        return None


def hold(run: Run, kind: str, seconds: float) -> None:
    """Hold back the events, and the next watch, of a kind."""
    released = run.lags[kind] = asyncio.Event()

    def release() -> None:
        run.lags.pop(kind, None)
        released.set()

    run.later(seconds, release)


KINDS = (WatchCut, Relist, Unobserved, Lag, BookmarksOnly, StaleRead)
