"""Upgraded connection: carries WebSocket messages, or bytes of another protocol.

It is read only as fast as messages are received from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ostinato.http import websocket
from ostinato.http.encoding import clean
from ostinato.http.request import RequestHead
from ostinato.streams.inbox import Inbox
from ostinato.streams.upgrade import Upgrade

Writable = Callable[[], "asyncio.Future[None] | None"]
"""Returns a future to await before more is written; None if there is room."""


def upgrade_head(head: RequestHead, answer: Upgrade) -> bytes:
    """Encode the response that switches protocols."""
    if answer.head is not None:
        return answer.head
    if answer.has_messages:
        return websocket.handshake(head.headers.get("sec-websocket-key", ""), answer.subprotocol)
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        f"Upgrade: {answer.protocol}",
        "Connection: Upgrade",
        f"X-Stream-Protocol-Version: {clean(answer.subprotocol)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class UpgradedConnection:
    """Implementation of `Socket`."""

    def __init__(self, transport: asyncio.Transport, writable: Writable, answer: Upgrade) -> None:
        self._transport = transport
        self._writable = writable
        self._inbox = Inbox(drained=self._resume)
        self._frames = websocket.FrameReader(self._inbox.put) if answer.has_messages else None
        self._paused = False
        self._opcode = websocket.TEXT if answer.text else websocket.BINARY

    async def send(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(data if self._frames is None else websocket.frame(self._opcode, data))
        if (waiter := self._writable()) is not None:
            await waiter

    async def receive(self) -> bytes | None:
        return await self._inbox.take()

    # Called by the connection

    def feed(self, data: bytes) -> None:
        """Process received data."""
        if self._frames is None:
            self._inbox.put(data)
        else:
            self._feed_frames(self._frames, data)
        if self._inbox.is_full and not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _feed_frames(self, frames: websocket.FrameReader, data: bytes) -> None:
        try:
            answer, closes = frames.feed(data)
        except websocket.InvalidFrame as error:
            answer, closes = websocket.close(error.code), True
        if answer and not self._inbox.ended:
            self._transport.write(answer)
        if closes:
            self._inbox.end()

    def going_away(self) -> None:
        """Send the close frame of a server that stops (1001), if this is a WebSocket."""
        if self._frames is not None and not self._transport.is_closing():
            self._transport.write(websocket.close(1001))

    async def close(self) -> None:
        """Send a close frame, and wait for the client's."""
        if not self._inbox.ended and not self._transport.is_closing():
            self._transport.write(websocket.close(1000))
            self._inbox.drop()
            await self._inbox.take()

    def _resume(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
