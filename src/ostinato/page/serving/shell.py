"""A shell in a container: passes binary frames between the page and the API server, in Kubernetes' channel protocol."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.client.client import Client
from ostinato.client.subresources.process import Output, Process
from ostinato.client.transport.protocol import TransportError
from ostinato.http.server import Duplex, HttpRequest, HttpUpgrade
from ostinato.http.websocket import BINARY, FrameReader, InvalidFrame, close, frame, handshake
from ostinato.page.answers.query import BadQuery, Query

PROTOCOL: Final = "v5.channel.k8s.io"
_SHELL: Final = ("sh", "-c", "exec bash 2>/dev/null || exec sh")
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE = 0, 1, 2, 3, 4
_NORMAL: Final = 1000
_MAX_INPUT: Final = 64  # messages that wait for the container


def shell(request: HttpRequest, query: Query, client: Client) -> HttpUpgrade:
    """Return the upgrade of a request. Raises `BadQuery` if it is not one to WebSocket."""
    headers = request.headers
    key = headers.get("sec-websocket-key", "")
    if headers.get("upgrade", "").lower() != "websocket" or not key or headers.get("sec-websocket-version") != "13":
        raise BadQuery("a shell needs a WebSocket")
    name, namespace, container = query.segment("name"), query.segment("namespace"), query.text("container")
    offered = [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")]

    async def run(connection: Duplex) -> None:
        try:
            process = await client.pods.exec(
                name, [*_SHELL], namespace=namespace, container=container, stdin=True, tty=True
            )
        except (APIError, TransportError, ValueError) as error:
            await connection.write(_message(_ERROR, str(error).encode()) + close(_NORMAL))
            return
        await _Session(connection, process).run()

    return HttpUpgrade(handshake(key, PROTOCOL if PROTOCOL in offered else ""), run)


_Cells = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class _Size(msgspec.Struct, rename="pascal"):
    """The size of the terminal, in characters."""

    width: _Cells
    height: _Cells


class _Session:
    def __init__(self, connection: Duplex, process: Process) -> None:
        self._connection = connection
        self._process = process
        self._input: asyncio.Queue[bytes] = asyncio.Queue(_MAX_INPUT)
        self._frames = FrameReader(self._received)
        self._is_full = False
        self._closed = False  # the page has closed, and was answered

    async def run(self) -> None:
        create = asyncio.get_running_loop().create_task
        tasks = [create(self._read()), create(self._feed()), create(self._send())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(TransportError, APIError, ConnectionError):
                await self._process.close()
        if not self._closed:
            with suppress(ConnectionError):
                await self._connection.write(close(_NORMAL))

    async def _read(self) -> None:
        """Read frames of the page until it closes."""
        while data := await self._connection.read():
            try:
                answer, closed = self._frames.feed(data)
            except InvalidFrame:
                return
            if answer:
                await self._connection.write(answer)
            self._closed = closed
            if closed or self._is_full:
                return

    def _received(self, message: bytes) -> None:
        try:
            self._input.put_nowait(message)
        except asyncio.QueueFull:
            self._is_full = True

    async def _feed(self) -> None:
        while True:
            message = await self._input.get()
            if message[:1] == bytes((_STDIN,)):
                await self._process.write(message[1:])
            elif message[:1] == bytes((_RESIZE,)):
                with suppress(msgspec.MsgspecError):
                    size = msgspec.json.decode(message[1:], type=_Size)
                    await self._process.resize(size.width, size.height)

    async def _send(self) -> None:
        try:
            async for output in self._process:
                await self._connection.write(_output(output))
        except (APIError, TransportError) as error:
            await self._connection.write(_message(_ERROR, str(error).encode()))
            return
        await self._connection.write(_message(_ERROR, f"exit code {self._process.exit_code}".encode()))


def _output(output: Output) -> bytes:
    return _message(_STDOUT if output.stream == "stdout" else _STDERR, output.data)


def _message(channel: int, data: bytes) -> bytes:
    return frame(BINARY, bytes((channel,)) + data)
