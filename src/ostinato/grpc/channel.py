"""Channel to one server: a connection that is opened on demand, and again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from ostinato.grpc.connection import Connection, Limits
from ostinato.grpc.hpack import encode_headers
from ostinato.grpc.status import Code, RpcError
from ostinato.world import Clock


def request_head(
    method: str, authority: str, *, is_tls: bool = False, metadata: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """Encode the headers of calls of a method."""
    return encode_headers(
        (
            *((":method", "POST"), (":scheme", "https" if is_tls else "http"), (":path", method)),
            *((":authority", authority), ("te", "trailers"), ("content-type", "application/grpc")),
            *(("user-agent", "ostinato"), *metadata),
        )
    )


class Channel:
    """A channel to a Unix socket, shared by all calls. `limits`: of its connections."""

    def __init__(self, socket: Path, clock: Clock, limits: Limits = Limits()) -> None:  # noqa: B008 - immutable
        self._socket = socket
        self._clock = clock
        self._limits = limits
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._is_closed = False

    async def call(self, method: str, request: bytes, within: float) -> bytes:
        """Call a unary method; DEADLINE_EXCEEDED after `within` seconds."""
        connection = await self._connected()
        return await connection.call(method, request_head(method, "localhost"), request, within)

    async def stream(self, method: str, request: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the responses of a streaming method."""
        connection = await self._connected()
        stream = connection.stream(method, request_head(method, "localhost"), request, is_last=True)
        try:
            while (message := await stream.receive()) is not None:
                yield message
        finally:
            stream.close()

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._is_closed:
                raise RpcError(Code.UNAVAILABLE, f"{self._socket}: the channel is closed", may_have_run=False)
            if self._connection is None or self._connection.is_closed:
                peer = str(self._socket)
                loop = asyncio.get_running_loop()
                try:
                    _, self._connection = await loop.create_unix_connection(
                        lambda: Connection(self._clock, peer, self._limits), peer
                    )
                except OSError as error:
                    message = f"{peer}: {error.strerror or error}"
                    raise RpcError(Code.UNAVAILABLE, message, may_have_run=False) from None
            return self._connection

    async def close(self) -> None:
        """Close the channel; later calls fail."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()
