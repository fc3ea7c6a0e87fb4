"""`Thread` as a task on an existing event loop: for a server in the same process, and for simulations."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

from ostinato.world.executor import Thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LoopTask(Thread[T]):
    def __init__(
        self,
        name: str,
        main: Callable[[], Coroutine[Any, Any, T]],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`loop`: Defaults to the running one."""
        self.name = name
        self._loop = loop or asyncio.get_running_loop()
        self._task = self._loop.create_task(
            main(), name=name, context=contextvars.Context()
        )  # an empty context, as in a thread

    def stop(self) -> None:
        self._task.cancel()

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        if self._task.done():
            raise RuntimeError(f"{self.name} has ended")
        self._loop.call_soon(callback, *args)

    async def join(self) -> T | None:
        await asyncio.wait([self._task])
        return None if self._task.cancelled() else self._task.result()
