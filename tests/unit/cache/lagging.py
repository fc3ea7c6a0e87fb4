"""A server in the same process whose watches are behind, as far as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from tests.unit.on_a_server import Recording, on_a_server

from ostinato.cache import CachedClient, Informers, InformerSettings
from ostinato.client import Client
from ostinato.client.transport.protocol import Request
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation


class LateAnswer:
    """A stream whose pieces come late."""

    def __init__(self, inner: Any, lag: Callable[[], float], world: Simulation) -> None:
        self._inner = inner
        self._lag = lag
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            await self._world.clock.sleep(self._lag())
            yield chunk


class Lagging:
    """A transport on which watches are late by `lag` seconds, and answers to patches by `answers_late`.

    A watch of a path that ends with `slow` takes 20 seconds to begin.
    """

    def __init__(self, inner: Any, world: Simulation) -> None:
        self.host = inner.host
        self.lag = 0.0
        self.answers_late = 0.0
        self.slow: str | None = None
        self._inner = inner
        self._world = world

    async def request(self, request: Request) -> Any:
        if self.slow is not None and request.stream and request.path.endswith(self.slow):
            await self._world.clock.sleep(20)
        answer = await self._inner.request(request)
        if request.method == "PATCH" and self.answers_late:
            await self._world.clock.sleep(self.answers_late)
        return LateAnswer(answer, lambda: self.lag, self._world) if request.stream else answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()


class Scene:
    """A server, a client that goes straight to it, and the parts of a cached client whose watches may be late."""

    def __init__(self, world: Simulation, server: Server) -> None:
        self.world = world
        self.server = server
        self.late = Lagging(InProcessTransport(server), world)
        self.transport = Recording(self.late)
        self.live = Client(self.transport, world=world, namespace="default", field_manager="test")
        self.other = Client(InProcessTransport(server), world=world, namespace="default", field_manager="other")
        self.informers = Informers(self.live)

    async def watching(self, *kinds: Any, **options: Any) -> CachedClient:
        """A cached client of these kinds, synced."""
        for kind in kinds:
            settings = kind[1] if isinstance(kind, tuple) else None
            self.informers.of(kind[0] if isinstance(kind, tuple) else kind, settings)
        self.informers.start()
        await self.informers.synced(timeout=5)
        self.transport.requests.clear()
        return CachedClient(self.live, self.informers, **options)

    @property
    def reads(self) -> list[str]:
        """What was asked of the server, watches and lists of the caches not counted."""
        return [f"{each.method} {each.target}" for each in self.transport.requests if not each.stream]


def played(play: Callable[[Scene], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test against a fresh server, in virtual time."""

    async def whole(world: Simulation, server: Server) -> None:
        scene = Scene(world, server)
        await play(scene)
        await scene.informers.stop()

    return on_a_server(play.__name__, whole)


__all__ = ["InformerSettings", "Scene", "played"]
