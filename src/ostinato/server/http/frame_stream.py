"""Frame stream: a watch or a log over WebSocket, a text message per line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ostinato.http import websocket
from ostinato.http.request import RequestHead
from ostinato.server.http.upgraded import Writable
from ostinato.streams.channels import offered


class FrameStream:
    """The server's side of one stream."""

    def __init__(self, transport: asyncio.Transport, writable: Writable) -> None:
        self._transport = transport
        self._writable = writable
        self._reader = websocket.FrameReader()

    def begin(self, head: RequestHead) -> None:
        """Accept the upgrade."""
        key, protocol = head.headers.get("sec-websocket-key", ""), next(iter(offered(head.headers)), "")
        self._transport.write(websocket.handshake(key, protocol))

    def feed(self, data: bytes) -> None:
        """Receive frames: reply to pings, and close when the client does."""
        try:
            reply, closed = self._reader.feed(data)
        except websocket.InvalidFrame as error:
            reply, closed = websocket.close(error.code), True
        if reply:
            self._transport.write(reply)
        if closed:
            self._transport.close()

    async def send(self, chunks: AsyncIterator[bytes]) -> None:
        async for data in chunks:
            for line in data.splitlines(keepends=True):
                self._transport.write(websocket.text(line))
            if (writable := self._writable()) is not None:
                await writable

    def close(self) -> None:
        """Send the close frame of a stream that has ended."""
        self._transport.write(websocket.close(1000))
