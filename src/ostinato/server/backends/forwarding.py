"""Forwarding: send a client's request to a backend over HTTP and stream the response.

- Bodies are streamed; only headers are parsed, and `headers` selects those that are forwarded.
- The checked address is dialed (`addresses`); redirects are passed to the client and never followed.
- Redirects and links of HTML pages to the backend's host are rewritten to paths through this server.
- An upgrade becomes a tunnel only if the backend switches to the requested protocol. A refusal is passed on and both
  connections are closed: nothing after it is read or sent (CVE-2018-1002105).
- Certificates of Pods are not verified: clients trust the writers of Pods and Endpoints. A node's certificate is
  verified if the TLS context requires it, and must name the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from ostinato.api.errors import InternalError, ServiceUnavailable, Unknown
from ostinato.api.text.go_format import quote
from ostinato.http.byte_stream import ByteStream, PlainStream
from ostinato.http.encoding import clean, clean_target, request_head
from ostinato.http.errors import InvalidHttp
from ostinato.http.exchange import read_body, read_response
from ostinato.http.hosts import join_host_port
from ostinato.http.response import ResponseParser
from ostinato.http.status import status_line
from ostinato.http.tls_stream import TlsStream
from ostinato.server.backends.headers import IdentityHeaders, is_upgrade, request_headers, response_headers
from ostinato.server.backends.html_links import LinkRewriter
from ostinato.server.request import Answer, Request, Response, Stream, text_response
from ostinato.server.webhooks.target import CallError
from ostinato.server.webhooks.trust import check_host, fault_of
from ostinato.streams.upgrade import Socket, Upgrade
from ostinato.world import Clock

_PATIENCE: Final = 30.0  # seconds to connect
_REFUSAL_PATIENCE: Final = 10.0  # seconds for the body of a refused upgrade
_PIECE: Final = 1 << 16
_HTML: Final = "text/html"
_BODILESS: Final = frozenset({204, 304})
# Extended or set by this server.
_FORWARDED: Final = ("x-forwarded-for", "x-forwarded-uri", "x-forwarded-host", "x-forwarded-proto")
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
_BROKEN: Final = "net/http: HTTP/1.x transport connection broken"


class Backend(msgspec.Struct, frozen=True):
    """The target of a forwarded request.

    - `addresses`: checked addresses, tried in order; `host`: the requested host, for messages.
    - `tls`: None for a plain connection.
    - `node`: the node that the certificate must name. Defaults to no check.
    - `authority`: the `Host` header. Defaults to the client's.
    - `server_name`: requested in the TLS handshake, and verified if the context verifies. Defaults to neither.
    """

    addresses: Sequence[str]
    port: int
    host: str
    tls: ssl.SSLContext | None = None
    node: str = ""
    authority: str = ""
    server_name: str = ""


class Passage(msgspec.Struct, frozen=True):
    """How a request is forwarded.

    - `identity`: headers that are not forwarded. Defaults to those of a server without a front proxy.
    - `fields`: headers that are added. Defaults to none.
    - `query`: replaces the query of the request. Defaults to forwarding it as it is.
    - `redirects`: whether redirects reach the client. Defaults to true.
    """

    identity: IdentityHeaders = IdentityHeaders()
    fields: Sequence[tuple[str, str]] = ()
    query: str | None = None
    redirects: bool = True


async def connect(backend: Backend, clock: Clock, within: float = _PATIENCE) -> ByteStream:
    """Connect to the first reachable address; OSError of the last if none is."""
    failure = OSError("no addresses")
    for address in backend.addresses:
        try:
            async with clock.timeout(within):
                if backend.tls is None:
                    return await PlainStream.to(address, backend.port)
                stream = await TlsStream.to(address, backend.port, backend.tls, backend.server_name)
        except TimeoutError:
            failure = OSError(f"dial tcp {join_host_port(address, backend.port)}: i/o timeout")
            continue
        except ssl.SSLError as error:
            failure = OSError(fault_of(error))
            continue
        except OSError as error:
            failure = OSError(f"dial tcp {join_host_port(address, backend.port)}: {_reason(error)}")
            continue
        try:
            check_node(stream, backend)
            _check_name(stream, backend)
        except OSError:
            stream.close()
            raise
        return stream
    raise failure


def check_node(stream: TlsStream, backend: Backend) -> None:
    """OSError unless the certificate names the node, if certificates are verified.

    The cluster's CA signs many certificates; only the node's name proves that the peer is not an API server or another
    node at a forged address.
    """
    if not backend.node or backend.tls is None or backend.tls.verify_mode == ssl.CERT_NONE:
        return
    subject = {name: value for part in stream.certificate.get("subject", ()) for name, value in part}
    if subject.get("commonName") != f"system:node:{backend.node}":
        found = quote(subject.get("commonName", ""))
        raise ssl.SSLCertVerificationError(f"tls: certificate is for {found}, not for node {quote(backend.node)}")


def _check_name(stream: TlsStream, backend: Backend) -> None:
    """OSError unless the certificate is for the server name, if there is one and certificates are verified."""
    if not backend.server_name or backend.tls is None or backend.tls.verify_mode == ssl.CERT_NONE:
        return
    try:
        check_host(stream.certificate, backend.server_name)
    except CallError as error:
        raise OSError(str(error)) from None


async def forward(
    request: Request,
    backend: Backend,
    path: str,
    clock: Clock,
    passage: Passage = Passage(),  # noqa: B008 - frozen
) -> Answer:
    """Forward a request to a backend's path; ServiceUnavailable if it cannot be reached."""
    body = await request.read()
    upgrade = request.headers["upgrade"] if is_upgrade(request) else ""
    try:
        stream = await connect(backend, clock)
    except OSError as error:
        if upgrade:
            raise Unknown.of(f"error dialing backend: {error}") from None
        raise ServiceUnavailable.of(f"error trying to reach service: {error}") from None
    try:
        fields = _fields(request, backend, passage, upgrade)
        await stream.write(_head(request, path, passage.query, fields, len(body)) + body)
        head = await read_response(stream, bodiless=request.method == "HEAD", accepts_upgrade=True)
        if upgrade:
            return _upgraded(head, stream, upgrade, clock)
        if head.status == 101:
            raise _switched(head, "")
        if not passage.redirects and 300 <= head.status < 400 and "location" in head.headers:
            stream.close()
            return text_response(502, _REDIRECTED)
        return _answer(request, head, stream, backend, path)
    except OSError as error:
        stream.close()
        if upgrade:
            raise Unknown.of(str(error)) from None
        why = f"{_BROKEN}: {error}" if isinstance(error, InvalidHttp) else str(error)
        raise ServiceUnavailable.of(f"error trying to reach service: {why}") from None
    except BaseException:
        stream.close()
        raise


