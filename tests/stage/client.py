"""A server and a client of it in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ostinato.client import Client
from ostinato.client.transport.protocol import Transport
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World
from tests.stage.server import on_a_server
from tests.stage.transport import RecordingTransport


class Stage:
    """A server, a client whose requests are recorded, and the warnings that the client received.

    `transport`: to the server. Defaults to one in this process.
    """

    def __init__(self, world: World, server: Server, transport: Transport | None = None) -> None:
        self.world = world
        self.clock = world.clock
        self.server = server
        self.warnings: list[str] = []
        self.transport = RecordingTransport(InProcessTransport(server) if transport is None else transport)
        self.client = self.new_client()

    def new_client(self, **options: Any) -> Client:
        """Return another client on the same transport."""
        options = {"namespace": "default", "field_manager": "test", "warn": self.warnings.append, **options}
        return Client(self.transport, world=self.world, **options)

    def unrecorded_client(self, **options: Any) -> Client:
        """Return a client on a transport of its own, whose requests are not recorded."""
        options = {"namespace": "default", **options}
        return Client(InProcessTransport(self.server), world=self.world, **options)

    async def settle(self, seconds: float = 0.5) -> None:
        """Let virtual time pass, so that background tasks run."""
        await self.clock.sleep(seconds)


def staged(test: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on a stage with a new server."""
    return on_a_server(lambda world, server: test(Stage(world, server)), test.__name__)
