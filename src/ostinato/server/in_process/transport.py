"""In-process transport: passes a client's requests to a server without HTTP, TLS or copies.

    client = Client(InProcessTransport(server), world=server.world, namespace="default")

It implements the protocol of `ostinato.client.transport`, as the HTTP transport does: deadlines, timeouts,
`Retry-After`. A request is handled in the task that sends it: cancelling the task cancels the handling.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast
from weakref import WeakSet

from ostinato.client.transport import protocol
from ostinato.client.transport.headers import default_user_agent
from ostinato.client.transport.protocol import (
    ConnectionLost,
    DeadlinePassed,
    RequestTimedOut,
    TransportError,
    UpgradeRefused,
)
from ostinato.client.transport.retry_policy import MAX_RETRIES, MAX_RETRY_AFTER, is_replayable, wait_before_retry
from ostinato.client.transport.warning import warning_texts
from ostinato.server.core import Server
from ostinato.server.faults import FaultyServer
from ostinato.server.in_process.socket import InProcessWebSocket, discard
from ostinato.server.request import Answer, Peer, Request, Response, Stream
from ostinato.streams.upgrade import Upgrade

_PIECE = 1 << 16  # approximate size in bytes of a chunk of a response body

ADMINISTRATOR = ("kubernetes-admin", ("system:masters",))


class InProcessTransport:
    def __init__(
        self,
        server: Server | FaultyServer,
        *,
        user: tuple[str, Sequence[str]] = ADMINISTRATOR,
        user_agent: str = "",
        timeout: float | None = None,
        deadline: protocol.Deadline | None = None,
    ) -> None:
        """- `user`: name and groups of the requesting user, as in a client certificate. Defaults to an administrator.
        - `user_agent`: User-Agent of the requests; the default field manager. Defaults to the program's name.
        - `timeout`: seconds for requests that set none. Defaults to no limit.
        - `deadline`: returns the time after which no request is sent. Defaults to none.
        """
        self.host = "in-process"
        self._server = server
        self._clock = server.world.clock
        self._peer = Peer(user[0], tuple(user[1]))
        self._user_agent = user_agent or default_user_agent()
        self._timeout = timeout
        self._deadline = deadline
        self._open: set[InProcessAnswer] = set()  # open streams
        self._ending: set[asyncio.Task[None]] = set()  # streams that are being closed
        self._sockets: WeakSet[InProcessWebSocket] = WeakSet()
        self._closed = False

    async def request(self, request: protocol.Request) -> InProcessAnswer:
        timeout = self._timeout if request.timeout is None and not request.stream else request.timeout
        if timeout is None:
            return await self._send_until_answered(request)
        limit = self._clock.timeout(timeout)
        try:
            async with limit:
                return await self._send_until_answered(request)
        except TimeoutError:
            if not limit.expired():
                raise
            raise RequestTimedOut(f"{_what(request)}: timed out: no response within {timeout:g} seconds") from None

    async def websocket(self, request: protocol.Request, protocols: Sequence[str]) -> protocol.WebSocket:
        wanted = [("Sec-WebSocket-Protocol", ", ".join(protocols)), ("Upgrade", "websocket"), ("Connection", "Upgrade")]
        answer = await self._handle(request._replace(headers=[*request.headers, *wanted]))
        if isinstance(answer, Upgrade):
            if answer.head is not None:  # a raw byte stream needs a connection of its own
                await discard(answer)
                message = f"{_what(request)}: connections through a proxy cannot be upgraded in one process; use HTTP"
                raise UpgradeRefused(message, 501, {}, b"")
            socket = InProcessWebSocket(answer)
            self._sockets.add(socket)
            return socket
        async with InProcessAnswer(self, _what(request), answer) as refusal:
            message = f"{_what(request)}: WebSocket not opened: the server returned {refusal.status}"
            raise UpgradeRefused(message, refusal.status, refusal.headers, await refusal.read())

    async def close(self) -> None:
        self._closed = True
        for answer in [*self._open]:
            answer.close()
        await asyncio.gather(*self._ending, *(socket.close() for socket in self._sockets))

    async def _send_until_answered(self, request: protocol.Request) -> InProcessAnswer:
        for _ in range(MAX_RETRIES):
            answer = await self._send(request)
            wait = wait_before_retry(answer.status, answer.headers)
            if wait is None or wait > MAX_RETRY_AFTER or not is_replayable(request):
                return answer
            await self._clock.sleep(wait)
        return await self._send(request)

    async def _send(self, request: protocol.Request) -> InProcessAnswer:
        answer = await self._handle(request)
        assert not isinstance(answer, Upgrade), "no upgrade requested"
        return InProcessAnswer(self, _what(request), answer)

    async def _handle(self, request: protocol.Request) -> Answer:
        if self._closed:
            raise TransportError(f"{_what(request)}: not sent: the transport is closed")
        at = self._deadline() if self._deadline is not None else None
        if at is not None and self._clock.monotonic() > at:
            raise DeadlinePassed(f"{_what(request)}: not sent: the deadline has passed")
        headers = {name.lower(): value for name, value in reversed(request.headers)}
        repeated = _repeated(request.headers) if len(headers) < len(request.headers) else {}
        headers.setdefault("user-agent", self._user_agent)
        body = await _body(request)
        server_request = Request(request.method, request.path, request.query_string, headers, body=body)
        server_request.peer, server_request.repeated = self._peer, repeated
        try:
            return await self._server.handle(server_request)
        except ConnectionError as error:
            raise ConnectionLost(f"{_what(request)}: {error}") from None

    def opened(self, answer: InProcessAnswer) -> None:
        self._open.add(answer)

    def ended(self, answer: InProcessAnswer, chunks: AsyncIterator[bytes] | None) -> None:
        """Remove a stream, and close its `chunks` on the server if they are still open."""
        self._open.discard(answer)
        if chunks is not None:
            task = asyncio.get_running_loop().create_task(_end(chunks))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


class InProcessAnswer:
    """A Response of the transport protocol."""

    def __init__(self, transport: InProcessTransport, what: str, answer: Response | Stream) -> None:
        self.status = answer.status
        headers: dict[str, str] = {}
        for name, value in answer.headers:
            headers.setdefault(name.lower(), value)
        headers.setdefault("content-type", answer.content_type)
        self.headers: Mapping[str, str] = headers
        warnings = [value for name, value in answer.headers if name == "Warning"]
        self.warnings: Sequence[str] = warning_texts(warnings) if warnings else ()
        self._transport = transport
        self._what = what
        self._whole = answer if isinstance(answer, Response) else None
        self._chunks = answer.chunks if isinstance(answer, Stream) else None  # None once it is closed, too
        self._reader: asyncio.Task[Any] | None = None  # the task that waits for the next chunk
        self._interrupted = False
        if self._chunks is not None:
            transport.opened(self)

    async def read(self) -> bytes:
        if self._chunks is not None:
            return b"".join([chunk async for chunk in self])
        return b"" if self._whole is None else self._whole.body

    def chunks(self) -> AsyncIterator[bytes]:
        return self if self._chunks is not None else self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        if self._whole is not None:
            for piece in self._whole.pieces(_PIECE):
                yield piece

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._chunks is None:
            raise StopAsyncIteration
        reader = self._reader = asyncio.current_task()
        assert reader is not None
        try:
            return await anext(self._chunks)
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            reader.uncancel()
            raise ConnectionLost(f"{self._what}: closed") from None
        except StopAsyncIteration:
            self.close()
            raise
        except ConnectionError as error:
            self.close()
            raise ConnectionLost(f"{self._what}: {error}") from None
        finally:
            self._reader = None

    def close(self) -> None:
        chunks, self._chunks = self._chunks, None
        if chunks is None:
            return
        reader = self._reader
        if reader is None or reader is asyncio.current_task():
            self._transport.ended(self, chunks)
        else:  # the cancelled reader closes the stream
            self._interrupted = True
            reader.cancel()
            self._transport.ended(self, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _what(request: protocol.Request) -> str:
    return f"{request.method} in-process{request.path}"


async def _body(request: protocol.Request) -> bytes:
    if isinstance(request.body, bytes):
        return request.body
    return b"".join([chunk async for chunk in request.body])


def _repeated(headers: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """All values of the headers that occur more than once."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value)
    return {name: several for name, several in values.items() if len(several) > 1}


async def _end(chunks: AsyncIterator[bytes]) -> None:
    await cast("Any", chunks).aclose()
