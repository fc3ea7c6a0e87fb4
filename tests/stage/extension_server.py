"""An extension API server for tests: HTTPS, scripted answers, a record of the requests that it received.

    async with ExtensionServer(context, "192.0.2.1") as backend:
        backend.answers["/apis/g.example.dev/v1"] = json_answer({...})

An answer is the bytes of a whole HTTP response, by path, quoted or not. Paths without one are answered with 404.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

Answer = bytes | Callable[["Received", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Received(NamedTuple):
    method: str
    target: str
    headers: list[tuple[str, str]]  # names in lower case
    body: bytes
    certificate: str  # common name of the client certificate; "" without one

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]


class ExtensionServer:
    """Listens while it is entered. `port`: 0 is any free port."""

    def __init__(self, context: ssl.SSLContext | None, host: str, port: int = 0) -> None:
        self.answers: dict[str, Answer] = {}
        self.received: list[Received] = []
        self.host = host
        self.port = port
        self._context = context
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        while self._open:
            for writer in self._open.values():
                writer.transport.abort()
            await asyncio.wait([*self._open])

    def requests(self, path: str) -> list[Received]:
        return [each for each in self.received if each.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError):
                await self._answer(reader, writer)
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), 1)
        finally:
            del self._open[task]
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ")
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        sizes = [int(value) for name, value in headers if name == "content-length"]
        body = await reader.readexactly(sizes[0]) if sizes else b""
        if ("transfer-encoding", "chunked") in headers:
            while size := int((await reader.readline()).strip(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        peer = (writer.get_extra_info("peercert") or {}).get("subject", ())
        names = [value for part in peer for key, value in part if key == "commonName"]
        request = Received(method, target, headers, body, names[0] if names else "")
        self.received.append(request)
        answer = self.answers.get(request.path) or self.answers.get(unquote(request.path), _MISSING)
        if isinstance(answer, bytes):
            if method == "HEAD":
                answer = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            writer.write(answer)
        else:
            await answer(request, reader, writer)
        await writer.drain()


def response(status: int, body: bytes, kind: str = "application/json", *more: tuple[str, str]) -> bytes:
    fields = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Connection", "close"), *more]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields if value)
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode("latin-1") + body


def json_answer(value: Any, kind: str = "application/json", *more: tuple[str, str]) -> bytes:
    return response(200, json.dumps(value).encode(), kind, *more)


_MISSING = response(404, b"404 page not found\n", "text/plain")


async def echo(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with what was received."""
    writer.write(json_answer({"method": request.method, "target": request.target, "body": request.body.decode()}))
