"""gRPC client over a Unix socket: unary and server-streaming calls.

- All calls share one connection, which is opened on demand and reopened after a failure.
- A call returns its response or raises `RpcError`: the server's status, UNAVAILABLE without a connection, or
  DEADLINE_EXCEEDED after a timeout.
- Cancelling a call resets its stream. Flow control follows the reader. Messages are limited to 16 MiB.
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

_MAX_MESSAGE: Final = 16 * 1024 * 1024
_PREFIX: Final = 5  # bytes before a message: compression flag and length


class Channel:
    """A channel to one server."""

    def __init__(self, socket: Path, clock: Clock) -> None:
        self._socket = socket
        self._clock = clock
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._is_closed = False

    async def call(self, method: str, request: bytes, within: float) -> bytes:
        """Call a unary method; DEADLINE_EXCEEDED after `within` seconds."""
        answers: list[bytes] = []  # one, but the status follows in the trailers
        try:
            async with self._clock.timeout(within), contextlib.aclosing(self.stream(method, request)) as stream:
                answers = [answer async for answer in stream]
        except TimeoutError:
            raise RpcError(DEADLINE_EXCEEDED, f"{method}: no response within {within:g} s") from None
        if not answers:
            raise RpcError(INTERNAL, f"{method}: no response message")
        return answers[0]

    async def stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the responses of a streaming method."""
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
        """Close the channel; later calls fail."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()


def _take(received: bytearray, method: str) -> bytes | None:
    """Remove and return the next complete message; None if there is none."""
    if len(received) < _PREFIX:
        return None
    size = int.from_bytes(received[1:_PREFIX], "big")
    if received[0]:
        raise RpcError(INTERNAL, f"{method}: unexpected compressed response")
    if size > _MAX_MESSAGE:
        raise RpcError(RESOURCE_EXHAUSTED, f"{method}: response of {size} bytes exceeds {_MAX_MESSAGE}")
    if len(received) < _PREFIX + size:
        return None
    message = bytes(received[_PREFIX : _PREFIX + size])
    del received[: _PREFIX + size]
    return message


def _check(call: Call, method: str) -> None:
    """Raise the call's status from the trailers, unless it is OK."""
    status = call.headers.get("grpc-status", "")
    if not status.isdecimal():
        http_status = call.headers.get(":status", "nothing")
        raise RpcError(UNKNOWN, f"{method}: not a gRPC response; HTTP status {http_status}")
    if status != "0":
        raise RpcError(int(status), call.message)


def go_error(error: RpcError) -> str:
    """Format an error as Go's gRPC library does."""
    name = CODES[error.code] if error.code < len(CODES) else f"Code({error.code})"
    return f"rpc error: code = {name} desc = {error}"
