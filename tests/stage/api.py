"""Raw requests to a server in this process, without a client."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from ostinato.server.core import Server
from ostinato.server.request import Request, Response, User
from ostinato.world import Simulation
from tests.stage.server import on_a_server

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
    """Sends requests to a server; as an administrator unless the headers have another user."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def ask(self, method: str, path: str, sent: Any = None, **headers: str) -> Answer:
        async def read() -> bytes:
            return b"" if sent is None else msgspec.json.encode(sent)

        path, _, query = path.partition("?")
        sent_headers = {"authorization": "Bearer admin", "content-type": "application/json", "user-agent": "test/1"}
        sent_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.server.handle(Request(method, path, query, sent_headers, read))
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
        """Return the cells of a Table."""
        return [row["cells"] for row in (await self.get(path, accept=TABLE)).body["rows"]]


def asking(test: Callable[[Api], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test with the Api of a new server, in virtual time. `admin` and `jane` are known tokens."""

    async def run(_: Simulation, server: Server) -> None:
        server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
        server.authenticator.add("jane", User("jane", groups=("dev",)))
        await test(Api(server))

    return on_a_server(run, test.__name__)