def _answer(request: Request, head: ResponseParser, stream: ByteStream, backend: Backend, path: str) -> Answer:
    kind = head.headers.get("content-type", "")
    headers = response_headers(head)

    def through(url: str) -> str:
        return _through(url, backend, request, path)

    if "location" in head.headers:
        headers = [
            (name, _location(value, through) if name.lower() == "location" else value) for name, value in headers
        ]
    if head.status in _BODILESS or request.method == "HEAD":
        stream.close()
        return Response(head.status, b"", kind, headers)
    if kind.partition(";")[0].strip().lower() == _HTML and "content-encoding" not in head.headers:
        return Stream(head.status, _page(stream, head, through), kind, headers, patient=True)
    return Stream(head.status, _body(stream, head), kind, headers, patient=True, length=head.length)


def _location(location: str, through: Callable[[str], str]) -> str:
    try:
        return through(location)
    except ValueError as error:
        raise InternalError.of(f"error trying to parse Location header: parse {quote(location)}: {error}") from None


def _through(location: str, backend: Backend, request: Request, path: str) -> str:
    """Rewrite a URL on the backend's host to a path through this server; ValueError if it is malformed."""
    scheme, host, target, query, fragment = urlsplit(location)
    requested, before = request.headers.get("host", ""), request.path.removesuffix(path)
    if host not in ("", requested, join_host_port(backend.host, backend.port)) or not target.startswith("/"):
        return location
    if host != requested or not host:
        scheme, host = "", ""
    return urlunsplit((scheme, host, target if target.startswith(before) else before + target, query, fragment))


