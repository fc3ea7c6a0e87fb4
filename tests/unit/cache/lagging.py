"""A stage whose watches lag behind by a time that the test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from tests.stage.client import Stage
from tests.stage.server import on_a_server

from ostinato.cache import CachedClient, Informers, InformerSettings
from ostinato.client.transport.protocol import Request
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation


class LateResponse:
    """A response whose chunks are delayed."""

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
        return LateResponse(answer, lambda: self.lag, self._world) if request.stream else answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()


class LaggingStage(Stage):
    """A stage whose watches may be late: `live` goes to the server, `informers` feed a cached client.

    - `late`: sets the delays.
    - `other`: a client whose requests are neither recorded nor late.
    """

    def __init__(self, world: Simulation, server: Server) -> None:
        self.late = Lagging(InProcessTransport(server), world)
        super().__init__(world, server, self.late)
        self.live = self.client
        self.other = self.unrecorded_client(field_manager="other")
        self.informers = Informers(self.live)

    async def watching(self, *kinds: Any, **options: Any) -> CachedClient:
        """Return a cached client of these kinds, synced."""
        for kind in kinds:
            settings = kind[1] if isinstance(kind, tuple) else None
            self.informers.of(kind[0] if isinstance(kind, tuple) else kind, settings)
        self.informers.start()
        await self.informers.synced(timeout=5)
        self.transport.requests.clear()
        return CachedClient(self.live, self.informers, **options)

    @property
    def reads(self) -> list[str]:
        """The requests without the lists and watches of the caches."""
        return [f"{each.method} {each.target}" for each in self.transport.requests if not each.stream]


def staged(test: Callable[[LaggingStage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on a stage with a new server."""

    async def run(world: Simulation, server: Server) -> None:
        stage = LaggingStage(world, server)
        await test(stage)
        await stage.informers.stop()

    return on_a_server(run, test.__name__)


__all__ = ["InformerSettings", "LaggingStage", "staged"]
