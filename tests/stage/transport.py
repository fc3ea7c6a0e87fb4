"""Transports for tests: one that records and may delay or fail requests, and one with scripted responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from ostinato.client import Client
from ostinato.client.transport.protocol import ConnectionLost, Request, WebSocket
from ostinato.world import Simulation


class RecordingTransport:
    """A transport that records requests to another one.

    `before` and `after` are called with each request; they may raise, or return an awaitable.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.host = inner.host
        self.requests: list[Request] = []
        self.before: Callable[[Request], Awaitable[Any] | None] = lambda _: None
        self.after: Callable[[Request], Awaitable[Any] | None] = lambda _: None
        self.closed = False

    async def request(self, request: Request) -> Any:
        self.requests.append(request)
        if (waiting := self.before(request)) is not None:
            await waiting
        response = await self.inner.request(request)
        if (waiting := self.after(request)) is not None:
            await waiting
        return response

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        self.requests.append(request)
        return await self.inner.websocket(request, protocols)

    async def close(self) -> None:
        self.closed = True
        await self.inner.close()

    @property
    def calls(self) -> list[str]:
        """Method and target of each request."""
        return [f"{request.method} {request.target}" for request in self.requests]

    @property
    def short_calls(self) -> list[str]:
        """Method and last path segment of each request."""
        return [f"{request.method} {request.path.rpartition('/')[2]}" for request in self.requests]

    def writes(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.requests if each.method != "GET"]


class Answer:
    """A scripted response."""

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
    """A scripted watch response: chunks, then its end: normal, with an error, or never."""

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


class ScriptedTransport:
    """A transport whose responses come from a function of the request."""

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
    """Return a script that answers requests with these in order, and repeats the last one."""
    left = list(answers)

    def script(_: Request) -> Answer | Exception:
        return left.pop(0) if len(left) > 1 else left[0]

    return script


def scripted(world: Simulation, script: Script, **options: Any) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(script)
    options = {"namespace": "default", "field_manager": "test", **options}
    return Client(transport, world=world, **options), transport
