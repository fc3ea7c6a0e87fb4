"""FaultKind: one kind of fault, with the points at which it can happen and what it does there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ostinato.server.faults import Operation
from ostinato.server.request import Answer
from ostinato.testing.explore.plan import Fault
from ostinato.testing.explore.points import Point, PointKind

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run


class EventHead(NamedTuple):
    """What identifies an event of a watch."""

    api_version: str
    kind: str
    version: int  # resourceVersion


class FaultKind:
    """
    - `name`: in plans.
    - `points`: the kinds of points at which it can happen.
    - `forgets`: the process loses its memory: worlds with equal objects at that point are equal.
    - `needs_election`: two replicas elect a leader in such a world.
    - `late`: it happens when the request is done.
    - `rank`: order of exploration, the most productive first.
    """

    name: ClassVar[str]
    points: ClassVar[frozenset[PointKind]]
    forgets: ClassVar[bool] = False
    needs_election: ClassVar[bool] = False
    late: ClassVar[bool] = False
    rank: ClassVar[int] = 5

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    @classmethod
    def applies(cls, point: Point) -> bool:
        """Whether it can happen at a point."""
        return point.kind in cls.points

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        """Called before a request is processed; an answer takes the place of the server's."""
        return None

    async def after(self, run: Run, replica: Replica, operation: Operation, answer: Answer) -> Answer:  # noqa: ARG002
        """Called when a request is processed; returns the answer that the operator receives."""
        return answer

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:
        """Called before an event is delivered."""

    def ahead(self, operation: Operation, event: EventHead) -> bytes:  # noqa: ARG002
        """Return what is sent before an event that is to be dealt with; nothing by default."""
        return b""

    async def settled(self, run: Run) -> None:
        """Called when the world has settled after a step."""

    def before_call(self, run: Run, replica: Replica) -> None:
        """Called before a call of an external system."""

    def after_call(self, run: Run, replica: Replica) -> None:
        """Called after it."""

    async def before_review(self, run: Run, replica: Replica, seconds: int) -> None:
        """Called before a webhook of the operator is called, with its timeout; CallError in place of its answer."""

    async def after_review(self, run: Run, replica: Replica) -> None:
        """Called when it has answered; CallError if the answer is lost."""

    def wrong(self, run: Run) -> list[str]:  # noqa: ARG002
        """Return what is wrong in a settled state beyond its difference from the reference."""
        return []
