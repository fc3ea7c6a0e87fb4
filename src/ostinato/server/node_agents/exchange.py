"""Requests to node agents over HTTP/1.1, on a connection that the caller opens.

Kubelets use SPDY for bidirectional streams. SPDY clients are passed through; WebSocket channels are translated here.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from ostinato.api.errors import Unknown
from ostinato.api.text.go_format import quote
from ostinato.http.byte_stream import ByteStream
from ostinato.http.encoding import clean, clean_target, request_head
from ostinato.http.exchange import read_body, read_response
from ostinato.http.hosts import bracketed
from ostinato.http.response import ResponseParser
from ostinato.server.backends.forwarding import relay
from ostinato.server.request import Answer, Request, Response, Stream
from ostinato.server.request.options import boolean
from ostinato.streams import channels, ports
from ostinato.streams.ports import SpdyLink
from ostinato.streams.session import Command, Session
from ostinato.streams.spdy import SpdyConnection
from ostinato.streams.spdy_command import PROTOCOLS, SPDY, SpdySession
from ostinato.streams.upgrade import Socket, Upgrade

_MOST_BODY: Final = 1 << 24  # bytes of a response other than a log
_PIECE: Final = 1 << 15
_VERSIONS: Final = "x-stream-protocol-version"


class AgentSocket:
    """A `Socket` connected to an agent. `host`: sent in the `Host` header."""

    def __init__(self, host: str, stream: ByteStream) -> None:
        self.host = bracketed(host)
        self.stream = stream

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            await self.stream.write(data)

    async def receive(self) -> bytes | None:
        try:
            return await self.stream.read(_PIECE) or None
        except OSError:
            return None

    def close(self) -> None:
        self.stream.close()


Dial = Callable[[], Awaitable[AgentSocket]]
"""Opens a connection to an agent. Raises OSError."""


async def send(dial: Dial, request: Request) -> Answer:
    """Send a request of this server to an agent. Raises OSError if it cannot be reached.

    Logs are a plain response of the agent, also if the client of this server reads them over a WebSocket.
    """
    is_log = request.path.startswith("/containerLogs/")
    if request.headers.get("upgrade") and not is_log:
        return await _upgrade(dial, request)
    connection = await dial()
    try:
        head = await _send(connection, request, [])
        if 100 <= head.status < 200 or 300 <= head.status < 400:  # redirects of a node are not followed
            url = f"https://{connection.host}{request.path}"
            raise Unknown.of(f"{request.method.title()} {quote(url)}: redirects forbidden")
        if is_log and head.status == 200:
            chunks = _log(connection, head)
            return Stream(200, chunks, head.headers.get("content-type", "text/plain"), patient=True)
        body = await _whole(connection, head)
    except BaseException:
        connection.close()
        raise
    connection.close()
    return Response(head.status, body, head.headers.get("content-type", ""))


async def _upgrade(dial: Dial, request: Request) -> Answer:
    is_websocket = request.headers["upgrade"].lower() == channels.WEBSOCKET
    forwards = request.path.startswith("/portForward/")
    if is_websocket:
        known = (ports.TUNNEL, *ports.CHANNELS) if forwards else channels.PROTOCOLS
        chosen = channels.choose(channels.offered(request.headers), known)
        if chosen is None:
            return Response(400, b"requested protocol(s) are not supported", "text/plain")
        versions: Sequence[str] = (ports.PROTOCOL,) if forwards else PROTOCOLS[:1]
    else:
        chosen, versions = "", request.repeated.get(_VERSIONS, [request.headers.get(_VERSIONS, "")])
    connection = await dial()
    try:
        wanted = [("Upgrade", SPDY), *(("X-Stream-Protocol-Version", version) for version in versions)]
        head = await _send(connection, request, wanted)
        if head.status < 400 and not _switches(head):
            raise Unknown.of(f"invalid upgrade response: status code {head.status}")
        if head.status != 101:
            body = await _whole(connection, head)
            connection.close()
            return Response(head.status, body, head.headers.get("content-type", "text/plain"))
    except BaseException:
        connection.close()
        raise
    if not is_websocket:
        answer = Upgrade(lambda socket: relay(socket, connection.stream), SPDY, head.headers.get(_VERSIONS, ""))
    elif chosen == ports.TUNNEL:
        answer = Upgrade(lambda socket: relay(socket, connection.stream), channels.WEBSOCKET, chosen)
    elif forwards:
        try:
            answer = _forward(request, connection, chosen)
        except ValueError as error:
            connection.close()
            return Response(400, str(error).encode(), "text/plain")
    else:
        answer = channels.command_upgrade(_command(request, connection), chosen)
    return _closing(answer, connection)


async def _send(connection: AgentSocket, request: Request, more: Sequence[tuple[str, str]]) -> ResponseParser:
    target = f"{request.path}?{request.query_string}" if request.query_string else request.path
    method = "POST" if more else request.method
    fields = [
        ("Host", connection.host),
        ("Connection", "Upgrade" if more else "close"),
        ("Content-Length", "0"),
        *more,
    ]
    await connection.send(request_head(method, clean_target(target), [(name, clean(value)) for name, value in fields]))
    return await read_response(connection.stream, accepts_upgrade=True)


async def _whole(connection: AgentSocket, head: ResponseParser) -> bytes:
    body = bytearray()
    async for chunk in read_body(connection.stream, head):
        body += chunk
        if len(body) > _MOST_BODY:
            raise OSError(f"{connection.host}: response has more than {_MOST_BODY} bytes")
    return bytes(body)


def _switches(head: ResponseParser) -> bool:
    return head.status == 101 and head.headers.get("upgrade", "").lower() == SPDY.lower()


async def _log(connection: AgentSocket, head: ResponseParser) -> AsyncIterator[bytes]:
    try:
        async for chunk in read_body(connection.stream, head):
            yield chunk
    finally:
        connection.close()


def _closing(answer: Upgrade, connection: AgentSocket) -> Upgrade:
    """Close the connection to the agent when the upgrade ends."""

    async def serve(socket: Socket) -> None:
        try:
            await answer.serve(socket)
        finally:
            connection.close()

    return Upgrade(serve, answer.protocol, answer.subprotocol, text=answer.text)


def _command(request: Request, connection: AgentSocket) -> Command:
    def flag(name: str) -> bool:
        return name in request.query and boolean(request.parameter(name))

    async def begin() -> Session:
        return await SpdySession.begin(connection, command)

    doing = "executing command in" if request.path.startswith("/exec/") else "attaching to"
    command = Command(
        open=begin, what=doing, stdin=flag("input"), stdout=flag("output"), stderr=flag("error"), tty=flag("tty")
    )
    return command


def _forward(request: Request, connection: AgentSocket, protocol: str) -> Upgrade:
    """Port forwarding over WebSocket channels; ValueError if the request names no ports."""
    wanted = ports.parse_ports(request.query.get("port", []))

    async def serve(socket: Socket) -> None:
        async with SpdyConnection(connection, server=False) as spdy:
            numbers = itertools.count()

            async def dial(port: int) -> ports.Link:
                about = {"port": str(port), "requestid": str(next(numbers))}
                error = await spdy.open({"streamtype": "error"} | about)
                await error.close()
                return SpdyLink(await spdy.open({"streamtype": "data"} | about), error)

            await ports.channels_upgrade(wanted, dial, request.path, protocol).serve(socket)

    return Upgrade(serve, channels.WEBSOCKET, protocol, text=channels.is_text(protocol))
