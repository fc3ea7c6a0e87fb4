"""Webhook client: post a review over HTTPS and return the response.

- HTTPS only, with verification of the certificate and the host name.
- Idle connections are reused for a while; one that the peer closed is replaced.
- Responses are limited in time and size. Retry-After is honoured within the timeout.
- Every failure is a CallError with kube-apiserver's message. Reviews and responses are not logged.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Final, NamedTuple

from ostinato.api.errors import from_response
from ostinato.api.text.go_format import quote
from ostinato.http.encoding import request_head
from ostinato.http.exchange import read_body, read_response
from ostinato.http.hosts import join_host_port
from ostinato.http.response import ResponseParser
from ostinato.http.tls_stream import TlsStream
from ostinato.server.webhooks.target import CallError, HttpStatusError, Identify, Json, Locate, Target, target_of
from ostinato.server.webhooks.trust import Contexts, check_host, expired, fault_of, has_expired, unverifying
from ostinato.world import Clock

_MOST_BODY: Final = 16 << 20  # bytes of a response body
_MOST_IDLE: Final = 8  # idle connections per target
_IDLE: Final = 60.0  # seconds that a connection may be idle
_RETRIES: Final = 10  # after responses with Retry-After


class _Connection(NamedTuple):
    stream: TlsStream
    since: float  # start of idleness


class _Answer(NamedTuple):
    head: ResponseParser
    body: bytes


class WebhookClient:
    """See `target.PostReview`."""

    def __init__(self, clock: Clock, locate: Locate) -> None:
        self._clock = clock
        self._locate = locate
        self._contexts = Contexts()
        self._idle: dict[Target, list[_Connection]] = {}  # by target, the longest idle first

    async def post_review(self, client: Json, review: bytes, seconds: int, identify: Identify | None = None) -> bytes:
        target = target_of(client)
        if identify is not None:
            target = target._replace(identity=identify(target.host, target.port))
        return await self.call(target, review, seconds)

    async def call(self, target: Target, review: bytes, seconds: int) -> bytes:
        """Post a review to a target and return the response body.

        CallError if there is none; HttpStatusError if the status is not a success.
        """
        context = self._contexts.of(target)
        url = target.url(seconds)
        try:
            async with self._clock.timeout(seconds):
                answer = await self._retried(target, context, review, url)
        except TimeoutError:
            raise CallError(f"Post {quote(url)}: context deadline exceeded") from None
        except CallError as error:
            raise CallError(f"Post {quote(url)}: {error}") from None
        status, body = answer.head.status, answer.body
        content_type = answer.head.headers.get("content-type", "")
        if not 200 <= status <= 206:
            raise HttpStatusError(str(from_response(status, body, verb="POST", content_type=content_type)), status)
        if not body:
            shown = content_type or "application/json"
            raise CallError(f"0-length response with status code: {status} and content type: {shown}")
        return body

    async def fetch(self, target: Target, seconds: int, most: int) -> bytes:
        """GET a document of at most `most` bytes; CallError if the request fails or the status is not 200.

        Redirects are not followed.
        """
        url = f"https://{target.authority}{target.path}"
        try:
            async with self._clock.timeout(seconds):
                answer = await self._call(target, self._contexts.of(target), _get(target), most)
        except TimeoutError:
            raise CallError(f"Get {quote(url)}: context deadline exceeded") from None
        except CallError as error:
            raise CallError(f"Get {quote(url)}: {error}") from None
        if answer.head.status != 200:
            raise HttpStatusError(f"Get {quote(url)}: status {answer.head.status}, want 200", answer.head.status)
        return answer.body

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.stream.close()
        self._idle.clear()

    async def _retried(self, target: Target, context: ssl.SSLContext, review: bytes, url: str) -> _Answer:
        for _ in range(_RETRIES):
            answer = await self._call(target, context, _request(target, review, url), _MOST_BODY)
            later = answer.head.headers.get("retry-after", "")
            if not later.isdecimal() or (answer.head.status != 429 and answer.head.status < 500):
                break
            await self._clock.sleep(int(later))
        return answer

    async def _call(self, target: Target, context: ssl.SSLContext, request: bytes, most: int) -> _Answer:
        while (stream := self._take_idle(target)) is not None:
            try:
                return await self._exchange(target, stream, request, most)
            except _GoneError:
                continue  # the peer had closed the idle connection: not processed
        stream = await self._connect(target, context)
        try:
            return await self._exchange(target, stream, request, most)
        except _GoneError:
            raise CallError("EOF") from None

    async def _exchange(self, target: Target, stream: TlsStream, request: bytes, most: int) -> _Answer:
        """Send a request and read the response; the connection is kept for reuse or closed."""
        kept = False
        try:
            head = await _sent(stream, request)
            pieces, size = [], 0
            async for piece in read_body(stream, head):
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    raise CallError(f"the response has more than {most} bytes")
            kept = head.keep_alive and self._keep(target, stream)
        except ConnectionResetError:
            raise CallError(f"read tcp {stream.ends}: read: connection reset by peer") from None
        except ConnectionError:
            raise CallError("unexpected EOF") from None
        except ssl.SSLError as error:
            raise CallError(fault_of(error)) from None
        finally:
            if not kept:
                stream.close()
        return _Answer(head, b"".join(pieces))

    # Connections

    def _take_idle(self, target: Target) -> TlsStream | None:
        """The most recently used idle connection, None if there is none."""
        connections = self._idle.get(target.peer)
        if connections and self._clock.monotonic() - connections[-1].since < _IDLE:
            return connections.pop().stream
        self._close_expired()
        return None

    def _close_expired(self) -> None:
        """Close connections of all targets that were idle for too long."""
        begin = self._clock.monotonic() - _IDLE
        for peer, connections in list(self._idle.items()):
            while connections and connections[0].since <= begin:
                connections.pop(0).stream.close()
            if not connections:
                del self._idle[peer]

    def _keep(self, target: Target, stream: TlsStream) -> bool:
        connections = self._idle.setdefault(target.peer, [])
        if len(connections) >= _MOST_IDLE:
            return False
        connections.append(_Connection(stream, self._clock.monotonic()))
        return True

    async def _connect(self, target: Target, context: ssl.SSLContext) -> TlsStream:
        host, port = self._locate(target.service) if target.service else (target.host, target.port)
        failure = CallError(f"dial tcp: lookup {host}: no such host")
        for address in await _addresses(host, port):
            try:
                stream = await TlsStream.to(address, port, context, target.server_name or target.host)
            except ssl.SSLError as error:
                if has_expired(error):
                    raise CallError(expired(await self._peer_certificate(target, address, port), self._clock)) from None
                raise CallError(fault_of(error)) from None
            except ConnectionResetError:
                failure = CallError("read: connection reset by peer")
            except ConnectionRefusedError:
                failure = CallError(f"dial tcp {join_host_port(address, port)}: connect: connection refused")
            except ConnectionError:
                failure = CallError("EOF")
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                failure = CallError(f"dial tcp {join_host_port(address, port)}: connect: {why}")
            else:
                try:
                    if not target.insecure:
                        check_host(stream.certificate, target.server_name or target.host)
                except CallError:
                    stream.close()
                    raise
                return stream
        raise failure

    async def _peer_certificate(self, target: Target, address: str, port: int) -> bytes:
        """The peer's certificate without verification, to describe what is wrong with it."""
        try:
            stream = await TlsStream.to(address, port, unverifying(), target.host)
        except OSError:
            return b""
        stream.close()
        return stream.shown_certificate


class _GoneError(Exception):
    """The peer closed the connection before a response."""


async def _sent(stream: TlsStream, request: bytes) -> ResponseParser:
    try:
        await stream.write(request)
        first = await stream.read(1)
    except ssl.SSLError:
        raise
    except OSError:
        raise _GoneError from None
    if not first:
        raise _GoneError
    stream.unread(first)
    return await read_response(stream)


def _request(target: Target, review: bytes, url: str) -> bytes:
    path = url.partition(target.authority)[2]
    fields = [
        ("Host", target.authority),
        ("User-Agent", "kube-apiserver-admission"),
        ("Accept", "application/json, */*"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(review))),
    ]
    authorization = target.identity.authorization() if target.identity is not None else ""
    if authorization:
        fields.append(("Authorization", authorization))
    return _head("POST", path, fields) + review


def _get(target: Target) -> bytes:
    fields = [("Host", target.authority), ("User-Agent", "kube-apiserver"), ("Accept", "application/json")]
    return _head("GET", target.path, fields)


def _head(method: str, path: str, fields: Sequence[tuple[str, str]]) -> bytes:
    try:
        return request_head(method, path, fields)
    except ValueError as error:
        raise CallError(f"net/http: invalid request: {error}") from None


async def _addresses(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
