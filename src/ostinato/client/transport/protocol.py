"""Transport protocol: how requests reach an API server, over HTTP or in the same process.

The client depends on this protocol only:

- `request` sends one request and returns when the status is known; the body is still to be read. Every status is a
  response, 404 and 500 too, and interpreted by the client. Without a response it raises `TransportError`.
- A transport adds credentials, impersonation, user agent and compression. It retries when the server asks for it
  (`Retry-After`) and where a retry is safe; it never follows redirects.
- Each `Response` must be closed: read it to its end, call `close()`, or `async with await transport.request(…)`.
- Nothing is sent after the `Deadline` of a transport: a former leader must not write.
- `close()` closes all connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self
from urllib.parse import quote, urlencode

MAX_LINE: Final = 64 * 1024 * 1024  # bytes of a line in a stream, far more than an object can have
MAX_RESPONSE_BYTES: Final = 1024 * 1024 * 1024  # bytes that `read` collects; fits the unpaged list of a large cluster

Deadline = Callable[[], float | None]
"""Returns the time on the clock's `monotonic()` after which nothing may be sent; None for no limit."""


class Request(NamedTuple):
    """One request to an API server. The path is percent-encoded and begins with a slash; see `path_of`.

    - `body`: bytes, or chunks that can be read only once; a request with chunks is never retried.
    - `stream`: the response is read until it is closed (a watch, a followed log). The rate limit does not apply.
    - `timeout`: seconds for the request with its retries and the reading of the body. Defaults to the transport's.
      For a stream, seconds until it begins. Defaults to no limit, as a log may have no output for long.
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
        """Path and query, the target in the request line."""
        return f"{self.path}?{self.query_string}" if self.query else self.path

    @property
    def query_string(self) -> str:
        return _encoded(tuple(self.query)) if self.query else ""


@lru_cache(maxsize=256)  # a controller repeats the same queries
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


class Response(Protocol):
    """Response whose head has been received, and whose body can be read."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; the first value of a repeated header."""

    @property
    def warnings(self) -> Sequence[str]:
        """The texts of `Warning` headers with code 299."""

    async def read(self) -> bytes:
        """Read the whole body, decompressed, and close the response."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it is received, in pieces of any size; closes the response at its end."""

    def close(self) -> None:
        """Stop reading. Idempotent."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class WebSocket(Protocol):
    """WebSocket connection: exec, attach, port-forward."""

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose; "" if none."""

    async def send(self, message: bytes) -> None:
        """Send one binary message."""

    async def receive(self) -> bytes | None:
        """Wait for the next message; None after the server has closed. A text message is returned in UTF-8."""

    async def close(self) -> None:
        """Close with a close frame. Idempotent."""


class Transport(Protocol):
    @property
    def host(self) -> str:
        """Address of the server for messages and metrics: `10.0.0.1:6443`, `in-process`."""

    async def request(self, request: Request) -> Response:
        """Send a request, and return its response when the head has been received. Raises `TransportError`."""

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        """Open a WebSocket with one of the subprotocols. Raises `UpgradeRefused` if the server rejects it."""

    async def close(self) -> None:
        """Close all connections. Idempotent; later requests raise `TransportError`."""


class TransportError(Exception):
    """No response, or an incomplete one. The message names the request, the server and the cause."""


class RequestTimedOut(TransportError, TimeoutError):  # noqa: N818
    """The request timed out; the server may have processed it."""


class ConnectionLost(TransportError):  # noqa: N818
    """The connection could not be opened, or was lost before the end of the response."""


class Unreachable(ConnectionLost):
    """The connection could not be opened, so the request was not sent."""


class DeadlinePassed(TransportError):  # noqa: N818
    """The request was not sent: the transport's deadline has passed."""


class ResponseTooLarge(TransportError):  # noqa: N818
    """The response exceeds the limit for data held in memory."""


class UpgradeRefused(TransportError):  # noqa: N818
    """The server rejected a WebSocket upgrade; `status`, `headers` and `body` are those of its response."""

    def __init__(self, message: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = body


@lru_cache(maxsize=1024)
def path_of(*segments: str) -> str:
    """Join segments to a path, each percent-encoded: `path_of("api", "v1", "namespaces", "a b")`."""
    return "".join(["/" + quote(segment, safe=":@!$&'()*+,;=~") for segment in segments])


async def lines(chunks: AsyncIterable[bytes], *, longest: int = MAX_LINE) -> AsyncIterator[bytes]:
    """Iterate over the lines of a stream, without line ends; includes an unterminated last line.

    Raises `ResponseTooLarge` for a line longer than `longest` bytes.
    """
    parts: list[bytes] = []  # of an incomplete line
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
                raise ResponseTooLarge(f"line of the stream longer than {longest} bytes")
    if parts:
        yield b"".join(parts)
