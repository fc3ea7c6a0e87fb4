"""Connection to a server: one request at a time, and the response as it is received.

- At most one task waits: for the head of the response, for more of its body, or for all of it.
- Backpressure: reading pauses while the buffered body exceeds its bound.
- An error is raised in the waiting task, or in the next wait, after everything that was received before it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final, cast

from ostinato.http.encoding import LAST_CHUNK
from ostinato.http.encoding import chunk as encode_chunk
from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser

_MAX_BUFFERED: Final = 256 * 1024  # bytes of a body that are buffered before reading pauses
MAX_PIECE: Final = 256 * 1024  # bytes of a request written to the socket at a time
_ALL: Final = 1 << 62

_NO_RESPONSE: Final = ResponseParser()  # before the first request
_NO_RESPONSE.complete = True


class ConnectionClosed(Exception):  # noqa: N818
    """The server closed the connection before the response was complete."""


class BodyTooLarge(Exception):  # noqa: N818
    """The body is longer than the caller accepts."""


class Connection(asyncio.Protocol):
    """asyncio protocol of the client side."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_new = True  # no response yet; maintained by the pool
        self.reader = _NO_RESPONSE  # of the current or the last response
        self.since = 0.0  # when it became idle, or was last active; maintained by the pool
        self.has_read_timeout = False  # the pool ends a request that receives nothing
        self.active = False  # data received, or a wait begun, since the pool's last sweep
        self.transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._wanted = 0  # buffered bytes that wake the waiter; the end of the body always does
        self._max_buffered = _MAX_BUFFERED  # buffered bytes at which reading pauses
        self._error: Exception | None = None
        self._paused = False  # reading is paused until the next wait
        self._writable: asyncio.Future[None] | None = None  # while the socket's buffer is full

    # Called by the pool and the response

    def send(self, request: bytes, reader: ResponseParser) -> asyncio.Future[None]:
        """Send a request. The returned future is done when the head of the response has been received."""
        if self.transport is None or not self.is_open:
            raise ConnectionClosed
        self.reader = reader
        self.transport.write(request)
        return self._wait(0, _MAX_BUFFERED)

    async def send_pieces(self, head: bytes, body: bytes | AsyncIterable[bytes], reader: ResponseParser) -> None:
        """Send a request with a large body, or with a body in chunks, which is sent with chunked encoding."""
        if self.transport is None or not self.is_open:
            raise ConnectionClosed
        self.reader = reader
        self.active = True
        self.transport.write(head)
        async for piece in _pieces(body) if isinstance(body, bytes) else _chunks(body):
            if self._writable is not None:
                await self._writable
                self.active = True
            if reader.status:  # the server responded early, and reads no more
                reader.keep_alive = False
                return
            if self._error is not None:
                raise self._error
            self.transport.write(piece)
        if not reader.status:
            await self._wait(0, _MAX_BUFFERED)

    async def more(self) -> bytes:
        """Wait for more of the body; b"" at its end."""
        reader = self.reader
        if not reader.buffered and not reader.complete:
            await self._wait(1, _MAX_BUFFERED)
        return reader.take()

    async def all(self, longest: int) -> bytes:
        """Wait for the rest of the body. Raises `BodyTooLarge` if it is longer than `longest` bytes."""
        reader = self.reader
        if (reader.length or reader.buffered) > longest:
            raise BodyTooLarge
        if not reader.complete:
            await self._wait(_ALL, longest)
        if reader.buffered > longest:
            raise BodyTooLarge
        return reader.take()

    def abort(self) -> None:
        """Close without a TLS shutdown: the peer may be gone, and the event loop may be about to end."""
        self.is_open = False
        if self.transport is not None:
            self.transport.abort()
        self.fail(ConnectionAbortedError())

    def fail(self, error: Exception) -> None:
        """Raise an error in the current or the next wait."""
        self._error = self._error or error
        self.resume_writing()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS session; None without TLS."""
        return None if self.transport is None else self.transport.get_extra_info("ssl_object")

    @property
    def is_awaited(self) -> bool:
        """Whether a task waits for the server to respond, or to read more of the request."""
        return (self._waiter is not None and not self._waiter.done()) or self._writable is not None

    def _wait(self, wanted: int, longest: int) -> asyncio.Future[None]:
        if self._error is not None:
            raise self._error
        self._wanted, self._max_buffered = wanted, longest
        self.active = True
        if self._paused:
            self._paused = False
            cast("asyncio.Transport", self.transport).resume_reading()
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        reader = self.reader
        if reader.complete or self._error is not None:
            if reader.status == 101 and self._error is None:
                reader.rest += data  # of the other protocol, which has not taken over yet
            else:
                self.abort()  # unsolicited data
            return
        self.active = True
        try:
            reader.feed(data)
        except InvalidHttp as error:
            self.fail(error)
            return
        if self._writable is not None and reader.status:
            reader.keep_alive = False  # early response: the rest of the request may never be read
            self.resume_writing()
        if reader.complete or (reader.status and reader.buffered >= self._wanted):
            self._wake()
        if reader.buffered > self._max_buffered and not reader.complete:
            self._stop()

    def eof_received(self) -> bool:
        self.is_open = False
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if error is None:
            self.reader.end()
        if self.reader.complete:
            self._wake()
        self.fail(error if isinstance(error, OSError) else ConnectionClosed())

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _stop(self) -> None:
        """Pause reading, or fail a wait for the whole body: the bound of the buffer is exceeded."""
        if self._wanted == _ALL:
            self.fail(BodyTooLarge())
        elif not self._paused and self.is_open:
            self._paused = True
            cast("asyncio.Transport", self.transport).pause_reading()


async def _pieces(body: bytes) -> AsyncIterator[memoryview]:
    view = memoryview(body)
    for at in range(0, len(body), MAX_PIECE):
        yield view[at : at + MAX_PIECE]


async def _chunks(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for chunk in body:
        if chunk:
            yield encode_chunk(chunk)
    yield LAST_CHUNK


def keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket with TCP keepalive enabled."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    return made
