"""A server with CustomResourceDefinitions for tests, and recorded answers of Go code."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ostinato.server.core import Server
from ostinato.server.request import Request, Response, Stream, User
from ostinato.server.store.records import Log, Write
from ostinato.world.simulated.simulation import Simulation

DATA = Path(__file__).parents[4] / "data" / "custom"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "widgets.example.com"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

Json = dict[str, Any]


class KeptLog:
    """A log that a second server can be started from."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[tuple[str, str], tuple[int, bytes]] = {}

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self.version, iter([(*key, *value) for key, value in self.objects.items()])

    async def append(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self.version = write.version
            if write.data is None:
                del self.objects[write.collection, write.key]
            else:
                self.objects[write.collection, write.key] = (write.version, write.data)

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        """Nothing to close."""


class Answer:
    def __init__(self, response: Response) -> None:
        self.code = response.status
        self.text = response.body.decode()
        self.warnings = [text for name, text in response.headers if name == "Warning"]

    @property
    def body(self) -> Json:
        body: Json = json.loads(self.text)
        return body

    @property
    def causes(self) -> list[str]:
        return [f"{cause['field']}: {cause['message']}" for cause in self.body["details"]["causes"]]


class Api:
    """A client in the server's process, as an administrator."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def _ask(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Response | Stream:
        path, _, query = path.partition("?")
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()

        async def read() -> bytes:
            return data

        sent = {"authorization": "Bearer t", "content-type": "application/json", "user-agent": "test/1", **headers}
        return await self.server.handle(Request(method, path, query, sent, read))

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        answer = await self._ask(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        assert isinstance(answer, Response)
        return Answer(answer)

    async def good(self, method: str, path: str, body: Any = None, **headers: str) -> Json:
        """The body of a successful response."""
        answer = await self(method, path, body, **headers)
        assert answer.code < 300, answer.text
        return answer.body

    async def watch(self, path: str, since: str = "") -> Any:
        answer = await self._ask("GET", f"{path}?watch=1&resourceVersion={since}", None, {})
        assert isinstance(answer, Stream)
        return answer.chunks

    async def define(self, raw: Json) -> Json:
        return await self.good("POST", DEFINITIONS, raw)


def run(test: Callable[[Api], Awaitable[None]], log: Log | None = None) -> None:
    """Run a test with a new server, in virtual time."""
    simulation = Simulation(0)

    async def main() -> None:
        server = Server(simulation, log if log is not None else KeptLog())
        server.authenticator.add("t", User("admin", groups=("system:masters",)))
        await server.start()
        await test(Api(server))
        await server.close()

    simulation.run(main())


def schema(**spec: Any) -> Json:
    """The schema of a kind whose spec has these fields."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}


def version(name: str = "v1", openapi: Json | None = None, *, storage: bool = True, **more: Any) -> Json:
    found = openapi if openapi is not None else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": found}, **more}


def definition(*versions: Json, scope: str = "Namespaced", **names: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget", **names},
            "versions": list(versions) or [version()],
        },
    }


def widget(name: str = "w", spec: Any = None, *, api_version: str = "example.com/v1", **more: Any) -> Json:
    found: Json = {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, **more}
    if spec is not None:
        found["spec"] = spec
    return found