def _fields(request: Request, backend: Backend, passage: Passage, upgrade: str) -> list[tuple[str, str]]:
    host = backend.authority or request.headers.get("host") or join_host_port(backend.host, backend.port)
    kept = (each for each in request_headers(request, passage.identity) if each[0] not in _FORWARDED)
    fields = [("host", host), *kept, *passage.fields]
    if addresses := [*_values(request, "x-forwarded-for"), *([request.remote] if request.remote else [])]:
        fields.append(("x-forwarded-for", ", ".join(addresses)))
    fields.append(("connection", "Upgrade" if upgrade else "close"))
    fields.append(("upgrade", upgrade) if upgrade else ("x-forwarded-uri", request.path))
    if backend.authority and not upgrade:
        fields += [("x-forwarded-host", backend.authority), ("x-forwarded-proto", "https")]
    return fields


def _values(request: Request, name: str) -> Sequence[str]:
    return request.repeated.get(name) or [value for value in (request.headers.get(name),) if value]


def _head(request: Request, path: str, query: str | None, fields: list[tuple[str, str]], size: int) -> bytes:
    query = request.query_string if query is None else query
    target = clean_target(f"{path}?{query}" if query else path)
    if size or request.method in ("POST", "PUT", "PATCH"):
        fields = [*fields, ("content-length", str(size))]
    return request_head(request.method, target, [(name, clean(value)) for name, value in fields])


async def _body(stream: ByteStream, head: ResponseParser) -> AsyncIterator[bytes]:
    try:
        async for chunk in read_body(stream, head):
            yield chunk
    finally:
        stream.close()


async def _page(stream: ByteStream, head: ResponseParser, through: Callable[[str], str]) -> AsyncIterator[bytes]:
    """Yield an HTML page with its links rewritten; malformed ones stay as they are."""

    def rewritten(url: str) -> str:
        try:
            return through(url)
        except ValueError:
            return url

    rewriter = LinkRewriter(rewritten)
    async for chunk in _body(stream, head):
        if passed := rewriter.feed(chunk):
            yield passed
    if rest := rewriter.close():
        yield rest


# Upgrades


def _upgraded(head: ResponseParser, stream: ByteStream, wanted: str, clock: Clock) -> Answer:
    if head.status == 101:
        if head.headers.get("upgrade", "").lower() != wanted.lower() or "upgrade" not in head.elements("connection"):
            raise _switched(head, wanted)
        return Upgrade(lambda socket: relay(socket, stream), wanted, head=_lines(head, head.fields))
    if head.status < 400:
        raise Unknown.of(f"invalid upgrade response: status code {head.status}")
    fields = [*response_headers(head), ("Connection", "close")]
    fields += [("Content-Type", value) for value in head.values("content-type")]
    fields += [("Content-Length", str(head.length))] if head.length is not None else []
    lines = _lines(head, fields)
    return Upgrade(lambda socket: _refuse(socket, stream, head, clock), wanted, head=lines, status=head.status)


def _switched(head: ResponseParser, wanted: str) -> Unknown:
    found = head.headers.get("upgrade", "")
    return Unknown.of(f"backend tried to switch protocol {quote(found)} when {quote(wanted)} was requested")


def _lines(head: ResponseParser, fields: Sequence[tuple[str, str]]) -> bytes:
    lines = [status_line(head.status), *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


async def _refuse(socket: Socket, stream: ByteStream, head: ResponseParser, clock: Clock) -> None:
    """The body of the refusal and nothing else; what the client sends is not read."""
    try:
        with contextlib.suppress(OSError, TimeoutError):
            async with clock.timeout(_REFUSAL_PATIENCE):
                async for chunk in read_body(stream, head):
                    await socket.send(chunk)
    finally:
        stream.close()


async def relay(socket: Socket, stream: ByteStream) -> None:
    """Copy bytes in both directions until one side closes, then close the other."""

    async def to_backend() -> None:
        while (data := await socket.receive()) is not None:
            await stream.write(data)

    async def to_client() -> None:
        while data := await stream.read(_PIECE):
            await socket.send(data)

    tasks = [asyncio.ensure_future(to_backend()), asyncio.ensure_future(to_client())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        stream.close()


def _reason(error: OSError) -> str:
    return "connect: connection refused" if isinstance(error, ConnectionRefusedError) else str(error.strerror or error)
