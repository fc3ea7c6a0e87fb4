"""Faults of the server: it restarts, or is restored from an earlier snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.server.faults import AnswerLost, Operation
from ostinato.server.request import Answer
from ostinato.testing.explore.faults.kind import FaultKind
from ostinato.testing.explore.points import PointKind

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run


class ServerRestart(FaultKind):
    """The server restarts before a write: all connections break, watches cannot be resumed."""

    name = "server-restart"
    points = frozenset({PointKind.WRITE})
    rank = 5

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        await run.replace_server(run.disk)
        raise AnswerLost("connection reset by peer")


class ServerRestored(FaultKind):
    """The store is restored to its state before the last step, with increased resourceVersions; users do it again."""

    name = "server-restored"
    points = frozenset({PointKind.SETTLED})
    rank = 5

    async def settled(self, run: Run) -> None:
        await run.restore()


KINDS = (ServerRestart, ServerRestored)
