"""Messages of the core: requests, responses, streams. No I/O, no HTTP library."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from ostinato.api.errors import RequestEntityTooLarge
from ostinato.streams.upgrade import Upgrade

if TYPE_CHECKING:
    from ostinato.server.flow.turns import Turn
    from ostinato.server.request.audit_trail import AuditTrail
    from ostinato.server.request.list_body import ListBody
    from ostinato.server.request.route import Route

MAX_BODY = 3 * 1024 * 1024  # maximum bytes of a request body

SHORT_QUERY = 512  # maximum characters of a query whose parsed form is cached
_NO_HEADERS: Mapping[str, Sequence[str]] = {}
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class User(msgspec.Struct, frozen=True):
    """The authenticated user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Peer(msgspec.Struct, frozen=True, cache_hash=True):
    """The identity in a client certificate.

    `fault` says why the certificate identifies no one: it was not verified, or it is not valid now.
    """

    name: str  # "": no one
    groups: tuple[str, ...] = ()
    uid: str = ""
    not_before: float = float("-inf")  # seconds since 1970, as `not_after`
    not_after: float = float("inf")
    fingerprint: str = ""  # SHA-256 of the certificate, as hexadecimal digits
    proxy: str = ""  # the name, if the front proxy's CA signed the certificate
    fault: str = ""

    def expired(self) -> Peer:
        """Return the identity with a fault: its certificate is not valid now."""
        if self.fault:
            return self
        return msgspec.structs.replace(self, fault="certificate has expired or is not yet valid")


