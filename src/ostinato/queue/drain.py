"""Drain: on shutdown, wait until the items being processed are done, or until the wait is abandoned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Drain:
    def __init__(self) -> None:
        self._draining = False
        self._changed = asyncio.Event()

    async def wait_while(self, busy: Callable[[], bool]) -> None:
        """Wait until `busy()` is false; it is evaluated again after each `notify()`."""
        self._draining = True
        while self._draining and busy():
            self._changed.clear()
            await self._changed.wait()

    def notify(self) -> None:
        """Have the condition evaluated again; call it after every change that may make it false."""
        self._changed.set()

    def abandon(self) -> None:
        """End all waits, even if items are still being processed."""
        self._draining = False
        self._changed.set()
