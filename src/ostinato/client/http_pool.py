"""Connections: the pools of aiohttp, and that of direct requests, for one set of certificates.

Short requests share a bounded number of connections. Streams have connections of their own without a bound, so that a
hundred watches never keep a write waiting. When certificates change, a new pool takes over: the old one's streams are
cut, so that they come back with the new certificates, and its short requests finish.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import ssl
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ostinato.client.config import Config
from ostinato.client.config_error import ConfigError
from ostinato.client.credentials import ClientCertificate, CredentialsError
from ostinato.client.http_connection import living_socket
from ostinato.client.http_direct import LARGEST, METHODS, DirectPool, DirectTimes
from ostinato.client.metrics import DNS, TRANSPORTS, ClientMetrics
from ostinato.client.proxies import proxy_for
from ostinato.client.tls import Material, TlsFiles, make_context
from ostinato.client.transport import ConnectionLost, Request, TransportError, UpgradeRefused
from ostinato.world import Clock, World

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 64  # for short requests; more of them wait for each other

_CONNECT: Final = 30.0  # seconds for a connection, TLS included
_SILENCE: Final = 70.0  # seconds without a byte of a short answer; API servers give up a request after 60
_IDLE: Final = 30.0  # seconds for which an unused connection is kept
_LONGEST_REFUSAL: Final = 64 * 1024  # bytes that are read of an answer to a request for a WebSocket
_READ_BUFFER: Final = 256 * 1024
_LARGEST_AT_ONCE: Final = 256 * 1024  # bytes of a body that are handed to the socket in one piece
_NO_MATERIAL: Final = Material(b"", None)

_SHORT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_SILENCE)
_STREAM: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT)


class HttpPool:
    """Must be made on the loop that uses it."""

    def __init__(
        self,
        config: Config,
        context: ssl.SSLContext | None,
        check: Callable[[], None],
        clock: Clock,
        metrics: ClientMetrics | None = None,
    ) -> None:
        """`check` is called at the last moment before each request is sent, and raises if it must not be."""
        traces = [] if metrics is None else [_dns_trace(clock, metrics, URL(config.url).host or "")]
        self._short = _session(_SHORT, MOST_CONNECTIONS, check, traces)
        self._streams = _session(_STREAM, 0, check, traces)
        self._short_open = 0  # short requests that are under way, or whose answers are not closed
        self._unused = asyncio.Event()  # set while there are none
        self._unused.set()
        # Answers that are not closed. aiohttp forgets about who reads one when its connection is closed by us.
        self._answers: dict[aiohttp.ClientResponse, Request] = {}
        self._end: asyncio.Task[None] | None = None  # closes everything when it is unused
        self._options: dict[str, Any] = {  # of every request
            "ssl": context if context is not None else False,
            "server_hostname": config.tls.server_name or None,
        }
        proxy = proxy_for(config, os.environ)
        self._direct: DirectPool | None = None
        if proxy is None:
            times = DirectTimes(_CONNECT, _SILENCE, _IDLE)
            self._direct = DirectPool(config, context, clock, times, MOST_CONNECTIONS, check, metrics)
        self._headers: dict[str, str] = {}
        if proxy is not None:
            password = proxy.authorization
            given = {"Proxy-Authorization": password.reveal()} if password is not None else {}
            self._options |= {"proxy": proxy.url, "proxy_headers": given}
            if context is None:  # nothing is tunnelled: the proxy reads the request itself
                self._headers = given

    def direct(self, request: Request) -> DirectPool | None:
        """What sends a request directly, if that can be done."""
        if request.stream or request.method not in METHODS:
            return None
        return self._direct if isinstance(request.body, bytes) and len(request.body) <= LARGEST else None

    async def send(
        self, request: Request, url: str, headers: CIMultiDict[str], *, silence_ends: bool
    ) -> aiohttp.ClientResponse:
        """Send it. `release` must be called when its answer is closed."""
        session = self._streams if request.stream else self._short
        self._begin(request)
        headers.update(self._headers)
        body: bytes | AsyncIterable[bytes] | io.BytesIO = request.body
        if isinstance(body, bytes) and len(body) > _LARGEST_AT_ONCE:
            body = io.BytesIO(body)  # is sent piece by piece
        try:
            answer = await session.request(
                request.method,
                URL(url, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                timeout=_SHORT if silence_ends else _STREAM,
                **self._options,
            )
        except BaseException:
            self._done(request)
            raise
        self._answers[answer] = request
        return answer

    def release(self, answer: aiohttp.ClientResponse) -> None:
        request = self._answers.pop(answer, None)
        if request is not None:
            self._done(request)

    def _begin(self, request: Request) -> None:
        if not request.stream:
            self._short_open += 1
            self._unused.clear()

    def _done(self, request: Request) -> None:
        if not request.stream:
            self._short_open -= 1
            if not self._short_open:
                self._unused.set()

    async def websocket(
        self, url: str, headers: CIMultiDict[str], protocols: tuple[str, ...]
    ) -> aiohttp.ClientWebSocketResponse:
        headers.update(self._headers)
        opened: aiohttp.ClientWebSocketResponse = await self._streams.ws_connect(
            URL(url, encoded=True), headers=headers, protocols=protocols, **self._options
        )
        return opened

    def retire(self) -> None:
        """Take no more: cut the streams, and close when the short requests are done."""
        if self._direct is not None:
            self._direct.retire()
        self._end = asyncio.get_running_loop().create_task(self._wind_down(), name="retired connections")

    async def close(self) -> None:
        if self._direct is not None:
            self._direct.close()
        for answer in self._answers:
            answer.close()
        self._unused.set()
        if self._end is not None:
            await self._end
        await self._streams.close()
        await self._short.close()

    async def _wind_down(self) -> None:
        for answer, request in self._answers.items():
            if request.stream:
                answer.close()
        await self._streams.close()
        await self._unused.wait()
        await self._short.close()

    def is_closed(self) -> bool:
        return self._short.closed


class HttpPools:
    """The pool to use now, for the certificates of now. The event loop that asks first is its own."""

    def __init__(self, config: Config, world: World, check: Callable[[], None], metrics: ClientMetrics | None) -> None:
        self._config = config
        self._check = check
        self._metrics = metrics
        self._clock = world.clock
        self._tls = TlsFiles(config, world)
        self._secure = config.secure
        self._material = _NO_MATERIAL  # of the pool
        self._pool: HttpPool | None = None
        self._retired: list[HttpPool] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def current(self, certificate: ClientCertificate | None) -> HttpPool:
        """`certificate` is a plugin's; one of the configuration beats it."""
        material = _NO_MATERIAL
        if self._secure:
            material = await self._tls.current()
            if certificate is not None and material.certificate is None:
                material = material._replace(certificate=certificate)
        self._check_usable()
        if self._pool is not None and (material is self._material or material == self._material):
            return self._pool
        try:
            context = make_context(self._config, material) if self._secure else None
        except ConfigError as error:  # of a plugin; what is configured was checked when it was read
            raise CredentialsError(str(error)) from None
        if self._pool is not None:
            log.info("%s: certificates have changed: connections are made anew", self._config.url)
            self._pool.retire()
            self._retired.append(self._pool)
            self._retired = [pool for pool in self._retired if not pool.is_closed()]
        if self._metrics is not None:
            self._metrics.count(TRANSPORTS, {"result": "miss"})
        self._pool = HttpPool(self._config, context, self._check, self._clock, self._metrics)
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
                f"{self._config.url}: a transport belongs to the event loop that used it first: "
                "make another one for this loop"
            )


