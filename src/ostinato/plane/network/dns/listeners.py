"""Listeners of the DNS server: datagrams, and TCP connections with a length before each message (RFC 7766).

They are opened with a bound socket, as those of the service proxy are.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from contextlib import suppress
from typing import Any, Final

from ostinato.plane.network.dns.server import DnsServer
from ostinato.plane.network.dns.wire import MalformedMessage
from ostinato.world import Clock

_logger = logging.getLogger("ostinato.plane.dns")

_LENGTH: Final = struct.Struct(">H")
_IDLE_TIMEOUT: Final = 10.0  # seconds between the messages of a connection
_MAX_CONNECTIONS: Final = 256
_MAX_WAITING: Final = 2_000  # datagrams that wait for an upstream server
_BACKLOG: Final = 128

Peer = tuple[Any, ...]  # socket address: host, port, and more for IPv6


class DnsUdpListener(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    async def open(self, bound: socket.socket) -> None:
        """Listen with a bound socket; the listener closes it."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=bound)

    def stop_listening(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    async def end(self) -> None:
        self.stop_listening()
        await _cancel(self._waiting)

    # asyncio.DatagramProtocol

    def datagram_received(self, data: bytes, address: Peer) -> None:
        with suppress(MalformedMessage):
            response = self._server.answer(data, tcp=False)
            if response is not None:
                self._send(response, address)
            elif len(self._waiting) < _MAX_WAITING:
                _start(self._waiting, self._wait(data, address))

    def error_received(self, error: Exception) -> None:
        """Ignore ICMP errors of clients."""

    async def _wait(self, data: bytes, address: Peer) -> None:
        self._send(await self._server.wait_for_answer(data, tcp=False), address)

    def _send(self, response: bytes, address: Peer) -> None:
        if self._transport is not None:
            self._transport.sendto(response, address)


class DnsTcpListener:
    def __init__(self, server: DnsServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._listening: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        return self._listening is not None

    async def open(self, bound: socket.socket) -> None:
        """Listen with a bound socket; the listener closes it."""
        self._listening = await asyncio.start_server(self._accept, sock=bound, backlog=_BACKLOG)

    def stop_listening(self) -> None:
        """Stop accepting connections."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    async def end(self) -> None:
        self.stop_listening()
        await _cancel(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = _start(self._connections, self._serve(reader, writer))
        task.add_done_callback(lambda _: writer.transport.abort())  # it may have been cancelled before it began

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, MalformedMessage):  # OSError includes TimeoutError
            while True:
                async with self._clock.timeout(_IDLE_TIMEOUT):
                    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                    data = await reader.readexactly(length)
                response = self._server.answer(data, tcp=True)
                if response is None:
                    response = await self._server.wait_for_answer(data, tcp=True)
                if writer.is_closing():  # lost meanwhile: uvloop raises RuntimeError for a write
                    return
                writer.write(_LENGTH.pack(len(response)) + response)
                async with self._clock.timeout(_IDLE_TIMEOUT):
                    await writer.drain()
        writer.close()
        with suppress(OSError):
            async with self._clock.timeout(_IDLE_TIMEOUT):
                await writer.wait_closed()


def _start(tasks: set[asyncio.Task[None]], work: Any) -> asyncio.Task[None]:  # Any: a coroutine
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    task.add_done_callback(_report)
    return task


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("query failed error=%s", error, exc_info=error)


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
