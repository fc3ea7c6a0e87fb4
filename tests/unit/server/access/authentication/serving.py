"""An API server in real time, beside an issuer or a backend on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.stage.api import Api
from tests.stage.server import started_server
from tests.unit.server.access.authentication.issuing import HttpsIssuer

from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.core import Server
from ostinato.server.request import Request, Response, User
from ostinato.world import World

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


class Scene:
    def __init__(self, server: Server, other: HttpsIssuer, directory: Path) -> None:
        self.server = server
        self.other = other
        self.directory = directory
        self.api = Api(server)

    @property
    def now(self) -> int:
        return int(self.server.world.clock.wall())

    async def review(self, token: str, **spec: Any) -> Any:
        """The user that a token is of, or the error."""
        answer = await self.api.post(REVIEWS, {"spec": {"token": token, **spec}})
        status = answer.body["status"]
        return status["user"] if status.get("authenticated") else status["error"]

    async def code(self, path: str = "/api", **headers: str) -> int:
        answer = await self.server.handle(Request("GET", path, "", headers))
        assert isinstance(answer, Response)
        return answer.status

    async def ready(self) -> None:
        """Until all issuers have keys."""
        issuers = self.server.authentication._issuers
        assert issuers is not None
        for issuer in issuers._issuers:
            assert issuer.keys._starting is not None
            await issuer.keys._starting


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, which something else in this process brings about."""
    while not condition():  # noqa: ASYNC110 - in real time there is no event for it
        await asyncio.sleep(0.005)


def play(
    directory: Path,
    settings: Callable[[HttpsIssuer], AuthenticationSettings],
    test: Callable[[Scene], Awaitable[None]],
) -> None:
    """Run a test against a server with these settings, in real time."""

    async def main() -> None:
        world = World.real()
        other = HttpsIssuer(world, directory / "issuer")
        await other.start()
        try:
            async with started_server(world, authentication=settings(other)) as server, asyncio.timeout(60):
                server.authenticator.add("admin", User("admin", groups=("system:masters",)))
                await test(Scene(server, other, directory))
        finally:
            await other.stop()
            world.executor.close()

    asyncio.run(main())
