"""Remote node agents: called over HTTPS, as kube-apiserver calls kubelets.

- Kubelets use SPDY for bidirectional streams. SPDY clients are passed through; WebSocket channels are translated here.
- The address comes from the Node's status, so its writer chooses where this server connects: addresses are resolved and
  checked before they are dialed (`backends.addresses`).
- With certificate verification the certificate must be the node's, `system:node:NAME`; self-signed kubelet certificates
  cannot be verified. The kubelet verifies this server's client certificate.
"""

from __future__ import annotations

import contextlib
import itertools
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

from ostinato.api.errors import Unknown
from ostinato.api.text.go_format import quote
from ostinato.http.encoding import clean, clean_target, request_head
from ostinato.http.exchange import read_body, read_response
from ostinato.http.hosts import bracketed
from ostinato.http.response import ResponseParser
from ostinato.http.tls_stream import TlsStream
from ostinato.server.backends.addresses import AddressError, AddressGuard
from ostinato.server.backends.forwarding import Backend, connect, relay
from ostinato.server.request import Answer, Request, Response, Stream
from ostinato.server.request.options import boolean
from ostinato.server.resources.strategy import Json
from ostinato.streams import channels, ports
from ostinato.streams.ports import SpdyLink
from ostinato.streams.session import Command, Session
from ostinato.streams.spdy import SpdyConnection
from ostinato.streams.spdy_command import PROTOCOLS, SPDY, SpdySession
from ostinato.streams.upgrade import Socket, Upgrade
from ostinato.world import Clock

_PATIENCE: Final = 10.0  # seconds to connect
_MOST_BODY: Final = 1 << 24  # bytes of a response other than a log
AGENT_ADDRESSES: Final = (
    "InternalIP",
    "InternalDNS",
    "Hostname",
    "ExternalIP",
    "ExternalDNS",
)  # in order of preference
_PIECE: Final = 1 << 15
_VERSIONS: Final = "x-stream-protocol-version"


class AgentAddresses(NamedTuple):
    """Hosts and ports of a node's agent, in order of preference."""

    node: str
    hosts: Sequence[tuple[str, int]]


class RemoteNodeAgents:
    """Implements `endpoint.Remote`."""

    def __init__(self, clock: Clock, context: Callable[[], ssl.SSLContext], guard: AddressGuard) -> None:
        """`context`: creates the TLS context; called with the first connection."""
        self._clock = clock
        self._make = context
        self._guard = guard
        self._context: ssl.SSLContext | None = None

    def tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = self._make()
        return self._context

    async def send(self, node: Json, request: Request) -> Answer:
        where = AgentAddresses(node["metadata"]["name"], addresses_of(node))
        if request.headers.get("upgrade"):
            return await self._upgrade(where, request)
        connection = await self._connect(where)
        try:
            head = await self._send(connection, request, [])
            if 100 <= head.status < 200 or 300 <= head.status < 400:  # redirects of a node are not followed
                url = f"https://{connection.host}{request.path}"
                raise Unknown.of(f"{request.method.title()} {quote(url)}: redirects forbidden")
            if request.path.startswith("/containerLogs/") and head.status == 200:
                chunks = _log(connection, head)
                return Stream(200, chunks, head.headers.get("content-type", "text/plain"), patient=True)
            body = await _whole(connection, head)
        except BaseException:
            connection.close()
            raise
        connection.close()
        return Response(head.status, body, head.headers.get("content-type", ""))

    # Upgrades

    async def _upgrade(self, where: AgentAddresses, request: Request) -> Answer:
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
        connection = await self._connect(where)
        try:
            wanted = [("Upgrade", SPDY), *(("X-Stream-Protocol-Version", version) for version in versions)]
            head = await self._send(connection, request, wanted)
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

    # Connections

    async def _connect(self, where: AgentAddresses) -> RemoteSocket:
        """Connect to the first address that answers; raise OSError with the reason of each if none does."""
        failures: list[str] = []
        for host, port in where.hosts:
            try:
                addresses = await self._guard.resolve(host, port, local=True)
                return await self._connect_to(Backend(addresses, port, host, self.tls(), where.node))
            except AddressError as error:
                failures.append(f"{host}:{port}: {error}")
            except OSError as error:
                failures.append(str(error))
        raise OSError("; ".join(failures) or "the node has no address")

    async def _connect_to(self, backend: Backend) -> RemoteSocket:
        stream = await connect(backend, self._clock, _PATIENCE)
        assert isinstance(stream, TlsStream)
        return RemoteSocket(backend.host, stream)

    async def _send(
        self, connection: RemoteSocket, request: Request, more: Sequence[tuple[str, str]]
    ) -> ResponseParser:
        target = f"{request.path}?{request.query_string}" if request.query_string else request.path
        method = "POST" if more else request.method
        fields = [
            ("Host", connection.host),
            ("Connection", "Upgrade" if more else "close"),
            ("Content-Length", "0"),
            *more,
        ]
        await connection.send(
            request_head(method, clean_target(target), [(name, clean(value)) for name, value in fields])
        )
        return await read_response(connection.stream, accepts_upgrade=True)


class RemoteSocket:
    """A `Socket` connected to an agent."""

    def __init__(self, host: str, stream: TlsStream) -> None:
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


def addresses_of(node: Json) -> Sequence[tuple[str, int]]:
    """The hosts and ports in a Node's status; OSError if there are none."""
    status = node.get("status") or {}
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    addresses = {each.get("type"): each.get("address", "") for each in status.get("addresses") or ()}
    hosts = dict.fromkeys(addresses[kind] for kind in AGENT_ADDRESSES if addresses.get(kind))
    port = endpoint.get("Port", 0)
    if not hosts or not port:
        raise OSError("node status has no address or kubelet port")
    return [(host, port) for host in hosts]


async def _whole(connection: RemoteSocket, head: ResponseParser) -> bytes:
    body = bytearray()
    async for chunk in read_body(connection.stream, head):
        body += chunk
        if len(body) > _MOST_BODY:
            raise OSError(f"{connection.host}: response has more than {_MOST_BODY} bytes")
    return bytes(body)


def _switches(head: ResponseParser) -> bool:
    return head.status == 101 and head.headers.get("upgrade", "").lower() == SPDY.lower()


async def _log(connection: RemoteSocket, head: ResponseParser) -> AsyncIterator[bytes]:
    try:
        async for chunk in read_body(connection.stream, head):
            yield chunk
    finally:
        connection.close()


def _closing(answer: Upgrade, connection: RemoteSocket) -> Upgrade:
    """Close the connection to the agent when the upgrade ends."""

    async def serve(socket: Socket) -> None:
        try:
            await answer.serve(socket)
        finally:
            connection.close()

    return Upgrade(serve, answer.protocol, answer.subprotocol, text=answer.text)


def _command(request: Request, connection: RemoteSocket) -> Command:
    def flag(name: str) -> bool:
        return name in request.query and boolean(request.parameter(name))

    async def begin() -> Session:
        return await SpdySession.begin(connection, command)

    doing = "executing command in" if request.path.startswith("/exec/") else "attaching to"
    command = Command(
        open=begin, what=doing, stdin=flag("input"), stdout=flag("output"), stderr=flag("error"), tty=flag("tty")
    )
    return command


def _forward(request: Request, connection: RemoteSocket, protocol: str) -> Upgrade:
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
