"""Small HTTP server, for webhooks, health, metrics and the live page. The API server has its own: `server.http`.

- A connection handles one request at a time. Reading pauses while a request is handled and data is buffered ahead.
- Time is bounded for TLS handshakes, heads, bodies and idle connections; the handler bounds the size of bodies.
- A request completes although its client disconnects; only reading its body fails.
- A handler may answer with a stream (`HttpStream`), or take over the connection (`HttpUpgrade`). Both end with the
  client, and are ended when the server stops. A client that does not read for a while is disconnected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, cast
from urllib.parse import parse_qs, unquote

from ostinato.http import unix_sockets
from ostinato.http.encoding import CONTINUE, date_line, field_lines
from ostinato.http.errors import InvalidHttp
from ostinato.http.fields import MAX_HEAD
from ostinato.http.request import RequestBody, RequestHead, parse_head
from ostinato.http.status import rejection, status_line
from ostinato.world import Clock, Timer

TEXT: Final = "text/plain; charset=utf-8"
_MAX_READ_AHEAD: Final = 1 << 16  # bytes that are buffered before the handler reads
_HANDSHAKE_TIMEOUT: Final = 10.0  # seconds, as those below
_HEAD_TIMEOUT: Final = 30.0  # from the first byte
_BODY_TIMEOUT: Final = 60.0
_IDLE_TIMEOUT: Final = 90.0  # between requests
_LINGER_TIMEOUT: Final = 1.0  # for the client to read a response while it is still sending
_FLUSH_TIMEOUT: Final = 1.0  # for buffered responses, when stopping

_logger = logging.getLogger(__name__)


class BodyTooLarge(Exception):  # noqa: N818
    """The body of a request is longer than the handler accepts."""


class HttpRequest:
    """A request whose head has been received."""

    def __init__(self, head: RequestHead, read: Callable[[int], Awaitable[bytes]]) -> None:
        self.method = head.method
        self.path = unquote(head.path)
        self.headers: Mapping[str, str] = head.headers
        self.query: Mapping[str, Sequence[str]] = parse_qs(head.query, keep_blank_values=True)
        self._read = read

    async def read(self, max_bytes: int) -> bytes:
        """Read the body. Raises `BodyTooLarge`, or ConnectionError if the client disconnects or sends invalid data."""
        return await self._read(max_bytes)


class HttpResponse(NamedTuple):
    status: int
    body: bytes = b""
    content_type: str = TEXT
    headers: Sequence[tuple[str, str]] = ()


class HttpStream(NamedTuple):
    """A response whose body is sent as it is generated. The generator is closed when the client disconnects."""

    chunks: AsyncGenerator[bytes, None]
    status: int = 200
    content_type: str = TEXT
    headers: Sequence[tuple[str, str]] = ()


class Duplex(Protocol):
    """A connection that was taken over."""

    async def read(self) -> bytes:
        """Wait for data; b"" after the client has disconnected."""

    async def write(self, data: bytes) -> None:
        """Send data, and wait while the client does not read."""


class HttpUpgrade(NamedTuple):
    """Switch to another protocol: `head`, the whole response, is sent; then `run` has the connection."""

    head: bytes
    run: Callable[[Duplex], Awaitable[None]]


Answer = HttpResponse | HttpStream | HttpUpgrade
Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]
StreamingHandler = Callable[[HttpRequest], Awaitable[Answer]]


class SmallHttpServer:
    """Start it once, then stop it."""

    def __init__(self, handler: StreamingHandler, clock: Clock, max_connections: int = 0) -> None:
        """`max_connections`: further ones are closed. Defaults to 0, no limit."""
        self.handler = handler
        self.clock = clock
        self.max_connections = max_connections
        self.address = ("", 0)  # the first one on which it listens
        self._listener: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    async def start(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        """Listen. Raises OSError. `host`: "" listens on all addresses. `port`: 0 selects a free port."""
        self._listener = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self),
            host or None,
            port,
            ssl=context,
            ssl_handshake_timeout=None if context is None else _HANDSHAKE_TIMEOUT,
        )
        self.address = self._listener.sockets[0].getsockname()[:2]

    async def start_unix(self, listening: socket.socket) -> None:
        """Serve a listening Unix socket; see `http.unix_sockets`."""
        self._listener = await asyncio.get_running_loop().create_unix_server(lambda: _Connection(self), sock=listening)

    async def stop(self, seconds: float) -> None:
        """Stop listening, close idle connections, and wait up to `seconds` for running requests."""
        if self._listener is not None:
            self._listener.close()
        for connection in [*self._connections]:
            connection.finish()
        try:
            running = [each.task for each in self._connections if each.task is not None]
            if running:
                with suppress(TimeoutError):
                    async with self.clock.timeout(seconds):
                        await asyncio.gather(*map(asyncio.shield, running), return_exceptions=True)
            with suppress(TimeoutError):
                async with self.clock.timeout(_FLUSH_TIMEOUT):
                    while any(each.has_unsent_data for each in self._connections):
                        await self.clock.sleep(_FLUSH_TIMEOUT / 100)
        finally:
            for connection in [*self._connections]:  # without waiting for the TLS shutdown
                connection.abort()

    # Called by connections

    def opened(self, connection: _Connection) -> bool:
        """Return whether the connection is accepted."""
        self._connections.add(connection)
        return not self.max_connections or len(self._connections) <= self.max_connections

    def closed(self, connection: _Connection) -> None:
        self._connections.discard(connection)


class _Connection(asyncio.Protocol):
    def __init__(self, server: SmallHttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None  # None before and after the connection
        self._buffer = b""  # received, not parsed yet
        self._searched = 0  # bytes of the buffer that contain no end of a head
        self._body: RequestBody | None = None  # of the current request
        self._body_waiter: asyncio.Future[None] | None = None  # resolved when more of the body was received
        self._writable: asyncio.Future[None] | None = None  # while the client does not read
        self._timer: Timer | None = None  # closes the connection
        self._closing = False  # no further request
        self._lingering = False  # received data is discarded until the connection is closed
        self._paused = False
        self._endless = False  # the request is answered by a stream or an upgrade, which ends with the client
        self._received: deque[bytes] | None = None  # after an upgrade, data that was not read yet
        self.task: asyncio.Task[None] | None = None  # handles the current request

    # Called by the server

    @property
    def has_unsent_data(self) -> bool:
        try:
            return self._transport is not None and self._transport.get_write_buffer_size() > 0
        except AttributeError:  # a TLS transport that is closed
            return False

    def finish(self) -> None:
        """Close now, or after the current request."""
        self._closing = True
        if self.task is None and self._transport is not None:
            self._transport.close()
        elif self.task is not None and self._endless:
            self.task.cancel()

    def abort(self) -> None:
        if self.task is not None:
            self.task.cancel()
        if self._transport is not None:
            self._transport.abort()

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._server.opened(self) or not _is_own(self._transport):
            self._transport.abort()
            return
        self._expire_after(_IDLE_TIMEOUT)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        self._closing = True
        self._server.closed(self)
        self._expire_after(None)
        self._wake()
        self.resume_writing()
        if self._endless and self.task is not None and self._received is None:
            self.task.cancel()

    def eof_received(self) -> bool:
        self._closing = True
        self._wake()
        is_answered = self.task is not None and not self._endless
        return is_answered and self._transport is not None and not self._is_encrypted

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            return
        if self._received is not None:
            self._received.append(data)
            self._wake()
            self._pause_if_full()
            return
        self._buffer = self._buffer + data if self._buffer else data
        if self._body is not None and not self._body.complete:
            self._feed_body(self._body)
        elif self.task is None:
            self._begin()
        self._pause_if_full()

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Requests

    @property
    def _is_encrypted(self) -> bool:
        return self._transport is not None and self._transport.get_extra_info("ssl_object") is not None

    @property
    def _is_full(self) -> bool:
        """Whether more is buffered than the handler waits for."""
        if self._received is not None:
            return sum(map(len, self._received)) > _MAX_READ_AHEAD
        body = 0 if self._body is None or self._body.data is None else len(self._body.data)
        return self._body_waiter is None and len(self._buffer) + body > _MAX_READ_AHEAD

    def _pause_if_full(self) -> None:
        if self.task is not None and not self._paused and self._transport is not None and self._is_full:
            self._paused = True
            self._transport.pause_reading()

    def _begin(self) -> None:
        """Begin the next request if its head has been received."""
        end = self._buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
        if end < 0 or end > MAX_HEAD:
            if len(self._buffer) > MAX_HEAD:
                self._reject(InvalidHttp("the head of the request is too large", status=431))
            elif not self._searched:
                self._expire_after(_HEAD_TIMEOUT)
            self._searched = len(self._buffer)
            return
        self._searched = 0
        try:
            head = parse_head(self._buffer[:end])
            self._buffer = self._buffer[end + 4 :]
            body = self._body = RequestBody(head)
            if not body.complete:
                self._buffer = body.feed(self._buffer)
        except InvalidHttp as error:
            self._reject(error)
            return
        self._expire_after(None)
        self.task = asyncio.get_running_loop().create_task(self._handle(head, body), name="HTTP request")

    def _feed_body(self, body: RequestBody) -> None:
        try:
            self._buffer = body.feed(self._buffer)
        except InvalidHttp:
            self._closing = True
            self._buffer = b""
        self._wake()

    def _wake(self) -> None:
        if self._body_waiter is not None and not self._body_waiter.done():
            self._body_waiter.set_result(None)

    async def _read(self, head: RequestHead, body: RequestBody, max_bytes: int) -> bytes:
        if head.length > max_bytes:
            raise BodyTooLarge
        if head.expects_continue and not body.complete and not body.size and self._transport is not None:
            self._transport.write(CONTINUE)
        try:
            while not body.complete and body.size <= max_bytes:
                if self._closing:
                    raise ConnectionError("the body of the request is incomplete")
                self._body_waiter = asyncio.get_running_loop().create_future()
                self._expire_after(_BODY_TIMEOUT)
                self._resume_reading()
                await self._body_waiter
        finally:
            self._body_waiter = None
            self._expire_after(None)
        if body.size > max_bytes or body.data is None:
            raise BodyTooLarge
        return bytes(body.data)

    async def _handle(self, head: RequestHead, body: RequestBody) -> None:
        response: Answer
        try:
            response = await self._server.handler(HttpRequest(head, lambda most: self._read(head, body, most)))
        except ConnectionError:  # the body is incomplete
            self._closing = True
            response = HttpResponse(400, b"400 Bad Request\n")
        except Exception:
            _logger.exception("request failed method=%s path=%s", head.method, head.path)
            response = HttpResponse(500, b"internal error; see the log\n")
        if not isinstance(response, HttpResponse):
            await self._serve_endless(response)
            return
        if not head.keep_alive or not body.complete:
            self._closing = True
        self._write(head, response)
        if self._writable is not None:
            self._expire_after(_IDLE_TIMEOUT)
            await self._writable
        self.task = self._body = None
        if self._transport is None:
            return
        if not body.complete:
            self._linger()
            return
        if self._closing:
            self._transport.close()
            return
        self._expire_after(_IDLE_TIMEOUT)
        self._resume_reading()
        if self._buffer:
            self._begin()

    async def _serve_endless(self, response: HttpStream | HttpUpgrade) -> None:
        """Send a stream, or run what took over the connection; then close."""
        self._closing = self._endless = True
        try:
            if isinstance(response, HttpUpgrade):
                self._received = deque([self._buffer] if self._buffer else [])
                self._buffer = b""
                await self.write(response.head)
                await response.run(self)
            else:
                fields = [("Content-Type", response.content_type), *response.headers, ("Connection", "close")]
                lines = status_line(response.status).encode() + b"\r\n" + date_line(self._server.clock.now())
                await self.write(lines + field_lines(fields) + b"\r\n")
                async for chunk in response.chunks:
                    await self.write(chunk)
        except (asyncio.CancelledError, ConnectionError):  # the client has disconnected, or the server stops
            pass
        except Exception:
            _logger.exception("stream failed")
        finally:
            if isinstance(response, HttpStream):
                await response.chunks.aclose()
            self.task = None
            if self._transport is not None:
                self._transport.close()

    # Duplex

    async def read(self) -> bytes:
        while not self._received:
            if self._transport is None or self._transport.is_closing():
                return b""
            self._body_waiter = asyncio.get_running_loop().create_future()
            self._resume_reading()
            try:
                await self._body_waiter
            finally:
                self._body_waiter = None
        return self._received.popleft()

    async def write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError("the client has disconnected")
        self._transport.write(data)
        if self._writable is not None:
            self._expire_after(_IDLE_TIMEOUT)
            await self._writable
            self._expire_after(None)

    def _write(self, head: RequestHead, response: HttpResponse) -> None:
        if self._transport is None:
            return
        fields = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        fields += response.headers
        if self._closing:
            fields.append(("Connection", "close"))
        lines = status_line(response.status).encode() + b"\r\n" + date_line(self._server.clock.now())
        body = b"" if head.method == "HEAD" else response.body
        self._transport.write(lines + field_lines(fields) + b"\r\n" + body)

    def _reject(self, error: InvalidHttp) -> None:
        self._closing = True
        self._buffer = b""
        if self._transport is not None:
            self._transport.write(rejection(error.status, error.detail))
            self._linger()

    def _linger(self) -> None:
        """Discard received data for a moment before closing: closing immediately could lose the response."""
        self._lingering = True
        self._buffer = b""
        self._resume_reading()
        self._expire_after(_LINGER_TIMEOUT)

    def _resume_reading(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _expire_after(self, seconds: float | None) -> None:
        """Abort the connection after so many seconds, unless it is called again. None: never."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None and self._transport is not None:
            self._timer = self._server.clock.timer(seconds, self._expire)

    def _expire(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _is_own(transport: asyncio.Transport) -> bool:
    """Whether the peer of a Unix socket runs as this user; True for other sockets."""
    peer: socket.socket | None = transport.get_extra_info("socket")
    return peer is None or peer.family != socket.AF_UNIX or unix_sockets.is_own(peer)
