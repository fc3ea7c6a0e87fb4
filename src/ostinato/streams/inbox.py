"""Inbox: a bounded buffer of bytes between a sender and a reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

_MOST: Final = 1 << 18  # bytes at which it is full


class Inbox:
    """`put` never blocks: a sender pauses while `is_full`, and resumes on the `drained` callback or after `room`."""

    def __init__(self, drained: Callable[[], None] | None = None) -> None:
        self._pieces: deque[bytes] = deque()
        self._held = 0  # buffered bytes
        self._news = asyncio.Event()  # set when data or the end is available
        self._room = asyncio.Event()
        self._room.set()
        self._drained = drained
        self._dropping = False
        self.ended = False  # no more data will be put

    @property
    def is_full(self) -> bool:
        return self._held > _MOST

    def put(self, piece: bytes) -> None:
        if self.ended or self._dropping:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        if self.is_full:
            self._room.clear()
        self._news.set()

    def end(self) -> None:
        """Mark the end of data. Buffered data can still be taken."""
        self.ended = True
        self._news.set()
        self._room.set()

    def drop(self) -> None:
        """Discard buffered and future data; there is no reader."""
        self._dropping = True
        self._pieces.clear()
        self._make_room(self._held)

    async def room(self) -> None:
        """Wait until it is not full."""
        await self._room.wait()

    async def take(self) -> bytes | None:
        """Return the next piece; None after the last. Only one reader may wait."""
        while not self._pieces:
            if self.ended:
                return None
            self._news.clear()
            await self._news.wait()
        piece = self._pieces.popleft()
        self._make_room(len(piece))
        return piece

    def _make_room(self, size: int) -> None:
        was_full = self.is_full
        self._held -= size
        if was_full and not self.is_full:
            self._room.set()
            if self._drained is not None:
                self._drained()
