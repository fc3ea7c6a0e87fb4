"""Faults of processes: crashes, pauses, leadership that is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ostinato.server.faults import AnswerLost, Operation
from ostinato.server.request import Answer
from ostinato.server.webhooks.target import CallError
from ostinato.testing.explore.faults.kind import FaultKind
from ostinato.testing.explore.points import PointKind
from ostinato.testing.explore.world.external import ExternalUnavailable

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run

_LONGER_THAN_A_LEASE: Final = 40.0  # seconds


class CrashAfter(FaultKind):
    """The process dies when a write, an external call or a review of its webhook is done, before that is known."""

    name = "crash-after"
    late = True
    points = frozenset({PointKind.WRITE, PointKind.EXTERNAL, PointKind.WEBHOOK})
    forgets = True
    rank = 0

    async def after(self, run: Run, replica: Replica, operation: Operation, answer: Answer) -> Answer:  # noqa: ARG002
        run.crash(replica)
        raise AnswerLost("the process was killed")

    def after_call(self, run: Run, replica: Replica) -> None:
        run.crash(replica)
        raise ExternalUnavailable("the process was killed")

    async def after_review(self, run: Run, replica: Replica) -> None:
        run.crash(replica)
        raise CallError("EOF")


class CrashBefore(FaultKind):
    """The process dies before a write, an external call or a review, or with an event that it does not receive."""

    name = "crash-before"
    points = frozenset({PointKind.WRITE, PointKind.EXTERNAL, PointKind.EVENT, PointKind.WEBHOOK})
    forgets = True
    rank = 1

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        run.crash(replica)
        raise AnswerLost("the process was killed")

    def before_call(self, run: Run, replica: Replica) -> None:
        run.crash(replica)
        raise ExternalUnavailable("the process was killed")

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        run.crash(replica)
        raise AnswerLost("the process was killed")

    async def before_review(self, run: Run, replica: Replica, seconds: int) -> None:  # noqa: ARG002
        run.crash(replica)
        raise CallError("EOF")


class Restart(FaultKind):
    """The process restarts when nothing is left to do: everything is reconciled again."""

    name = "restart"
    points = frozenset({PointKind.SETTLED})
    forgets = True
    rank = 3

    async def settled(self, run: Run) -> None:
        for replica in run.living():
            run.crash(replica)


class Pause(FaultKind):
    """The process stands still before a write, longer than its lease lasts; another replica leads meanwhile."""

    name = "pause"
    points = frozenset({PointKind.WRITE})
    needs_election: ClassVar[bool] = True
    rank = 7

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        replica.pause()
        run.later(_LONGER_THAN_A_LEASE, replica.resume)
        await replica.gate()
        return None


class LeaderChange(FaultKind):
    """The leader dies before a write, and another replica takes over."""

    name = "leader-change"
    points = frozenset({PointKind.WRITE})
    forgets = True
    needs_election: ClassVar[bool] = True
    rank = 7

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        run.crash(replica)
        run.later(_LONGER_THAN_A_LEASE, run.active)
        raise AnswerLost("the process was killed")


KINDS = (CrashAfter, CrashBefore, Restart, Pause, LeaderChange)
