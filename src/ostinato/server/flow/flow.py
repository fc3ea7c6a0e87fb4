"""Flows: requests with the same FlowSchema and flow distinguisher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.metrics import Histogram
from ostinato.server.flow.schemas import FlowSchema
from ostinato.server.flow.turns import Turn

if TYPE_CHECKING:
    from ostinato.server.flow.levels import Level

_BOUNDS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)


class Count:
    """Counters of the requests of one FlowSchema in a priority level."""

    __slots__ = ("dispatched", "executing", "rejected", "seats", "waiting", "waits")

    def __init__(self) -> None:
        self.dispatched = self.executing = self.seats = self.waiting = 0
        self.rejected: dict[str, int] = {}  # by reason
        self.waits = Histogram(_BOUNDS)  # wait durations of requests that were queued

    def reject(self, reason: str) -> None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def waited(self, seconds: float) -> None:
        """Record that a request has left its queue."""
        self.waits.observe(seconds)


class Flow:
    """A flow: its FlowSchema and priority level, and the queues dealt to it."""

    __slots__ = ("count", "distinguisher", "hand", "headers", "level", "line", "schema")

    def __init__(
        self, schema: FlowSchema, level: Level, distinguisher: str, hand: list[int], line: Turn, count: Count
    ) -> None:
        self.schema = schema
        self.level = level
        self.distinguisher = distinguisher
        self.hand = hand  # indexes of its queues; empty if the level does not queue
        self.line = line  # its line at the event loop
        self.count = count  # shared by all flows of the schema
        named = ("X-Kubernetes-Pf-Flowschema-Uid", schema.uid), ("X-Kubernetes-Pf-Prioritylevel-Uid", level.uid)
        self.headers = tuple(
            each for each in named if each[1]
        )  # response headers; implied mandatory objects have no uid
