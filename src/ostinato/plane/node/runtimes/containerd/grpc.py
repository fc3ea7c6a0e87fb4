"""gRPC over a Unix socket: calls with one request, and one answer or many.

- One connection for all calls. It is made when it is needed, and made anew when it broke.
- A call ends with its answer or with an `RpcError`: what the server said, or UNAVAILABLE if it cannot be reached,
  DEADLINE_EXCEEDED if it took too long.
- A call that is cancelled is cancelled at the server, too. A server is read only as fast as its answers are taken, and
  a message has at most 16 MiB.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from ostinato.plane.node.runtimes.containerd.http2 import Call, Connection, RpcError
from ostinato.world import Clock

CODES: Final = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"),
    *("PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"),
    *("Internal", "Unavailable", "DataLoss", "Unauthenticated"),
)
UNKNOWN: Final = CODES.index("Unknown")
DEADLINE_EXCEEDED: Final = CODES.index("DeadlineExceeded")
NOT_FOUND: Final = CODES.index("NotFound")
RESOURCE_EXHAUSTED: Final = CODES.index("ResourceExhausted")
UNIMPLEMENTED: Final = CODES.index("Unimplemented")
INTERNAL: Final = CODES.index("Internal")
UNAVAILABLE: Final = CODES.index("Unavailable")

_LONGEST_MESSAGE: Final = 16 * 1024 * 1024
_PREFIX: Final = 5  # before a message: a byte that says whether it is compressed, and four of its length


class Channel:
    """The calls to one server."""

    def __init__(self, socket: Path, clock: Clock) -> None:
        self._socket = socket
        self._clock = clock
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._is_closed = False

    async def call(self, method: str, request: bytes, within: float) -> bytes:
        """The one answer, within so many seconds."""
        answers: list[bytes] = []  # one; but whether it succeeded is said after it
        try:
            async with self._clock.timeout(within), contextlib.aclosing(self.stream(method, request)) as stream:
                answers = [answer async for answer in stream]
        except TimeoutError:
            raise RpcError(DEADLINE_EXCEEDED, f"{method}: no answer within {within:g} s") from None
        if not answers:
            raise RpcError(INTERNAL, f"{method}: the server gave no answer")
        return answers[0]

    async def stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        """Answers, until the server ends them."""
        connection = await self._connected()
        call = connection.begin(method)
        try:
            await connection.send(call, b"\0" + len(request).to_bytes(4, "big") + request)
            received = bytearray()
            while (data := await connection.receive(call)) is not None:
                received += data
                while (message := _take(received, method)) is not None:
                    yield message
            _check(call, method)
        finally:
            connection.end(call)

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._is_closed:
                raise RpcError(UNAVAILABLE, f"{self._socket}: the channel is closed")
            if self._connection is None or self._connection.is_closed:
                try:
                    reader, writer = await asyncio.open_unix_connection(self._socket)
                except OSError as error:
                    raise RpcError(UNAVAILABLE, f"{self._socket}: {error.strerror or error}") from None
                self._connection = Connection(reader, writer, str(self._socket))
            return self._connection

    async def close(self) -> None:
        """Every call fails from now on."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()


def _take(received: bytearray, method: str) -> bytes | None:
    """The next message of what was received, if it is whole."""
    if len(received) < _PREFIX:
        return None
    size = int.from_bytes(received[1:_PREFIX], "big")
    if received[0]:
        raise RpcError(INTERNAL, f"{method}: the answer is compressed, which nobody asked for")
    if size > _LONGEST_MESSAGE:
        raise RpcError(RESOURCE_EXHAUSTED, f"{method}: an answer of {size} bytes is longer than {_LONGEST_MESSAGE}")
    if len(received) < _PREFIX + size:
        return None
    message = bytes(received[_PREFIX : _PREFIX + size])
    del received[: _PREFIX + size]
    return message


def _check(call: Call, method: str) -> None:
    """What the server said of the call, after all answers."""
    status = call.headers.get("grpc-status", "")
    if not status.isdecimal():
        said = call.headers.get(":status", "nothing")
        raise RpcError(UNKNOWN, f"{method}: the server does not speak gRPC; it answered {said}")
    if status != "0":
        raise RpcError(int(status), call.message)


def described(error: RpcError) -> str:
    """As Go programs write an error of a call."""
    name = CODES[error.code] if error.code < len(CODES) else f"Code({error.code})"
    return f"rpc error: code = {name} desc = {error}"
