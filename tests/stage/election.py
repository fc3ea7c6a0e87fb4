"""A stage with candidates for a Lease."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ostinato.client import Client
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.elector import Elector
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.lease import LeaseLock
from ostinato.manager.election.settings import LeaderElection
from ostinato.server.in_process.transport import InProcessTransport
from tests.stage.client import Stage
from tests.stage.server import on_a_server
from tests.stage.transport import RecordingTransport


class ElectionStage(Stage):
    def candidate(self, identity: str, **options: Any) -> Candidate:
        return Candidate(self, LeaderElection(**{"name": "widgets", "identity": identity, **options}))

    async def lease(self) -> Lease:
        return await self.client.get(Lease, "widgets")


class Candidate:
    """An elector with a transport of its own; `leaders` are the identities that it observed."""

    def __init__(self, stage: Stage, options: LeaderElection) -> None:
        self.transport = RecordingTransport(InProcessTransport(stage.server))
        client = Client(self.transport, world=stage.world, namespace="default")
        self.lock = LeaseLock(client, "default", options.name, labels=options.labels, timeout=options.request_timeout)
        self.fence = Fence(stage.clock)
        self.leaders: list[str] = []
        self.elector = Elector(self.lock, options, self.fence, stage.world, new_leader=self.leaders.append)


def staged(test: Callable[[ElectionStage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on a stage with a new server."""
    return on_a_server(lambda world, server: test(ElectionStage(world, server)), test.__name__)