class _Answer(aiohttp.ClientResponse):
    """Closed before its end, it waits for no farewell as TLS does: the other side may be dead, and the loop may end."""

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


def _session(
    timeout: aiohttp.ClientTimeout, most: int, check: Callable[[], None], traces: Sequence[aiohttp.TraceConfig]
) -> aiohttp.ClientSession:
    class CheckedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            check()  # here there is a connection, and nothing between this and the first byte
            return await super().send(conn)

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=most,
            keepalive_timeout=_IDLE,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=living_socket,
        ),
        timeout=timeout,
        request_class=CheckedRequest,
        response_class=_Answer,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=True,
        skip_auto_headers=("Accept", "Content-Type"),
        middlewares=(_send_once, _keep_refusal),
        trace_configs=list(traces),
        read_bufsize=_READ_BUFFER,
    )


class Broken(Exception):  # noqa: N818 - it carries an error past aiohttp
    """A connection broke. Not aiohttp's own error, after which it would send a PUT or DELETE again by itself."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise Broken(error) from None


async def _keep_refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Read the body of a refused upgrade: aiohttp would drop it."""
    answer = await handler(request)
    if "Sec-WebSocket-Key" in request.headers and answer.status != 101:
        body = await answer.content.read(_LONGEST_REFUSAL)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        answer.close()
        raise UpgradeRefused("", answer.status, headers, body)
    return answer


def _dns_trace(clock: Clock, metrics: ClientMetrics, host: str) -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def start(_session: object, context: Any, _params: object) -> None:
        context.start = clock.monotonic()

    async def end(_session: object, context: Any, _params: object) -> None:
        metrics.observe(DNS, clock.monotonic() - context.start, {"host": host})

    trace.on_dns_resolvehost_start.append(start)
    trace.on_dns_resolvehost_end.append(end)
    return trace
