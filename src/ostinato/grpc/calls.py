"""Calls in progress: what has been received of them, and who waits."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ostinato.grpc.status import Code, RpcError

if TYPE_CHECKING:
    from ostinato.grpc.connection import Connection

_PREFIX: Final = 5  # bytes before a message: compression flag and length


def framed(message: bytes) -> bytes:
    """Put the prefix of gRPC before a message."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def status_error(headers: dict[str, str], method: str) -> RpcError | None:
    """Return the error in trailers; None if the call succeeded."""
    status = headers.get("grpc-status", "")
    if status == "0":
        return None
    if not (status.isascii() and status.isdecimal()):
        http = headers.get(":status", "nothing")
        return RpcError(Code.UNKNOWN, f"{method}: not a gRPC response; HTTP status {http}")
    return RpcError(int(status), unquote(headers.get("grpc-message", "")), is_of_server=True)


class Call:
    """A unary call."""

    __slots__ = (
        "_on_end",
        "_parts",
        "_size",
        "_wanted",
        "credit",
        "deadline",
        "headers",
        "limit",
        "method",
        "stream",
        "within",
    )

    def __init__(
        self, method: str, limit: int, within: float, deadline: float, on_end: Callable[[bytes | RpcError], None]
    ) -> None:
        """`on_end`: called once, with the response or the error. `deadline`: `within` seconds after the beginning."""
        self.method = method
        self.within = within
        self.deadline = deadline
        self.limit = limit
        self._on_end = on_end
        self.stream = 0  # not sent yet
        self.headers: dict[str, str] = {}
        self.credit = 0  # bytes that the server may send again, and was not told so
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = -1  # bytes of the response with its prefix

    def received(self, data: bytes) -> int:
        """Take data; return how much more of the stream's window the server may use."""
        parts = self._parts
        parts.append(data)
        self._size += len(data)
        if self._wanted < 0 and self._size >= _PREFIX:
            self._wanted = _PREFIX + _size_of(b"".join(parts)[:_PREFIX], self.limit, self.method)
        if self._size > self._wanted >= 0:
            raise RpcError(Code.INTERNAL, f"{self.method}: more than one response")
        return len(data)

    def ended(self, error: RpcError | None) -> None:
        """Hand over the response, or the error. Idempotent."""
        on_end, self._on_end = self._on_end, _ignore
        parts = self._parts
        if error is None and self._size != self._wanted:
            error = RpcError(Code.INTERNAL, f"{self.method}: no response message")
        on_end(error or (parts[0] if len(parts) == 1 else b"".join(parts))[_PREFIX:])


class Stream:
    """A call with any number of messages in both directions.

    The server may send as much as the window of the stream until messages are received: a slow reader slows it down.
    """

    def __init__(self, connection: Connection, method: str, limit: int) -> None:
        self.method = method
        self.limit = limit
        self.stream = 0
        self.headers: dict[str, str] = {}
        self.deadline = math.inf
        self.credit = 0
        self._early = 0  # bytes of messages not received yet that the server may send again
        self._connection = connection
        self._buffer = bytearray()
        self._messages: deque[bytes] = deque()
        self._error: RpcError | None = None
        self._is_ended = False
        self._waiter: asyncio.Future[None] | None = None

    def send(self, message: bytes, *, is_last: bool = False) -> None:
        """Send a message, as soon as flow control allows it. No effect after the end."""
        if not self._is_ended:
            self._connection.send(self, framed(message), is_last=is_last)

    async def receive(self) -> bytes | None:
        """Wait for the next message; None at the end. Raises RpcError."""
        while not self._messages:
            if self._error is not None:
                raise self._error
            if self._is_ended:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message = self._messages.popleft()
        size = len(message) + _PREFIX
        early = min(size, self._early)
        self._early -= early
        self._connection.acknowledge(self, size - early)
        return message

    def close(self) -> None:
        """End the call; the server is told if it has not ended it. Idempotent."""
        if not self._is_ended:
            self._is_ended = True
            self._connection.cancel(self)
            self._wake()

    def received(self, data: bytes) -> int:
        buffer = self._buffer
        buffer += data
        begin, end = 0, len(buffer)
        while end - begin >= _PREFIX:
            size = _size_of(buffer[begin : begin + _PREFIX], self.limit, self.method)
            stop = begin + _PREFIX + size
            if stop > end:
                break
            self._messages.append(bytes(buffer[begin + _PREFIX : stop]))
            begin = stop
        if begin:
            del buffer[:begin]
            self._wake()
        if len(buffer) < self._connection.limits.window // 2:
            return 0
        self._early += len(data)  # a message may be larger than the window
        return len(data)

    def ended(self, error: RpcError | None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._error = error
            if error is None and self._buffer:
                self._error = RpcError(Code.INTERNAL, f"{self.method}: the stream ended within a message")
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _ignore(_: bytes | RpcError) -> None:
    """Nobody waits any more."""


def _size_of(prefix: bytes | bytearray, limit: int, method: str) -> int:
    if prefix[0]:
        raise RpcError(Code.INTERNAL, f"{method}: unexpected compressed response")
    size = int.from_bytes(prefix[1:], "big")
    if size > limit:
        raise RpcError(Code.RESOURCE_EXHAUSTED, f"{method}: response of {size} bytes exceeds {limit}")
    return size
