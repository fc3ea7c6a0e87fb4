"""WebSockets of the transport protocol.

A WebSocket takes over the connection on which it was opened. Received messages are bounded: reading pauses while the
caller does not take them.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import Final, cast

from ostinato.client.http.connection import Connection, ConnectionClosed
from ostinato.client.http.errors import failure
from ostinato.client.transport.protocol import ConnectionLost, UpgradeRefused
from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser
from ostinato.http.websocket import BINARY, FrameReader, InvalidFrame, check_upgrade, close, frame
from ostinato.streams.inbox import Inbox
from ostinato.world import Clock

Entropy = Callable[[int], bytes]
"""Returns random bytes."""

_CLOSE: Final = 10.0  # seconds to wait for the server's close frame
_MAX_REJECTION: Final = 64 * 1024  # bytes read of the response to a rejected upgrade


def new_key(entropy: Entropy) -> str:
    """Return a `Sec-WebSocket-Key`."""
    return base64.b64encode(entropy(16)).decode()


async def upgrade(connection: Connection, head: bytes, key: str, protocols: Sequence[str], what: str) -> str:
    """Request an upgrade, and return the selected subprotocol. The connection then carries frames.

    - `head`: of the request. `key`: the `Sec-WebSocket-Key` in it. `what`: method and path, for messages.
    - Raises `UpgradeRefused` if the server rejects the upgrade, `TransportError` if the connection fails.
    """
    response = ResponseParser(accepts_upgrade=True)
    try:
        await connection.send(head, response)
        if response.status == 101:
            return check_upgrade(response, key, protocols)
        body = b""
        while len(body) < _MAX_REJECTION and (piece := await connection.more()):
            body += piece
    except (InvalidHttp, ConnectionClosed, OSError) as error:
        raise failure(error, what) from None
    message = f"{what}: WebSocket upgrade rejected with status {response.status}"
    raise UpgradeRefused(message, response.status, dict(response.headers), body[:_MAX_REJECTION])


class HttpWebSocket(asyncio.Protocol):
    """Implementation of `WebSocket`."""

    def __init__(
        self,
        connection: Connection,
        protocol: str,
        what: str,
        clock: Clock,
        entropy: Entropy,
        on_lost: Callable[[HttpWebSocket], None],
    ) -> None:
        """Take over a connection after `upgrade`. `on_lost`: called when the connection is closed."""
        self.protocol = protocol
        self.is_lost = False
        self._on_lost = on_lost
        self._transport = cast("asyncio.Transport", connection.transport)
        self._what = what
        self._clock = clock
        self._entropy = entropy
        self._inbox = Inbox(drained=self._resume)
        self._frames = FrameReader(self._inbox.put, self._mask)
        self._paused = False  # reading is paused until messages are taken
        self._writable: asyncio.Future[None] | None = None  # while the socket's buffer is full
        self._closing = False  # a close frame was sent or received
        self._failed = ""  # why the connection was lost; "" after a close frame
        self._transport.set_protocol(self)
        if not connection.is_open:
            self.connection_lost(None)
        elif connection.reader.rest:
            self.data_received(connection.reader.rest)

    async def send(self, message: bytes) -> None:
        if self._closing or self._inbox.ended:
            raise ConnectionLost(f"{self._what}: the WebSocket is closed")
        self._transport.write(frame(BINARY, message, self._mask()))
        if self._writable is not None:
            await self._writable

    async def receive(self) -> bytes | None:
        message = await self._inbox.take()
        if message is None and self._failed:
            raise ConnectionLost(f"{self._what}: {self._failed}")
        return message

    async def close(self) -> None:
        if not self._closing and not self._inbox.ended:
            self._closing = True
            self._transport.write(close(1000, self._mask()))
            self._inbox.drop()
            try:
                async with self._clock.timeout(_CLOSE):
                    await self._inbox.take()
            except TimeoutError:
                pass
        self.abort()

    def abort(self) -> None:
        """Close without a close frame and without a TLS shutdown: the peer may be gone, and the event loop may end."""
        self._transport.abort()
        self._end("the WebSocket was aborted")

    def _mask(self) -> bytes:
        return self._entropy(4)

    def _end(self, failed: str) -> None:
        if not self._inbox.ended:
            self._failed = "" if self._closing else failed
            self._inbox.end()

    def _resume(self) -> None:
        if self._paused and not self.is_lost:
            self._paused = False
            self._transport.resume_reading()

    # Called by the event loop

    def data_received(self, data: bytes) -> None:
        if self._inbox.ended:
            return
        try:
            response, closed = self._frames.feed(data)
        except InvalidFrame as error:
            self._transport.write(close(error.code, self._mask()))
            self._end(f"the WebSocket failed: protocol error {error.code}")
            self._transport.close()
            return
        if response and not (closed and self._closing):
            self._transport.write(response)
        if closed:
            self._closing = True
            self._end("")
        elif self._inbox.is_full and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.is_lost = True
        self._end("the connection of the WebSocket was lost")
        self.resume_writing()
        self._on_lost(self)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
