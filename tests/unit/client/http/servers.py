"""API servers for tests: real ones on this machine, over HTTPS, HTTP, or a socket that misbehaves."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from tests.unit.client.http import certificates
from tests.unit.client.http.certificates import Pair

from ostinato.client.config.config import Config, Tls
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import Request
from ostinato.world import World

T = TypeVar("T")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Served:
    """What came in: each request, and from which connections."""

    def __init__(self, handler: Handler) -> None:
        self.url = ""
        self.port = 0
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.connections: set[object] = set()
        self._handler = handler

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername"))
        self.bodies.append(await request.content.read())
        return await self._handler(request)

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the last request."""
        return self.requests[-1].headers

    def config(self, **changes: Any) -> Config:
        """For a client that trusts this server."""
        tls = {"ca_data": certificates.authority().pem, **changes.pop("tls", {})}
        return Config(**{"server": self.url, "tls": Tls(**tls), "environment_proxies": False, **changes})


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it, but not for ever."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await main

    return asyncio.run(bounded())


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def serving(
    handler: Handler = hello, *, pair: Pair | None = None, client_authority: bytes = b"", plain: bool = False
) -> AsyncIterator[Served]:
    """A server on 127.0.0.1. With a `client_authority` it asks for certificates, and takes those without one too."""
    served = Served(handler)
    runner = web.ServerRunner(web.Server(served), shutdown_timeout=0.1)
    await runner.setup()
    context = None if plain else server_context(pair or certificates.server(), client_authority)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    served.port = runner.addresses[0][1]
    served.url = f"{'http' if plain else 'https'}://127.0.0.1:{served.port}"
    try:
        yield served
    finally:
        await runner.cleanup()


def server_context(pair: Pair, client_authority: bytes = b"") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.pem + pair.key_pem)
        file.flush()
        context.load_cert_chain(file.name)
    if client_authority:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_authority.decode())
    return context


def peer_name(request: web.Request) -> str:
    """The common name of the client's certificate, "" without one."""
    assert request.transport is not None
    shown = request.transport.get_extra_info("peercert")
    return dict(part[0] for part in shown["subject"])["commonName"] if shown else ""


@asynccontextmanager
async def transport(config: Config, world: World | None = None, **options: Any) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(config, world or World.real(), **options)
    try:
        yield made
    finally:
        await made.close()


async def get(sender: HttpTransport, path: str = "/", **options: Any) -> bytes:
    response = await sender.request(Request("GET", path, **options))
    assert response.status == 200, response.status
    return await response.read()


Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Socket:
    """A server that does with each connection what it likes. `requests` are the heads that came, in order."""

    def __init__(self, converse: Conversation) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0
        self._converse = converse

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def head(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head)
        return head

    def config(self, **changes: Any) -> Config:
        return Config(**{"server": f"http://127.0.0.1:{self.port}", "environment_proxies": False, **changes})


@asynccontextmanager
async def listening(
    converse: Callable[[Socket, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Socket]:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await converse(socket, reader, writer)

    socket = Socket(conversation)
    server = await asyncio.start_server(socket, "127.0.0.1", 0)
    socket.port = server.sockets[0].getsockname()[1]
    try:
        yield socket
    finally:
        server.close()


def written(directory: Path, name: str, data: bytes) -> Path:
    path = directory / name
    path.write_bytes(data)
    return path
