"""In-process WebSocket: the two ends of an upgraded connection in one process."""

from __future__ import annotations

import asyncio
import contextlib

from ostinato.streams.inbox import Inbox
from ostinato.streams.upgrade import Upgrade


class InProcessWebSocket:
    """The client's end; see `ostinato.client.transport.protocol.WebSocket`."""

    def __init__(self, answer: Upgrade) -> None:
        self.protocol = answer.subprotocol
        self._to_server, self._to_client = Inbox(), Inbox()
        self._waiting: Upgrade | None = answer  # not served yet
        self._serving = asyncio.get_running_loop().create_task(self._serve(answer))

    async def send(self, message: bytes) -> None:
        self._to_server.put(message)
        await self._to_server.room()

    async def receive(self) -> bytes | None:
        return await self._to_client.take()

    async def close(self) -> None:
        self._to_server.end()
        self._to_client.drop()
        self._serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._serving
        if self._waiting is not None:  # cancelled before it began
            waiting, self._waiting = self._waiting, None
            await discard(waiting)

    async def _serve(self, answer: Upgrade) -> None:
        self._waiting = None
        try:
            await answer.serve(_ServerSocket(self._to_server, self._to_client))
        finally:
            self._to_server.drop()
            self._to_client.end()


async def discard(answer: Upgrade) -> None:
    """Close an upgrade that no client takes over, so that it releases its resources."""
    incoming, outgoing = Inbox(), Inbox()
    incoming.end()
    outgoing.drop()
    await answer.serve(_ServerSocket(incoming, outgoing))


class _ServerSocket:
    """The server's end: a `Socket`."""

    def __init__(self, incoming: Inbox, outgoing: Inbox) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send(self, data: bytes) -> None:
        self._outgoing.put(data)
        await self._outgoing.room()

    async def receive(self) -> bytes | None:
        return await self._incoming.take()
