"""Drain: waiting, at the end, for what is under way to finish, unless somebody says to wait no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Drain:
    def __init__(self) -> None:
        self._patient = False
        self._news = asyncio.Event()

    async def wait_while(self, busy: Callable[[], bool]) -> None:
        """Return when nothing is under way. Whoever makes `busy()` false calls `look_again`."""
        self._patient = True
        while self._patient and busy():
            self._news.clear()
            await self._news.wait()

    def look_again(self) -> None:
        self._news.set()

    def give_up(self) -> None:
        """Send away all who wait, whatever is under way."""
        self._patient = False
        self._news.set()
