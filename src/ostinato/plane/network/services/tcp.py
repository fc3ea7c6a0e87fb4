"""TCP relay of a frontend.

- If a backend does not accept, the next is tried; if none does, the connection is reset.
- Each direction can be closed separately (half-close).
- `stop_listening` keeps open connections; `end` closes them.
- The number of connections of all Services together is limited (`ConnectionLimit`); further ones are reset.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import struct
from contextlib import suppress
from functools import partial
from typing import Final

from ostinato.plane.network.services.balancer import Balancer
from ostinato.world import Clock

_logger = logging.getLogger("ostinato.plane.services")

_CHUNK: Final = 1 << 16
_CONNECT_TIMEOUT: Final = 3.0  # seconds
_MAX_BACKENDS_TRIED: Final = 4  # per connection
_BACKLOG: Final = 512
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER with timeout 0: close sends RST


class ConnectionLimit:
    """Limit of concurrent connections. Defaults to an eighth of the file descriptor limit."""

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            limit = max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4, 16) // 2
        self._free = limit

    def acquire(self) -> bool:
        if not self._free:
            return False
        self._free -= 1
        return True

    def release(self) -> None:
        self._free += 1


class TcpListener:
    def __init__(self, clock: Clock, balancer: Balancer, limit: ConnectionLimit) -> None:
        self._clock = clock
        self._balancer = balancer
        self._limit = limit
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        return self._server is not None

    async def open(self, bound: socket.socket) -> None:
        """Listen with a bound socket; the listener closes it."""
        self._server = await asyncio.start_server(self._accept, sock=bound, backlog=_BACKLOG)

    def stop_listening(self) -> None:
        """Stop accepting connections."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def end(self) -> None:
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Connections

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._limit.acquire():
            _reset(writer)
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(partial(self._finished, writer))

    def _finished(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        _reset(writer)  # unless it is closed: the task may have been cancelled before it began
        self._tasks.discard(task)
        self._limit.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("connection failed error=%s", error, exc_info=error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect(str((writer.get_extra_info("peername") or [""])[0]))
        if backend is None:
            return
        both = (writer, backend[1])
        for each in both:
            _set_option(each, socket.SO_KEEPALIVE, 1)
        try:
            async with asyncio.TaskGroup() as relays:
                relays.create_task(_relay(reader, backend[1]))
                relays.create_task(_relay(backend[0], writer))
            for each in both:
                each.close()
            for each in both:  # what was written is sent first
                await each.wait_closed()
        except* OSError:  # one side failed: reset the other
            pass
        finally:
            _reset(backend[1])  # `_finished` resets the client's

    async def _connect(self, client: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the first backend that accepts; None if none does."""
        for backend in self._balancer.candidates(client)[:_MAX_BACKENDS_TRIED]:
            try:
                async with self._clock.timeout(_CONNECT_TIMEOUT):
                    connected = await asyncio.open_connection(backend.address, backend.port)
            except OSError:  # includes TimeoutError
                continue
            self._balancer.record(client, backend)
            return connected
        return None


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until EOF, then send EOF."""
    while data := await reader.read(_CHUNK):
        _require_open(writer)
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        _require_open(writer)
        writer.write_eof()


def _require_open(writer: asyncio.StreamWriter) -> None:
    """uvloop raises RuntimeError for a transport that was closed, which is no other failure than a lost connection."""
    if writer.transport.is_closing():
        raise ConnectionResetError("connection closed")


def _reset(writer: asyncio.StreamWriter) -> None:
    _set_option(writer, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def _set_option(writer: asyncio.StreamWriter, option: int, value: int | bytes) -> None:
    """Set an option of a connection, if it is not closed yet."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError, ValueError):  # already closed; uvloop raises ValueError, or has no socket any more
            connection.setsockopt(socket.SOL_SOCKET, option, value)
