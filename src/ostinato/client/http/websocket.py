"""WebSockets over HTTP, as the transport protocol has them, by aiohttp. It takes long to load: few need it."""

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

_ABNORMAL: Final = 1006  # the code of a connection that ended without a good-bye
_CONNECT: Final = 30.0  # seconds for a connection, TLS included
_MAX_REJECTION: Final = 64 * 1024  # bytes that are read of an answer to a request for a WebSocket


class WebSockets:
    """Those to one server, for one set of certificates. Must be made on the loop that uses them."""

    def __init__(
        self,
        config: Config,
        context: ssl.SSLContext | None,
        proxy: Proxy | None,
        check: Callable[[], None] | None,
        measured: tuple[Clock, ClientMetrics] | None,
    ) -> None:
        """`check` is called at the last moment before each request is sent, and raises if it must not be."""
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
        """`what` it is, in words, for messages. `UpgradeRefused` if the server answers instead."""
        url = URL(self._base + target, encoded=True)
        try:
            socket = await self._session.ws_connect(
                url, headers=CIMultiDict(headers), protocols=protocols, **self._options
            )
            return HttpWebSocket(socket, what)
        except _Refused as refused:
            answer = refused.answer
            message = f"{what}: the server answered {answer.status} instead of opening a WebSocket"
            found = {name.lower(): value for name, value in answer.headers.items()}
            raise UpgradeRefused(message, answer.status, found, refused.body) from None
        except (aiohttp.ClientError, OSError) as error:
            failed = error
        # Raised here and not above, so that it does not drag aiohttp's error along, whose request has the headers.
        raise _failure(failed, what)

    def retire(self) -> None:
        """Cut those that are open."""
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
                raise ConnectionLost(f"{self._what}: the WebSocket broke: {type(message.data).__name__}")
        if self._socket.close_code == _ABNORMAL:
            raise ConnectionLost(f"{self._what}: the connection of the WebSocket broke")
        return None

    async def close(self) -> None:
        await self._socket.close()


class _Answer(aiohttp.ClientResponse):
    """Closed before its end, it waits for no farewell as TLS does: the other side may be dead, and the loop may end."""

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class _Refused(Exception):  # noqa: N818 - what happened
    """The body of a refused upgrade: aiohttp would drop it."""

    def __init__(self, answer: aiohttp.ClientResponse, body: bytes) -> None:
        super().__init__()
        self.answer = answer
        self.body = body


def _session(check: Callable[[], None] | None, traces: list[aiohttp.TraceConfig]) -> aiohttp.ClientSession:
    class CheckedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            if check is not None:
                check()  # here there is a connection, and nothing between this and the first byte
            return await super().send(conn)

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, resolver=aiohttp.ThreadedResolver(), socket_factory=keepalive_socket),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
        request_class=CheckedRequest,
        response_class=_Answer,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("Accept", "Content-Type"),
        middlewares=(_keep_refusal,),
        trace_configs=traces,
    )


async def _keep_refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    answer = await handler(request)
    if answer.status != 101:
        body = await answer.content.read(_MAX_REJECTION)
        answer.close()
        raise _Refused(answer, body)
    return answer


def _failure(error: aiohttp.ClientError | OSError, what: str) -> TransportError:
    """Our error for one of aiohttp's."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(error.certificate_error, what)
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ssl.SSLError):
            return without_tls(error.os_error, what)
        case aiohttp.ClientHttpProxyError():
            return ConnectionLost(f"{what}: the proxy refused with {error.status}: check proxy-url and its password")
        case aiohttp.ClientProxyConnectionError():
            return ConnectionLost(f"{what}: the proxy cannot be reached: {reason_of(error.os_error)}: check proxy-url")
        case aiohttp.ClientConnectorError():
            return unreachable(error.os_error, what)
        case aiohttp.ServerDisconnectedError():
            return ConnectionLost(f"{what}: the server closed the connection")
        case aiohttp.ClientResponseError():
            return ConnectionLost(f"{what}: the answer is not HTTP")
        case aiohttp.ConnectionTimeoutError():
            return RequestTimedOut(f"{what}: no connection in time")
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
