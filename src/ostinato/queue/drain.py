"""Drain: waiting, at the end, for what is under way to finish, unless somebody says to wait no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Drain:
    def __init__(self) -> None:
        self._draining = False
        self._changed = asyncio.Event()

    async def wait_while(self, busy: Callable[[], bool]) -> None:
        """Return when nothing is under way. Whoever makes `busy()` false calls `notify`."""
        self._draining = True
        while self._draining and busy():
            self._changed.clear()
            await self._changed.wait()

    def notify(self) -> None:
        self._changed.set()

    def abandon(self) -> None:
        """Send away all who wait, whatever is under way."""
        self._draining = False
        self._changed.set()
