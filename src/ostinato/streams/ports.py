"""Port forwarding: connections to ports of a Pod, over SPDY or WebSocket channels.

- SPDY: a connection is a data and an error stream with the same request id; any number of connections and ports.
- WebSocket: one connection per port, with a data and an error channel, each of which begins with the port number.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from ostinato.streams.channels import V4, V4_BASE64, WEBSOCKET, is_text, pack, unpack
from ostinato.streams.inbox import Inbox
from ostinato.streams.spdy import SpdyConnection, SpdyStream
from ostinato.streams.spdy_command import SPDY
from ostinato.streams.upgrade import Socket, Upgrade

PROTOCOL: Final = "portforward.k8s.io"
TUNNEL: Final = f"{SPDY}+{PROTOCOL}"  # SPDY tunnelled in WebSocket messages
CHANNELS: Final = (V4, V4_BASE64)
_MOST_PAIRS: Final = 1000  # streams that wait for the other one of their pair


class Link(Protocol):
    """A connection to a port."""

    async def read(self) -> bytes | None:
        """Return the next data; None at the end."""

    async def write(self, data: bytes) -> None:
        """Send data; dropped if the connection is closed."""

    async def close_writing(self) -> None: ...

    async def close(self) -> None: ...


Dial = Callable[[int], Awaitable[Link]]
"""Connects to a port; an OSError says why that cannot be."""


def tunnel_upgrade(dial: Dial, about: str) -> Upgrade:
    """Return the upgrade for SPDY tunnelled in a WebSocket. `about`: the Pod, for messages."""
    return Upgrade(lambda socket: _serve_spdy(socket, dial, about), WEBSOCKET, TUNNEL)


def spdy_upgrade(dial: Dial, about: str) -> Upgrade:
    return Upgrade(lambda socket: _serve_spdy(socket, dial, about), SPDY, PROTOCOL)


def channels_upgrade(ports: Sequence[int], dial: Dial, about: str, protocol: str) -> Upgrade:
    return Upgrade(
        lambda socket: _serve_channels(socket, ports, dial, about, protocol),
        WEBSOCKET,
        protocol,
        text=is_text(protocol),
    )


def parse_ports(texts: Sequence[str]) -> list[int]:
    """Parse the ports of a query. Raises ValueError."""
    if not texts:
        raise ValueError('query parameter "port" is required')
    ports: list[int] = []
    for text in texts:
        if not text:
            raise ValueError('query parameter "port" cannot be empty')
        ports += [parse_port(word) for word in text.split(",")]
    return ports


def parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 16:
        raise ValueError(f'unable to parse "{text}" as a port')
    if int(text) < 1:
        raise ValueError(f'port "{text}" must be > 0')
    return int(text)


async def _serve_spdy(socket: Socket, dial: Dial, about: str) -> None:
    halves: dict[str, SpdyStream] = {}  # unpaired streams by request id
    async with SpdyConnection(socket, server=True) as connection, asyncio.TaskGroup() as forwards:
        tasks: set[asyncio.Task[None]] = set()
        while (stream := await connection.accept()) is not None:
            kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
            try:
                number = parse_port(port)
            except ValueError:
                number = 0
            if not number or kind not in ("data", "error"):
                await stream.reset()
                continue
            request = stream.headers.get("requestid") or str(stream.number - (2 if kind == "data" else 0))
            other = halves.pop(request, None)
            if other is None and len(halves) < _MOST_PAIRS:
                halves[request] = stream
            elif other is None or other.headers["streamtype"] == kind:
                await stream.reset()
            else:
                data, error = (stream, other) if kind == "data" else (other, stream)
                task = forwards.create_task(_forward_streams(number, data, error, dial, about))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:  # the client has disconnected
            task.cancel()


async def _forward_streams(port: int, data: SpdyStream, error: SpdyStream, dial: Dial, about: str) -> None:
    error.drop()
    try:
        link = await dial(port)
    except OSError as failure:
        await error.write(_message(port, about, failure))
        await error.close()
        await data.reset()
        return
    try:
        await _copy(data.read, data.write, link)
        if isinstance(link, SpdyLink) and (why := await link.failure()):
            await error.write(why)
    finally:
        data.drop()
        await data.close()
        await error.close()


async def _serve_channels(socket: Socket, ports: Sequence[int], dial: Dial, about: str, protocol: str) -> None:
    inboxes = [Inbox() for _ in ports]
    for index, port in enumerate(ports):
        for channel in (2 * index, 2 * index + 1):
            await socket.send(pack(channel, port.to_bytes(2, "little"), protocol))

    async def forward(index: int, port: int) -> None:
        async def write(data: bytes) -> None:
            await socket.send(pack(2 * index, data, protocol))

        try:
            link = await dial(port)
        except OSError as failure:
            inboxes[index].drop()
            await socket.send(pack(2 * index + 1, _message(port, about, failure), protocol))
            return
        try:
            await _copy(inboxes[index].take, write, link)
            if isinstance(link, SpdyLink) and (why := await link.failure()):
                await socket.send(pack(2 * index + 1, why, protocol))
        finally:
            inboxes[index].drop()

    async def receive() -> None:
        while (message := await socket.receive()) is not None:
            channel, data = unpack(message, protocol)
            if data and channel >= 0 and channel % 2 == 0 and channel // 2 < len(ports):
                inbox = inboxes[channel // 2]
                inbox.put(data)
                await inbox.room()

    receiving = asyncio.ensure_future(receive())
    forwarding = asyncio.gather(*(forward(index, port) for index, port in enumerate(ports)))
    await _first((receiving, forwarding))


async def _copy(
    read: Callable[[], Awaitable[bytes | None]], write: Callable[[bytes], Awaitable[None]], link: Link
) -> None:
    """Copy in both directions, until the port closes the connection."""

    async def upwards() -> None:
        while (data := await read()) is not None:
            await link.write(data)
        await link.close_writing()

    up = asyncio.ensure_future(upwards())
    try:
        while (data := await link.read()) is not None:
            await write(data)
    finally:
        up.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await up
        await link.close()


async def _first(futures: Sequence[asyncio.Future[Any]]) -> None:
    """Wait for the first task, and cancel the others."""
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
        for future in futures:
            with contextlib.suppress(asyncio.CancelledError):
                await future


def _message(port: int, about: str, failure: OSError) -> bytes:
    return f"error forwarding port {port} to pod {about}: {failure}".encode()


class SpdyLink:
    """A `Link` on another machine, as a pair of streams."""

    def __init__(self, data: SpdyStream, error: SpdyStream) -> None:
        self._data = data
        self._error = error

    async def read(self) -> bytes | None:
        return await self._data.read()

    async def write(self, data: bytes) -> None:
        await self._data.write(data)

    async def close_writing(self) -> None:
        await self._data.close()

    async def close(self) -> None:
        self._data.drop()
        await self._data.close()

    async def failure(self) -> bytes:
        """Return the error after the end of data; b"" if there was none."""
        said = b""
        while (data := await self._error.read()) is not None:
            said += data
        return said


class TcpLink:
    """A `Link` over TCP."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, host: str, port: int) -> TcpLink:
        return cls(*await asyncio.open_connection(host, port))

    async def read(self) -> bytes | None:
        try:
            return await self._reader.read(1 << 15) or None
        except OSError:
            return None

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def close_writing(self) -> None:
        with contextlib.suppress(OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
