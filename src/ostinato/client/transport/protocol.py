"""Transport: how a request reaches an API server, over HTTP or straight into one in this process.

The client is written against this protocol alone:

- `request` sends one request and returns as soon as the status is known; the body is still to be read. Every status is
  an answer, 404 and 500 too: what an answer means is the client's affair. No answer at all is a `TransportError`.
- A transport adds what belongs to the connection: credentials, impersonation, user agent, compression. It retries what
  the server asks to be sent again (`Retry-After`) and what certainly does no harm; it never follows a redirect.
- Each `Response` must be closed: read it to its end, call `close()`, or `async with await transport.request(…)`.
- Nothing is sent past the `Deadline` that a transport was given: who lost an election must not write.
- `close()` ends everything that is open.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self
from urllib.parse import quote, urlencode

MAX_LINE: Final = 64 * 1024 * 1024  # bytes of a line in a stream, far more than any object has
MAX_RESPONSE_BYTES: Final = 1024 * 1024 * 1024  # bytes that `read` collects; a large cluster's unpaged list fits

Deadline = Callable[[], float | None]
"""The time on the clock's `monotonic()` after which nothing may be sent; None while there is no such time."""


class Request(NamedTuple):
    """One request to an API server. The path is percent-encoded and begins with a slash; see `path_of`.

    - `body`: bytes, or chunks that can be read only once; such a request is never sent a second time.
    - `stream`: the answer goes on until somebody closes it (a watch, a log that is followed). No rate limit applies.
    - `timeout`: seconds for everything, waits for retries and the reading of the body included; None is the
      transport's own. For a stream, seconds until it begins; None is no limit, for a log may be silent for long.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | AsyncIterable[bytes] = b""
    stream: bool = False
    timeout: float | None = None

    @property
    def target(self) -> str:
        """Path and query, as the first line of an HTTP request has them."""
        return f"{self.path}?{self.query_string}" if self.query else self.path

    @property
    def query_string(self) -> str:
        return _encoded(tuple(self.query)) if self.query else ""


@lru_cache(maxsize=256)  # a controller asks for the same again and again
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


class Response(Protocol):
    """The beginning of an answer, and the way to the rest."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are lower case; of a header that came more than once the first value."""

    @property
    def warnings(self) -> Sequence[str]:
        """What the server wants people to know of this request: the texts of its `Warning` headers with code 299."""

    async def read(self) -> bytes:
        """The whole body, decompressed; the response is closed then."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces of any size; ends when the server ends it, and closes the response."""

    def close(self) -> None:
        """Read no more. Harmless when it is closed."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class WebSocket(Protocol):
    """A connection for messages in both directions: exec, attach, port-forward."""

    @property
    def protocol(self) -> str:
        """Which of the offered protocols the server chose, "" if none."""

    async def send(self, message: bytes) -> None:
        """Send one binary message."""

    async def receive(self) -> bytes | None:
        """The next message, None when the server has closed. A text message comes as its UTF-8 bytes."""

    async def close(self) -> None:
        """Say good-bye. Harmless when it is closed."""


class Transport(Protocol):
    @property
    def host(self) -> str:
        """Where requests go, for messages and metrics: `10.0.0.1:6443`, `in-process`."""

    async def request(self, request: Request) -> Response:
        """Send it; the beginning of the answer. `TransportError` if there is none."""

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        """Upgrade to a WebSocket that speaks one of `protocols`. `UpgradeRefused` if the server answers instead."""

    async def close(self) -> None:
        """Close all connections. Harmless when it is closed; a closed transport raises `TransportError`."""


class TransportError(Exception):
    """No answer, or not all of one. The message says what was asked of whom, and what came in the way."""


class RequestTimedOut(TransportError, TimeoutError):  # noqa: N818 - what happened, in the past tense
    """The time of a request ran out; the server may have done it all the same."""


class ConnectionLost(TransportError):  # noqa: N818
    """The connection could not be made, or broke before the end of the answer."""


class Unreachable(ConnectionLost):
    """There was no connection, so the request was not sent."""


class DeadlinePassed(TransportError):  # noqa: N818
    """The request was not sent: whoever made the transport may not write any more."""


class ResponseTooLarge(TransportError):  # noqa: N818
    """More came than anybody should hold in memory."""


class UpgradeRefused(TransportError):  # noqa: N818
    """The server answered a request for a WebSocket with something else: its status, headers and body."""

    def __init__(self, message: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = body


@lru_cache(maxsize=1024)
def path_of(*segments: str) -> str:
    """The path of these segments, each quoted: `path_of("api", "v1", "namespaces", "a b")`."""
    return "".join(["/" + quote(segment, safe=":@!$&'()*+,;=~") for segment in segments])


async def lines(chunks: AsyncIterable[bytes], *, longest: int = MAX_LINE) -> AsyncIterator[bytes]:
    """The lines of a stream, without their ends. A last line without an end is given too, if the stream ended well.

    `ResponseTooLarge` for a line that does not end within `longest` bytes.
    """
    parts: list[bytes] = []  # of a line whose end has not come
    size = 0
    async for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if parts:
                parts.append(chunk[start:end])
                yield b"".join(parts)
                parts, size = [], 0
            else:
                yield chunk[start:end]
            start = end + 1
        if start < len(chunk):
            parts.append(chunk[start:])
            size += len(chunk) - start
            if size > longest:
                raise ResponseTooLarge(f"a line of the stream is longer than {longest} bytes")
    if parts:
        yield b"".join(parts)
