"""A server in the same process, and short ways to ask it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from ostinato.server.core import Server
from ostinato.server.request import Request, Response, User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

Json = dict[str, Any]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Answer(NamedTuple):
    code: int
    body: Json
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Api:
    """What a test asks of a server, as an administrator unless it says otherwise."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def ask(self, method: str, path: str, sent: Any = None, **headers: str) -> Answer:
        async def read() -> bytes:
            return b"" if sent is None else msgspec.json.encode(sent)

        path, _, query = path.partition("?")
        told = {"authorization": "Bearer admin", "content-type": "application/json", "user-agent": "test/1"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.server.handle(Request(method, path, query, told, read))
        assert isinstance(answer, Response)
        warnings = tuple(value for name, value in answer.headers if name == "Warning")
        return Answer(answer.status, msgspec.json.decode(answer.body), warnings)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.ask("GET", path, **headers)

    async def post(self, path: str, sent: Any, **headers: str) -> Answer:
        return await self.ask("POST", path, sent, **headers)

    async def put(self, path: str, sent: Any) -> Answer:
        return await self.ask("PUT", path, sent)

    async def merge(self, path: str, sent: Any) -> Answer:
        return await self.ask("PATCH", path, sent, content_type=MERGE)

    async def apply(self, path: str, sent: Any) -> Answer:
        return await self.ask("PATCH", path, sent, content_type=APPLY)

    async def delete(self, path: str) -> Answer:
        return await self.ask("DELETE", path)

    async def cells(self, path: str) -> list[list[Any]]:
        """The rows of a Table."""
        return [row["cells"] for row in (await self.get(path, accept=TABLE)).body["rows"]]


def asking(test: Callable[[Api], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test against a fresh server, in virtual time."""

    def run() -> None:
        simulation = Simulation(seed=1)

        async def main() -> None:
            server = Server(simulation, MemoryLog())
            server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
            server.authenticator.add("jane", User("jane", groups=("dev",)))
            await server.start()
            await test(Api(server))
            await server.close()

        simulation.run(main())

    run.__name__ = test.__name__
    return run
