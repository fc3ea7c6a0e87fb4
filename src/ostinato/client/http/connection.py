"""A connection to a server: one request at a time, and its answer as it comes.

- Who waits, waits for one thing: the beginning of the answer, more of its body, or all of it.
- A body that nobody takes stops the reading; so the server waits, and no more than a piece or two is held.
- What went wrong is told to whoever waits, or waits next, after all that came before it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final, cast

from ostinato.client.http.message import InvalidHttp, MessageReader

_MAX_BUFFERED: Final = 256 * 1024  # bytes of a body that are read before anybody takes them
MAX_PIECE: Final = 256 * 1024  # bytes of a request that are handed to the socket at a time
_ALL: Final = 1 << 62

_NO_RESPONSE: Final = MessageReader()  # is awaited, or came yet
_NO_RESPONSE.complete = True


class ConnectionClosed(Exception):  # noqa: N818 - what happened
    """The server closed the connection before its answer was complete."""


class BodyTooLarge(Exception):  # noqa: N818 - what the matter is
    """More came than is wanted."""


class Connection(asyncio.Protocol):
    """Made by a loop, which tells it what comes."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_new = True  # it has answered nothing yet; its pool knows
        self.reader = _NO_RESPONSE  # of the answer that is awaited, or came last
        self.since = 0.0  # when it was put aside, or last heard of; its pool knows
        self.has_read_timeout = False
        self.active = False  # something came, or began to be awaited, since the pool's last look
        self.transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._wanted = 0  # bytes of the body with which the waiter is woken, but for the end
        self._max_buffered = _MAX_BUFFERED  # bytes of the body that are held
        self._error: Exception | None = None
        self._paused = False  # it is not read until somebody waits
        self._writable: asyncio.Future[None] | None = None  # while the socket takes no more

    # Told by whoever uses it

    def send(self, request: bytes, reader: MessageReader) -> asyncio.Future[None]:
        """Send a request. What is returned is done when its answer begins."""
        if self.transport is None or not self.is_open:
            raise ConnectionClosed
        self.reader = reader
        self.transport.write(request)
        return self._wait(0, _MAX_BUFFERED)

    async def send_pieces(self, head: bytes, body: bytes | AsyncIterable[bytes], reader: MessageReader) -> None:
        """The same for a body that is large, or comes in chunks of its own, which are sent as such."""
        if self.transport is None or not self.is_open:
            raise ConnectionClosed
        self.reader = reader
        self.active = True
        self.transport.write(head)
        async for piece in _pieces(body) if isinstance(body, bytes) else _chunks(body):
            if self._writable is not None:
                await self._writable
                self.active = True
            if reader.status:  # it has heard enough
                reader.keep_alive = False
                return
            if self._error is not None:
                raise self._error
            self.transport.write(piece)
        if not reader.status:
            await self._wait(0, _MAX_BUFFERED)

    async def more(self) -> bytes:
        """More of the body; nothing at its end."""
        reader = self.reader
        if not reader.buffered and not reader.complete:
            await self._wait(1, _MAX_BUFFERED)
        return reader.take()

    async def all(self, longest: int) -> bytes:
        """The rest of the body. `BodyTooLarge` if that is longer."""
        reader = self.reader
        if (reader.length or reader.buffered) > longest:
            raise BodyTooLarge
        if not reader.complete:
            await self._wait(_ALL, longest)
        if reader.buffered > longest:
            raise BodyTooLarge
        return reader.take()

    def abort(self) -> None:
        """Close it without a farewell, for which TLS would wait: the other side may be dead, and the loop may end."""
        self.is_open = False
        if self.transport is not None:
            self.transport.abort()
        self.fail(ConnectionAbortedError())

    def fail(self, error: Exception) -> None:
        """There will be no more of the answer."""
        self._error = self._error or error
        self.resume_writing()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    @property
    def tls(self) -> ssl.SSLObject | None:
        """What encrypts it, if anything does."""
        return None if self.transport is None else self.transport.get_extra_info("ssl_object")

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the server, to answer or to take more of the request."""
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

    # Told by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        reader = self.reader
        if reader.complete or self._error is not None:
            self.abort()  # nobody has asked
            return
        self.active = True
        try:
            reader.feed(data)
        except InvalidHttp as error:
            self.fail(error)
            return
        if self._writable is not None and reader.status:
            reader.keep_alive = False  # it has heard enough: the rest of the request may never be read
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
        """More has come than may be held."""
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
            yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n\r\n"


def keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket whose peer is asked for signs of life."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    return made
