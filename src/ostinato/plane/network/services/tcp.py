"""TCP: connections to a Service, each relayed to one of its backends.

- A backend that cannot be reached is passed over for the next; if none can be, the client is told by a reset.
- Either side may end its half of a connection while the other goes on.
- Who stops listening leaves what is under way alone; `end` ends that, too.
- There are only so many connections at a time (`Room`), of all Services together. Whoever comes after is refused.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from contextlib import suppress
from typing import Final

from ostinato.plane.network.services.balancer import Balancer
from ostinato.world import Clock

_CHUNK: Final = 1 << 16
_CONNECT_TIMEOUT: Final = 3.0  # seconds that a backend has to accept
_MAX_BACKENDS_TRIED: Final = 4  # backends that are asked
_BACKLOG: Final = 512
_RESET: Final = struct.pack("ii", 1, 0)  # for SO_LINGER: what is not sent is dropped, and the other side told


class ConnectionLimit:
    """For so many connections. Defaults to those that a quarter of the descriptors of this process is enough for."""

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
        """Listen with a socket that is bound, and that is the listener's own from now on."""
        self._server = await asyncio.start_server(self._accept, sock=bound, backlog=_BACKLOG)

    def stop_listening(self) -> None:
        """Accept nobody any more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def end(self) -> None:
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # One connection

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._limit.acquire():
            _reset(writer)
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._limit.release()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            backend = await self._connect(str((writer.get_extra_info("peername") or [""])[0]))
        except asyncio.CancelledError:
            _reset(writer)
            raise
        if backend is None:
            _reset(writer)
            return
        for each in (writer, backend[1]):
            each.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        ended = False
        try:
            async with asyncio.TaskGroup() as relays:
                relays.create_task(_relay(reader, backend[1]))
                relays.create_task(_relay(backend[0], writer))
            ended = True
        except* OSError:  # one side is gone: the other is told
            pass
        finally:
            for each in (writer, backend[1]):
                each.close() if ended else _reset(each)

    async def _connect(self, client: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """To the first backend that accepts; None if none does."""
        for backend in self._balancer.candidates(client)[:_MAX_BACKENDS_TRIED]:
            try:
                async with self._clock.timeout(_CONNECT_TIMEOUT):
                    connected = await asyncio.open_connection(backend.address, backend.port)
            except OSError:  # TimeoutError is one
                continue
            self._balancer.record(client, backend)
            return connected
        return None


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the end of what is read, which is told."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):  # it is closed
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
