"""A server of its own for every test, in virtual time; and a transport that remembers what was asked of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ostinato.client.transport.protocol import Request
from ostinato.server.core import Server
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation


def on_a_server(name: str, play: Callable[[Simulation, Server], Awaitable[None]]) -> Callable[[], None]:
    """A test of this name, which has a server that has just started."""

    def run() -> None:
        world = Simulation(seed=1)

        async def main() -> None:
            server = Server(world, MemoryLog())
            await server.start()
            await play(world, server)
            await server.close()

        world.run(main())

    run.__name__ = name
    return run


class Recording:
    """A transport that remembers what was asked of another."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.host = inner.host
        self.requests: list[Request] = []

    async def request(self, request: Request) -> Any:
        self.requests.append(request)
        return await self.inner.request(request)

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        self.requests.append(request)
        return await self.inner.websocket(request, protocols)

    async def close(self) -> None:
        await self.inner.close()

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.target}" for request in self.requests]

    def writes(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.requests if each.method != "GET"]
