"""Sender: delivers the reports of a process to the page in another one, over its Unix socket.

- Never blocks the controllers: it runs in a task of its own, and each delivery has a time limit.
- Reports that cannot be delivered are dropped and counted; the page may be slow, restarting or gone.
- One connection, one request at a time; a new one after a failure.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from ostinato.http import unix_sockets
from ostinato.http.encoding import request_head
from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser
from ostinato.page.reporting.reporter import Undelivered
from ostinato.world import Clock

_TIMEOUT: Final = 5.0  # seconds for one delivery
_RETRY: Final = 1.0  # seconds after a failure
_PIECE: Final = 1 << 16


class Sender:
    def __init__(self, clock: Clock, path: Path) -> None:
        self._clock = clock
        self._path = path
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._next = float("-inf")  # no attempt before

    async def deliver(self, body: bytes) -> bool:
        """Send encoded reports; return whether the connection is new. Raises `Undelivered`."""
        if self._streams is None and self._clock.monotonic() < self._next:
            raise Undelivered
        is_new = self._streams is None
        try:
            async with self._clock.timeout(_TIMEOUT):
                await self._exchange(body)
        except (OSError, TimeoutError, InvalidHttp):
            self.close()
            self._next = self._clock.monotonic() + _RETRY
            raise Undelivered from None
        except BaseException:
            self.close()
            raise
        return is_new

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _exchange(self, body: bytes) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(sock=unix_sockets.connect(self._path))
        reader, writer = self._streams
        fields = [("Host", "page"), ("Content-Length", str(len(body)))]
        writer.write(request_head("POST", "/reports", fields) + body)
        await writer.drain()
        response = ResponseParser()
        while not response.complete:
            data = await reader.read(_PIECE)
            if not data:
                raise ConnectionError("the page has closed the connection")
            response.feed(data)
        if response.status != 200:
            raise ConnectionError(f"the page answered with {response.status}")
