"""Connection pool for one server and one set of certificates.

- A connection serves one request at a time, until the response is closed. It is reused after a complete response, and
  closed after an error or a cancelled request.
- Short requests share a bounded number of connections, for which further ones wait. Streams are not bounded, so that
  many watches never delay a write.
- The pool never sends a request twice.
- When certificates change, a new pool replaces this one: its streams are closed, so that they reconnect with the new
  certificates, and its short requests are completed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.client.config.config import Config
from ostinato.client.config.credentials import ClientCertificate, Credential, CredentialsError
from ostinato.client.config.error import ConfigError
from ostinato.client.config.tls import Material, ResumingContext, TlsFiles
from ostinato.client.http.connection import MAX_PIECE, Connection, ConnectionClosed
from ostinato.client.http.dialer import Dialer
from ostinato.client.http.errors import failure, is_reset
from ostinato.client.http.head import AddedHeaders, RequestHeads
from ostinato.client.http.metrics import HttpMetrics
from ostinato.client.http.response import HttpResponse
from ostinato.client.http.websocket import Entropy, HttpWebSocket, new_key, upgrade
from ostinato.client.transport.metrics import NO_RESPONSE, TRANSPORTS
from ostinato.client.transport.protocol import ConnectionLost, Request, TransportError
from ostinato.http.decompression import is_compressed
from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser
from ostinato.http.websocket import upgrade_fields
from ostinato.world import Clock, World
from ostinato.world.clock import Timer

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64  # for short requests; further ones wait

_READ_TIMEOUT: Final = 70.0  # seconds without data for a short request; API servers end a request after 60
_IDLE: Final = 30.0  # seconds for which an idle connection is kept
_NO_MATERIAL: Final = Material(b"", None)


class Reset(Exception):  # noqa: N818 - a signal to retry
    """The connection was lost before the response. `lost`: the error to raise if the request is not retried."""

    def __init__(self, lost: TransportError) -> None:
        super().__init__()
        self.lost = lost


class PoolSettings(NamedTuple):
    """Options shared by all pools of a transport."""

    host: str  # for messages
    clock: Clock
    metrics: HttpMetrics
    headers: AddedHeaders
    max_response_bytes: int
    check: Callable[[], None] | None  # called immediately before a request is sent; raises to prevent it
    entropy: Entropy
    unix_socket: Path | None = None


class HttpPool:
    """Must be created on the event loop that uses it."""

    def __init__(self, config: Config, context: ResumingContext | None, settings: PoolSettings) -> None:
        self._config = config
        self._context = context
        self.clock = settings.clock
        self.metrics = settings.metrics
        self.max_response_bytes = settings.max_response_bytes
        self._host = settings.host
        self._check = settings.check
        self._entropy = settings.entropy
        self._dialer = Dialer(config, context, self.clock, self.metrics.sink, settings.unix_socket)
        self._heads = RequestHeads(settings.headers, self._dialer.prefix, self._dialer.headers)
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[Connection] = []  # the last one is used first
        self._busy: dict[Connection, Request] = {}
        self._sweep: Timer | None = None  # while there are idle or monitored connections
        self._retired = False
        self._closed = False
        self._sockets: set[HttpWebSocket] = set()  # open

    async def send(self, request: Request, credential: Credential, until: float | None, *, retry: bool) -> HttpResponse:
        """Send a request, and return its response when the head has been received.

        - `until`: the time by which the response must have been read; of a stream, by which it must have begun. None
          applies a read timeout instead.
        - Raises `Reset` if the connection was lost during a GET.
        """
        connection: Connection | None = None
        code = NO_RESPONSE
        try:
            head = self._heads.of(request, credential)
            connection = await self._connection(request)
            self._begin(connection, request, has_read_timeout=until is None and not request.stream)
            body, reader = request.body, ResponseParser(bodiless=request.method == "HEAD")
            if isinstance(body, bytes) and len(body) <= MAX_PIECE:
                await connection.send(head + body, reader)
            else:
                await connection.send_pieces(head, body, reader)
            compressed = is_compressed(reader.headers)
            code = str(reader.status)
        except BaseException as error:
            if connection is not None:
                connection.abort()
                self.release(connection, request)
            if not isinstance(error, InvalidHttp | ConnectionClosed | OSError):
                raise
            lost = failure(error, self.what(request))
            raise Reset(lost) if request.method == "GET" and is_reset(error) else lost from None
        finally:
            self.metrics.attempted(request, code, retry=retry)
        if connection.is_new:
            connection.is_new = False
            if self._context is not None and connection.tls is not None:
                self._context.remember(connection.tls)
        if request.stream and reader.status < 300:
            until = None  # applied to the head only
        return HttpResponse(self, connection, request, until, compressed=compressed)

    def what(self, request: Request) -> str:
        return f"{request.method} {self._host}{request.path}"

    def release(self, connection: Connection, request: Request) -> None:
        del self._busy[connection]
        if not request.stream:
            self._slots.release()
        reader = connection.reader
        if not (reader.complete and reader.keep_alive and connection.is_open) or self._retired:
            connection.abort()
            return
        connection.since = self.clock.monotonic()
        self._idle.append(connection)
        if self._sweep is None:
            self._schedule_sweep()

    def abandon(self, connection: Connection, request: Request) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and closed its connections
            self._loop.call_soon_threadsafe(self.release, connection, request)

    async def websocket(self, request: Request, credential: Credential, protocols: Sequence[str]) -> HttpWebSocket:
        """Open a WebSocket. Raises `UpgradeRefused` if the server rejects the upgrade."""
        key, what = new_key(self._entropy), self.what(request)
        headers = [*request.headers, *upgrade_fields(key, protocols)]
        head = self._heads.of(request._replace(headers=headers), credential)
        connection = await self._dialer.connect(what)
        try:
            self._begin(connection, request, has_read_timeout=False)
            protocol = await upgrade(connection, head, key, protocols, what)
        except OSError as error:
            connection.abort()
            raise failure(error, what) from None
        except BaseException:
            connection.abort()
            raise
        socket = HttpWebSocket(connection, protocol, what, self.clock, self._entropy, self._sockets.discard)
        if not socket.is_lost:
            self._sockets.add(socket)
        return socket

    def retire(self) -> None:
        """Close idle connections and streams; close the others when their request is complete."""
        self._retired = True
        for connection in [*self._idle, *(busy for busy, request in self._busy.items() if request.stream)]:
            connection.abort()
        self._idle.clear()
        for socket in [*self._sockets]:
            socket.abort()

    async def close(self) -> None:
        self._closed = True
        self._dialer.close()
        self.retire()
        for connection in self._busy:
            connection.abort()
        if self._sweep is not None:
            self._sweep.cancel()

    def is_unused(self) -> bool:
        return not self._busy and not self._sockets

    # Connections

    async def _connection(self, request: Request) -> Connection:
        if not request.stream:
            await self._slots.acquire()
        try:
            connection = self._idle_connection() or await self._dialer.connect(self.what(request))
        except BaseException:
            if not request.stream:
                self._slots.release()
            raise
        self._busy[connection] = request
        return connection

    def _begin(self, connection: Connection, request: Request, *, has_read_timeout: bool) -> None:
        """Run the last checks before the first byte is sent."""
        if self._retired and (self._closed or request.stream):
            raise ConnectionAbortedError
        if self._check is not None:
            self._check()
        connection.has_read_timeout = has_read_timeout
        if has_read_timeout and self._sweep is None:
            self._schedule_sweep()

    def _idle_connection(self) -> Connection | None:
        latest = self.clock.monotonic() - _IDLE
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.since > latest:
                return connection
            connection.abort()
        return None

    def _schedule_sweep(self) -> None:
        self._sweep = self.clock.timer(min(_IDLE, _READ_TIMEOUT) / 4, self._sweep_connections)

    def _sweep_connections(self) -> None:
        """Close connections that were idle for too long, and fail requests that received nothing for too long."""
        now = self.clock.monotonic()
        for connection in [each for each in self._idle if each.since <= now - _IDLE or not each.is_open]:
            self._idle.remove(connection)
            connection.abort()
        monitored = [connection for connection in self._busy if connection.has_read_timeout]
        for connection in monitored:
            if connection.active or not connection.is_awaited:
                connection.active, connection.since = False, now
            elif connection.since <= now - _READ_TIMEOUT:
                connection.fail(TimeoutError())
        self._sweep = None
        if self._idle or monitored:
            self._schedule_sweep()


class HttpPools:
    """The current pool, replaced when certificates change. Belongs to the event loop that first uses it."""

    def __init__(self, config: Config, world: World, settings: PoolSettings) -> None:
        self._config = config
        self._settings = settings
        self._tls = TlsFiles(config, world)
        self._secure = config.secure
        self._material = _NO_MATERIAL  # of the current pool
        self._pool: HttpPool | None = None
        self._retired: list[HttpPool] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def current(self, certificate: ClientCertificate | None) -> HttpPool:
        """Return the pool to use now. `certificate`: of an exec plugin; one in the configuration takes precedence."""
        material = _NO_MATERIAL
        if self._secure:
            material = await self._tls.current()
            if certificate is not None and material.certificate is None:
                material = material._replace(certificate=certificate)
        self._check_usable()
        if self._pool is not None and (material is self._material or material == self._material):
            return self._pool
        try:
            context = self._tls.context(material) if self._secure else None
        except ConfigError as error:  # of a plugin; configured files were checked when they were read
            raise CredentialsError(str(error)) from None
        if self._pool is not None:
            log.info("certificates changed, reconnecting server=%s", self._config.url)
            self._pool.retire()
            self._retired = [pool for pool in (*self._retired, self._pool) if not pool.is_unused()]
        if self._settings.metrics.sink is not None:
            self._settings.metrics.sink.count(TRANSPORTS, {"result": "miss"})
        self._pool = HttpPool(self._config, context, self._settings)
        self._material = material
        return self._pool

    async def close(self) -> None:
        self._closed = True
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._pool, self._retired = None, []
        for pool in pools:
            await pool.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise ConnectionLost(f"{self._config.url}: the transport is closed")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise TransportError(
                f"{self._config.url}: the transport belongs to another event loop; create one per loop"
            )
