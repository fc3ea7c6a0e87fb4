"""Inbox: a bounded buffer of bytes between a sender and a reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

_MOST: Final = 1 << 18  # bytes that wait, about


class Inbox:
    """`put` never waits: whoever puts stops while it `is_full`, and goes on when it is told, or after `room`."""

    def __init__(self, drained: Callable[[], None] | None = None) -> None:
        self._pieces: deque[bytes] = deque()
        self._held = 0  # bytes of them
        self._news = asyncio.Event()  # there is something to take, or the end
        self._room = asyncio.Event()
        self._room.set()
        self._drained = drained
        self._dropping = False
        self.ended = False  # nothing more will be put

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
        """Nothing more comes. What is there can still be taken."""
        self.ended = True
        self._news.set()
        self._room.set()

    def drop(self) -> None:
        """Nobody will take anything any more."""
        self._dropping = True
        self._pieces.clear()
        self._make_room(self._held)

    async def room(self) -> None:
        """Wait until it is not full."""
        await self._room.wait()

    async def take(self) -> bytes | None:
        """The next piece; None after the last. One at a time may wait here."""
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
