"""Forwarding: a request goes on to a Pod over HTTP, and the answer comes back as it comes.

Nothing is kept and nothing is read but the heads. Who the client is stays here: its credentials do not go on. A Pod's
certificate is not verified: who reads through the server trusts whoever may write Pods and Endpoints.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from ostinato.api.errors import ServiceUnavailable
from ostinato.server.http.head import clean
from ostinato.server.remote_answer import ByteStream, Head, body_of, read_head
from ostinato.server.request import Answer, Request, Response, Stream
from ostinato.server.tls_stream import TlsStream
from ostinato.world import Clock

_PATIENCE: Final = 30.0  # seconds to connect
_LONGEST_LINE: Final = 1 << 16
_BODILESS: Final = frozenset({204, 304})
# What is about one connection, or about the client and this server.
_NOT_FORWARDED: Final = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Place(NamedTuple):
    host: str
    port: int
    secure: bool = False


class PlainStream:
    """A connection without TLS, with the methods of one with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, host: str, port: int) -> PlainStream:
        return cls(*await asyncio.open_connection(host, port, limit=_LONGEST_LINE))

    async def read(self, size: int) -> bytes:
        return await self._reader.read(size)

    async def read_exactly(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise ConnectionError("the connection ended too early") from None

    async def read_until(self, mark: bytes) -> bytes:
        try:
            return await self._reader.readuntil(mark)
        except asyncio.IncompleteReadError:
            raise ConnectionError("the connection ended too early") from None
        except asyncio.LimitOverrunError:
            raise ConnectionError("a line has no end") from None

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


async def forward(request: Request, place: Place, path: str, clock: Clock) -> Answer:
    """Ask the one at a place for a path, the end of the request's own; ServiceUnavailable if nobody answers there."""
    body = await request.read()
    try:
        stream = await _connect(place, clock)
    except OSError as error:
        raise ServiceUnavailable.of(f"error trying to reach service: {_why(place, error)}") from None
    try:
        await stream.write(_head(request, place, path, len(body)) + body)
        head = await read_head(stream)
    except OSError as error:
        stream.close()
        raise ServiceUnavailable.of(f"error trying to reach service: {error}") from None
    except BaseException:
        stream.close()
        raise
    kind = head.headers.get("content-type", "")
    headers = [(name, value) for name, value in head.headers.items() if name not in {*_NOT_FORWARDED, "content-type"}]
    if "location" in head.headers:
        before = request.path.removesuffix(path)
        headers = [(name, _through(value, place, before) if name == "location" else value) for name, value in headers]
    if head.status in _BODILESS or request.method == "HEAD":
        stream.close()
        return Response(head.status, b"", kind, headers)
    return Stream(head.status, _body(stream, head), kind, headers, patient=True)


async def _connect(place: Place, clock: Clock) -> ByteStream:
    try:
        async with clock.timeout(_PATIENCE):
            if not place.secure:
                return await PlainStream.to(place.host, place.port)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return await TlsStream.to(place.host, place.port, context)
    except TimeoutError:
        raise OSError("i/o timeout") from None


def _why(place: Place, error: OSError) -> str:
    reason = "connect: connection refused" if isinstance(error, ConnectionRefusedError) else error.strerror or error
    return f"dial tcp {place.host}:{place.port}: {reason}"


def _through(location: str, place: Place, before: str) -> str:
    """Where a redirection leads, for the client: on the same host, through this server again."""
    _, host, path, query, fragment = urlsplit(location)
    if host not in ("", f"{place.host}:{place.port}") or not path.startswith("/"):
        return location
    return urlunsplit(("", "", before + path, query, fragment))


def _head(request: Request, place: Place, path: str, size: int) -> bytes:
    target = clean(f"{path}?{request.query_string}" if request.query_string else path).replace(" ", "%20")
    fields = [(name, value) for name, value in request.headers.items() if name not in _NOT_FORWARDED]
    fields += [("host", f"{place.host}:{place.port}"), ("connection", "close"), ("x-forwarded-uri", request.path)]
    if size or request.method in ("POST", "PUT", "PATCH"):
        fields.append(("content-length", str(size)))
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {clean(value)}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


async def _body(stream: ByteStream, head: Head) -> AsyncIterator[bytes]:
    try:
        async for chunk in body_of(stream, head):
            yield chunk
    finally:
        stream.close()