class Request:
    """One request. Header names are lower case; the path is still percent-encoded.

    The body is bytes, or a function that reads it. It is read only if the verb has a body, after authorization.
    """

    __slots__ = (
        "_body",
        "_read",
        "audit",
        "flow_headers",
        "headers",
        "line",
        "method",
        "path",
        "peer",
        "query_string",
        "remote",
        "repeated",
        "route",
        "sent",
        "user",
        "warnings",
        "was_tried",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query_string: str = "",
        headers: Mapping[str, str] | None = None,
        read: Callable[[], Awaitable[bytes]] | None = None,
        *,
        body: bytes = b"",
        peer: Peer | None = None,
        remote: str = "",
        repeated: Mapping[str, Sequence[str]] = _NO_HEADERS,
        line: Turn | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query_string = query_string
        self.headers: Mapping[str, str] = headers if headers is not None else {}
        self.peer = peer  # identity in the client certificate, if any
        self.remote = remote  # remote address; "" in process
        self.repeated = repeated  # all values of repeated headers
        self.user: User | None = None  # set by authentication
        self.flow_headers: Sequence[tuple[str, str]] = ()  # response headers of flow control; set with `line`
        self.line = line  # turn of its flow on the event loop
        self.route: Route | None = None  # set once the resource is found
        self.sent: Callable[[], Any] | None = None  # returns the object in the body as sent
        self.warnings: list[str] = []  # warnings for the client
        self.was_tried = False  # `handle_now` could not answer it, not even later
        self.audit: AuditTrail | None = None  # set before authentication if auditing is enabled
        self._read = read
        self._body = body

    @property
    def audited(self) -> bool:
        return self.audit is not None

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation to the audit event, if any. The first value of a key is kept."""
        if self.audit is not None:
            self.audit.annotate(key, value)

    async def read(self) -> bytes:
        """Read the body; RequestEntityTooLarge if it exceeds the limit."""
        data = self._body if self._read is None else await self._read()
        if len(data) > MAX_BODY:
            raise RequestEntityTooLarge.of(f"limit is {MAX_BODY}")
        return data

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The query parameters with their values. Malformed pairs are skipped, as in Go."""
        return parameters(self.query_string)

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, "" if it is absent."""
        if not self.query_string:
            return ""
        values = self.query.get(name)
        return values[0] if values else ""


def parameters(query_string: str) -> Mapping[str, Sequence[str]]:
    """Parse a query string into parameters with their values. Malformed pairs are skipped, as in Go."""
    return _cached_parameters(query_string) if len(query_string) <= SHORT_QUERY else _read(query_string)


def _read(query_string: str) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(_well_formed(query_string), keep_blank_values=True):
        found.setdefault(key, []).append(value)
    return found


_cached_parameters = lru_cache(maxsize=1024)(_read)  # clients repeat the same queries


def _well_formed(query: str) -> str:
    if ";" not in query and not _BAD_ESCAPE.search(query):
        return query
    return "&".join(pair for pair in query.split("&") if ";" not in pair and not _BAD_ESCAPE.search(pair))


class Response:
    """A complete response. The body may be in parts, so that a long list can be sent without joining it.

    With `shared`, the parts are a head, the pieces of the shared body, and a tail.
    """

    __slots__ = ("_size", "between", "content_type", "headers", "parts", "shared", "status")

    def __init__(
        self,
        status: int,
        body: bytes | list[bytes],
        content_type: str = "application/json",
        headers: Sequence[tuple[str, str]] = (),
        between: bytes = b"",
        shared: ListBody | None = None,
    ) -> None:
        self.status = status
        self.shared = shared
        self.parts = [body] if isinstance(body, bytes) else body  # at least one
        self.between = between  # separator between parts
        self.content_type = content_type
        self.headers = headers
        self._size = -1  # not counted yet

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> Response:
        """Add headers. Responses are not shared between requests."""
        self.headers = (*self.headers, *headers) if self.headers else headers
        return self

    @property
    def body(self) -> bytes:
        return self.parts[0] if len(self.parts) == 1 else self.between.join(self.parts)

    @property
    def size(self) -> int:
        """The size of the body in bytes."""
        if self._size < 0:
            self._size = sum(map(len, self.parts)) + len(self.between) * (len(self.parts) - 1)
        return self._size

    def pieces(self, size: int) -> Iterator[bytes]:
        """Iterate over the body in pieces of about `size` bytes, or of one part if that is larger."""
        parts, between = self.parts, self.between
        if self.shared is not None:  # its pieces are large
            yield b"".join(parts[:2])
            yield from parts[2:-2]
            yield b"".join(parts[max(len(parts) - 2, 2) :])
            return
        count = max(1, size * len(parts) // (self.size or 1))
        yield between.join(parts[:count])
        for start in range(count, len(parts), count):
            yield between.join([b"", *parts[start : start + count]])


class Stream:
    """A streamed response: each chunk is sent as soon as it is available.

    - `patient`: the reader may pause for any time, as a person who pages through a log does.
    - `length`: total bytes of all chunks, if known. A ConnectionError from `chunks` means that fewer arrived.
    - `forward`: takes a function that writes a chunk at once, or returns False if it cannot. While the reader waits for
      the next of `chunks`, a chunk may be given to that function instead.
    """

    __slots__ = ("chunks", "content_type", "forward", "headers", "length", "patient", "status")

    def __init__(
        self,
        status: int,
        chunks: AsyncIterator[bytes],
        content_type: str = "application/json",
        headers: Sequence[tuple[str, str]] = (),
        *,
        patient: bool = False,
        length: int | None = None,
        forward: Callable[[Callable[[bytes], bool]], None] | None = None,
    ) -> None:
        self.status = status
        self.chunks = chunks
        self.forward = forward
        self.content_type = content_type
        self.headers = headers
        self.patient = patient
        self.length = length

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> Stream:
        """Return a copy with more headers."""
        self.headers = [*self.headers, *headers]
        return self


Answer = Response | Stream | Upgrade
Later = Callable[[Callable[[Response | None], None]], None]
"""A response that needs no task: has a function called with it, soon; with None if there is none after all."""


def text_response(status: int, text: str) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8", (("X-Content-Type-Options", "nosniff"),))
