"""What would have a thread, as a task on the running loop: for a server in this process, which has only this loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

from ostinato.world import Thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class OnThisLoop(Thread[T]):
    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.name = name
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(main(), name=name)

    def stop(self) -> None:
        self._task.cancel()

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        if self._task.done():
            raise RuntimeError(f"{self.name} has ended")
        self._loop.call_soon(callback, *args)

    async def join(self) -> T | None:
        await asyncio.wait([self._task])
        return None if self._task.cancelled() else self._task.result()
