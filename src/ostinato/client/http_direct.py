"""Direct requests: objects that are written, over connections of our own and without a proxy in between.

A controller mostly writes, and aiohttp takes twice the processor for it. So what sends an object and gets one, POST,
PUT and PATCH, goes this way; lists, streams, WebSockets and what needs a proxy are aiohttp's.

- A connection has one request at a time. It is kept after a whole answer, for a while; one that broke, or whose request
  was given up, is closed. There is a bounded number; more requests wait for each other.
- Nothing is ever sent a second time.
- An answer is read whole before it is given.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

import aiohappyeyeballs
import aiohttp
from multidict import CIMultiDict

from ostinato.client.closable import Closable
from ostinato.client.config import Config
from ostinato.client.http_answer import Bounds, failure, untrusted, without_tls
from ostinato.client.http_connection import Connection, living_socket
from ostinato.client.http_message import Message, MessageReader, NotHttp
from ostinato.client.metrics import DNS, ClientMetrics
from ostinato.client.transport import (
    LONGEST_ANSWER,
    AnswerTooLarge,
    ConnectionLost,
    Request,
    RequestTimedOut,
    TransportError,
)
from ostinato.client.warning import warning_texts
from ostinato.world import Clock

METHODS: Final = frozenset(("POST", "PUT", "PATCH"))
LARGEST: Final = 256 * 1024  # bytes of a body; a larger one is to be sent piece by piece

_NEXT_ADDRESS: Final = 0.25  # seconds after which another address of the server is tried, too


class DirectTimes:
    """Seconds: for a connection, TLS included; without a byte of an answer; for which an unused connection is kept."""

    def __init__(self, connect: float, silence: float, idle: float) -> None:
        self.connect, self.silence, self.idle = connect, silence, idle


class DirectAnswer(Closable):
    """A Response that is at hand."""

    __slots__ = ("_message", "_on_close", "bounds", "headers", "status", "warnings")

    def __init__(self, message: Message, on_close: Callable[[int], None]) -> None:
        self._message = message
        self._on_close: Callable[[int], None] | None = on_close
        self.bounds = Bounds()
        self.status = message.status
        self.headers: Mapping[str, str] = message.headers
        self.warnings: Sequence[str] = warning_texts(message.warnings) if message.warnings else ()

    async def read(self) -> bytes:
        self.close()
        return self._message.body

    async def chunks(self) -> AsyncIterator[bytes]:
        self.close()
        if self._message.body:
            yield self._message.body

    def close(self) -> None:
        if self._on_close is not None:
            tell, self._on_close = self._on_close, None
            tell(len(self._message.body))

    async def drain(self) -> None:
        self.close()


class DirectPool:
    """Connections to one server. Must be made on the loop that uses it."""

    def __init__(
        self,
        config: Config,
        context: ssl.SSLContext | None,
        clock: Clock,
        times: DirectTimes,
        most: int,
        check: Callable[[], None],
        metrics: ClientMetrics | None,
    ) -> None:
        """`check` is called at the last moment before each request is sent, and raises if it must not be."""
        parts = urlsplit(config.url)
        self._host = parts.hostname or ""
        self._port = parts.port or (80 if context is None else 443)
        self._named = parts.netloc.rpartition("@")[2]  # in the header Host
        self._path = parts.path.rstrip("/")
        self._server_name = config.tls.server_name or self._host
        self._context = context
        self._clock = clock
        self._times = times
        self._check = check
        self._metrics = metrics
        self._places = asyncio.Semaphore(most)
        self._idle: list[tuple[float, Connection]] = []  # since when; the last one is used first
        self._busy: set[Connection] = set()
        self._sweep: Any = None  # Any: a timer, when there is one
        self._retired = False
        self._closed = False

    async def send(
        self,
        request: Request,
        headers: CIMultiDict[str],
        what: str,
        *,
        silence_ends: bool,
        longest: int = LONGEST_ANSWER,
    ) -> Message:
        body = cast("bytes", request.body)
        head = self._head(request, headers, len(body))
        async with self._places:
            connection = self._kept() or await self._connected(what)
            self._busy.add(connection)
            keeps = False
            try:
                if self._closed:
                    raise ConnectionLost(f"{what}: the transport is closed")
                self._check()  # here there is a connection, and nothing between this and the first byte
                silence = self._times.silence if silence_ends else None
                message = await connection.exchange(head + body, MessageReader(longest), self._clock, silence)
                keeps = message.keeps
            except NotHttp:
                raise ConnectionLost(f"{what}: the answer is not HTTP") from None
            except AnswerTooLarge:
                raise AnswerTooLarge(f"{what}: the answer is longer than {longest} bytes") from None
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise failure(error, what, "while its answer was read" if connection.has_begun else "") from None
            finally:
                self._busy.discard(connection)
                if keeps and connection.is_open and not self._retired:
                    self._keep(connection)
                else:
                    connection.abort()
        return message

    def retire(self) -> None:
        """Keep no connection any longer than its request takes."""
        self._retired = True
        self._drop_idle()

    def close(self) -> None:
        self._closed = True
        self.retire()
        for connection in list(self._busy):
            connection.abort()

    def _head(self, request: Request, headers: CIMultiDict[str], length: int) -> bytes:
        headers["Host"] = self._named
        headers["Content-Length"] = str(length)
        first = f"{request.method} {self._path}{request.target} HTTP/1.1"
        lines = [first, *[f"{name}: {value}" for name, value in headers.items()], "", ""]
        head = "\r\n".join(lines)
        if head.count("\r") != len(lines) - 1 or head.count("\n") != len(lines) - 1 or "\0" in head:
            raise ValueError(f"{request.method} {request.path}: a header holds the end of a line")
        if first.count(" ") != 2:
            raise ValueError(f"{request.method} {request.path}: the path is not encoded: it holds a space")
        return head.encode()

    # Connections

    def _kept(self) -> Connection | None:
        latest = self._clock.monotonic() - self._times.idle
        while self._idle:
            since, connection = self._idle.pop()
            if connection.is_open and since > latest:
                return connection
            connection.abort()
        return None

    def _keep(self, connection: Connection) -> None:
        self._idle.append((self._clock.monotonic(), connection))
        if self._sweep is None:
            self._sweep = self._clock.timer(self._times.idle, self._swept)

    def _swept(self) -> None:
        self._sweep = None
        latest = self._clock.monotonic() - self._times.idle
        kept, self._idle = self._idle, []
        for since, connection in kept:
            if connection.is_open and since > latest:
                self._idle.append((since, connection))
            else:
                connection.abort()
        if self._idle:
            self._sweep = self._clock.timer(self._times.idle, self._swept)

    def _drop_idle(self) -> None:
        for _, connection in self._idle:
            connection.abort()
        self._idle = []
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    async def _connected(self, what: str) -> Connection:
        name = self._server_name if self._context is not None else None
        made: socket.socket | None = None
        try:
            async with self._clock.timeout(self._times.connect):
                made = await aiohappyeyeballs.start_connection(
                    await self._addresses(),
                    happy_eyeballs_delay=_NEXT_ADDRESS,
                    interleave=1,
                    socket_factory=living_socket,
                )
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection, sock=made, ssl=self._context, server_hostname=name
                )
                return connection
        except ssl.SSLCertVerificationError as error:
            lost: TransportError = untrusted(error, what)
        except ssl.SSLError as error:
            lost = without_tls(error, what)
        except TimeoutError:
            lost = RequestTimedOut(f"{what}: no connection in time")
        except OSError as error:
            lost = ConnectionLost(f"{what}: the server cannot be reached: {error.strerror or type(error).__name__}")
        if made is not None:
            made.close()
        raise lost

    async def _addresses(self) -> Any:  # Any: as getaddrinfo has them
        begun = self._clock.monotonic()
        found = await asyncio.get_running_loop().getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        if self._metrics is not None and not _is_address(self._host):
            self._metrics.observe(DNS, self._clock.monotonic() - begun, {"host": self._host})
        return found


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
