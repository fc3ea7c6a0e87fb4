"""A client on a server in the same process, in virtual time; and a transport whose answers a test writes itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
from tests.unit.on_a_server import Recording, on_a_server

from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.client import Client
from ostinato.client.transport.protocol import ConnectionLost, Request, WebSocket
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation

Json = dict[str, Any]


class WidgetSpec(Struct):
    replicas: int = 0
    image: str = ""


class WidgetStatus(Struct):
    ready: int = 0


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)
    status: WidgetStatus | None = None


WIDGETS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready"},
                },
            }
        ],
    },
}


class Stage:
    """A server, a client of it, and what the server warned of."""

    def __init__(self, world: Simulation, server: Server) -> None:
        self.world = world
        self.server = server
        self.warnings: list[str] = []
        self.transport = Recording(InProcessTransport(server))
        self.client = self.another()

    def another(self, **options: Any) -> Client:
        options = {"namespace": "default", "field_manager": "test", **options}
        return Client(self.transport, world=self.world, warn=self.warnings.append, **options)


def staged(play: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test against a fresh server, in virtual time."""
    return on_a_server(play.__name__, lambda world, server: play(Stage(world, server)))


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


class Answer:
    """A Response that a test has written."""

    def __init__(
        self, status: int = 200, body: Any = b"", headers: dict[str, str] | None = None, warnings: Sequence[str] = ()
    ) -> None:
        self.status = status
        self.headers = {"content-type": "application/json"} if headers is None else headers
        self.warnings = warnings
        self._body = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.closed = False

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    def close(self) -> None:
        self.closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Streamed(Answer):
    """A watch: chunks, and how it ends: by itself, by an error, or not at all."""

    def __init__(self, *chunks: bytes, end: Exception | None = None, hangs: bool = False) -> None:
        super().__init__()
        self._pieces = chunks
        self._end = end
        self._hangs = hangs

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._end is not None:
            raise self._end
        if self._hangs:
            await asyncio.get_running_loop().create_future()


Script = Callable[[Request], Answer | Exception | Awaitable[Answer]]


class Scripted:
    """A transport that answers as a function says."""

    host = "scripted"

    def __init__(self, script: Script, socket: WebSocket | Exception | None = None) -> None:
        self._script = script
        self._socket = socket
        self.requests: list[Request] = []
        self.protocols: Sequence[str] = ()
        self.closed = False

    async def request(self, request: Request) -> Any:
        self.requests.append(request)
        answer = self._script(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Answer) else await answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        self.requests.append(request)
        self.protocols = protocols
        if self._socket is None:
            raise ConnectionLost("no WebSocket here")
        if isinstance(self._socket, Exception):
            raise self._socket
        return self._socket

    async def close(self) -> None:
        self.closed = True


def in_turn(*answers: Answer | Exception) -> Script:
    """Each request gets the next answer; the last one is repeated."""
    left = list(answers)

    def script(_: Request) -> Answer | Exception:
        return left.pop(0) if len(left) > 1 else left[0]

    return script


def scripted(world: Simulation, script: Script, **options: Any) -> tuple[Client, Scripted]:
    transport = Scripted(script)
    options = {"namespace": "default", "field_manager": "test", **options}
    return Client(transport, world=world, **options), transport
