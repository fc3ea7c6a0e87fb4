"""A server and clients of it in one process, in virtual time; and a candidate for election on it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tests.unit.on_a_server import on_a_server

from ostinato.client import Client
from ostinato.client.transport.protocol import Request
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.elector import Elector
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.lease import LeaseLock
from ostinato.manager.election.settings import LeaderElection
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation


class Wire:
    """A transport that remembers what was asked, and fails where a test says so."""

    host = "in-process"

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.requests: list[Request] = []
        self.before: Callable[[Request], Any] = lambda _: None  # may raise, or return something to await
        self.after: Callable[[Request], Any] = lambda _: None
        self.closed = False

    async def request(self, request: Request) -> Any:
        self.requests.append(request)
        waiting = self.before(request)
        if waiting is not None:
            await waiting
        answer = await self.inner.request(request)
        waiting = self.after(request)
        if waiting is not None:
            await waiting
        return answer

    async def websocket(self, request: Request, protocols: Any) -> Any:
        return await self.inner.websocket(request, protocols)

    async def close(self) -> None:
        self.closed = True

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.path.rpartition('/')[2]}" for request in self.requests]


class Stage:
    def __init__(self, world: Simulation, server: Server) -> None:
        self.world = world
        self.server = server
        self.clock = world.clock
        self.wire = Wire(InProcessTransport(server))
        self.client = Client(self.wire, world=world, namespace="default")

    def candidate(self, identity: str, **options: Any) -> Candidate:
        return Candidate(self, LeaderElection(**{"name": "widgets", "identity": identity, **options}))

    async def lease(self) -> Lease:
        return await self.client.get(Lease, "widgets")


class Candidate:
    def __init__(self, stage: Stage, options: LeaderElection) -> None:
        self.wire = Wire(InProcessTransport(stage.server))
        client = Client(self.wire, world=stage.world, namespace="default")
        self.lock = LeaseLock(client, "default", options.name, labels=options.labels, timeout=options.request_timeout)
        self.fence = Fence(stage.clock)
        self.seen: list[str] = []
        self.elector = Elector(self.lock, options, self.fence, stage.world, new_leader=self.seen.append)


def staged(play: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test against a fresh server, in virtual time."""
    return on_a_server(play.__name__, lambda world, server: play(Stage(world, server)))
