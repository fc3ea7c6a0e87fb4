"""WebSockets of the transport protocol, with aiohttp, which is imported on first use: it takes 100 ms."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ostinato.client.config.config import Config
from ostinato.client.config.proxies import Proxy
from ostinato.client.http.connection import keepalive_socket
from ostinato.client.http.errors import failure, reason_of, unreachable, untrusted, without_tls
from ostinato.client.transport.metrics import DNS, ClientMetrics
from ostinato.client.transport.protocol import ConnectionLost, RequestTimedOut, TransportError, UpgradeRefused
from ostinato.world import Clock

_ABNORMAL: Final = 1006  # connection lost without a close frame
_CONNECT: Final = 30.0  # seconds for a connection, TLS included
_MAX_REJECTION: Final = 64 * 1024  # bytes read of the response to a rejected upgrade


class WebSockets:
    """WebSockets to one server, for one set of certificates. Must be created on the loop that uses them."""

    def __init__(
        self,
        config: Config,
        context: ssl.SSLContext | None,
        proxy: Proxy | None,
        check: Callable[[], None] | None,
        measured: tuple[Clock, ClientMetrics] | None,
    ) -> None:
        """`check`: called immediately before a request is sent; raises to prevent it."""
        self._base = config.url
        self._session = _session(check, [] if measured is None else [_dns_trace(config, *measured)])
        self._end: asyncio.Task[None] | None = None
        self._options: dict[str, Any] = {  # of every request
            "ssl": context if context is not None else False,
            "server_hostname": config.tls.server_name or None,
        }
        if proxy is not None:
            password = proxy.authorization
            given = {"Proxy-Authorization": password.reveal()} if password is not None else {}
            self._options |= {"proxy": proxy.url, "proxy_headers": given}

    async def open(
        self, target: str, headers: Sequence[tuple[str, str]], protocols: Sequence[str], what: str
    ) -> HttpWebSocket:
        """Open a WebSocket. Raises `UpgradeRefused` if the server rejects the upgrade. `what`: for messages."""
        url = URL(self._base + target, encoded=True)
        try:
            socket = await self._session.ws_connect(
                url, headers=CIMultiDict(headers), protocols=protocols, **self._options
            )
            return HttpWebSocket(socket, what)
        except _Refused as refused:
            response = refused.response
            message = f"{what}: WebSocket upgrade rejected with status {response.status}"
            found = {name.lower(): value for name, value in response.headers.items()}
            raise UpgradeRefused(message, response.status, found, refused.body) from None
        except (aiohttp.ClientError, OSError) as error:
            failed = error
        # Raised outside of the except block: aiohttp's exception holds the headers, and must not be the context.
        raise _failure(failed, what)

    def retire(self) -> None:
        """Close the open WebSockets."""
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._session.close(), name="retired WebSockets")

    async def close(self) -> None:
        self.retire()
        if self._end is not None:
            await self._end

    def is_closed(self) -> bool:
        return self._end is not None and self._end.done()


class HttpWebSocket:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, what: str) -> None:
        self._socket = socket
        self._what = what
        self.protocol = socket.protocol or ""

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"{self._what}: the WebSocket is closed: {type(error).__name__}") from None

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        match message.type:
            case aiohttp.WSMsgType.BINARY:
                data: bytes = message.data
                return data
            case aiohttp.WSMsgType.TEXT:
                text: str = message.data
                return text.encode()
            case aiohttp.WSMsgType.ERROR:
                raise ConnectionLost(f"{self._what}: the WebSocket failed: {type(message.data).__name__}")
        if self._socket.close_code == _ABNORMAL:
            raise ConnectionLost(f"{self._what}: the connection of the WebSocket was lost")
        return None

    async def close(self) -> None:
        await self._socket.close()


class _Response(aiohttp.ClientResponse):
    """Closes without a TLS shutdown: the peer may be gone, and the event loop may be about to end."""

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class _Refused(Exception):  # noqa: N818
    """Carries the body of a rejected upgrade, which aiohttp would drop."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        super().__init__()
        self.response = response
        self.body = body


def _session(check: Callable[[], None] | None, traces: list[aiohttp.TraceConfig]) -> aiohttp.ClientSession:
    class CheckedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            if check is not None:
                check()  # the connection is open: the next step sends the request
            return await super().send(conn)

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, resolver=aiohttp.ThreadedResolver(), socket_factory=keepalive_socket),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
        request_class=CheckedRequest,
        response_class=_Response,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("Accept", "Content-Type"),
        middlewares=(_keep_refusal,),
        trace_configs=traces,
    )


async def _keep_refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    response = await handler(request)
    if response.status != 101:
        body = await response.content.read(_MAX_REJECTION)
        response.close()
        raise _Refused(response, body)
    return response


def _failure(error: aiohttp.ClientError | OSError, what: str) -> TransportError:
    """Return the `TransportError` for an error of aiohttp."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(error.certificate_error, what)
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ssl.SSLError):
            return without_tls(error.os_error, what)
        case aiohttp.ClientHttpProxyError():
            return ConnectionLost(
                f"{what}: the proxy responded with status {error.status}; check proxy-url and its password"
            )
        case aiohttp.ClientProxyConnectionError():
            return ConnectionLost(f"{what}: the proxy cannot be reached: {reason_of(error.os_error)}; check proxy-url")
        case aiohttp.ClientConnectorError():
            return unreachable(error.os_error, what)
        case aiohttp.ServerDisconnectedError():
            return ConnectionLost(f"{what}: the server closed the connection")
        case aiohttp.ClientResponseError():
            return ConnectionLost(f"{what}: the response is not valid HTTP")
        case aiohttp.ConnectionTimeoutError():
            return RequestTimedOut(f"{what}: timed out while connecting")
    return failure(error, what)


def _dns_trace(config: Config, clock: Clock, metrics: ClientMetrics) -> aiohttp.TraceConfig:
    host = URL(config.url).host or ""
    trace = aiohttp.TraceConfig()

    async def start(_session: object, context: Any, _params: object) -> None:
        context.start = clock.monotonic()

    async def end(_session: object, context: Any, _params: object) -> None:
        metrics.observe(DNS, clock.monotonic() - context.start, {"host": host})

    trace.on_dns_resolvehost_start.append(start)
    trace.on_dns_resolvehost_end.append(end)
    return trace
