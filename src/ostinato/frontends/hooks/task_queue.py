"""Task queue: an ordered queue of tasks with its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ostinato.frontends.hooks.hook import Task
from ostinato.queue.getters import QueueShutDown
from ostinato.queue.ordered import OrderedQueue
from ostinato.world import Clock


class TaskQueue:
    def __init__(
        self,
        name: str,
        clock: Clock,
        process: Callable[[TaskQueue, Task], Awaitable[float | None]],
        gone: Callable[[TaskQueue], object],
        *,
        transient: bool = False,
    ) -> None:
        """
        - `process`: returns None if the head is done, or the seconds until its next attempt.
        - `transient`: the queue ends when it is empty, and calls `gone`.
        """
        self.name = name
        self.transient = transient
        self._process = process
        self._gone = gone
        self._queue: OrderedQueue[Task] = OrderedQueue(clock)
        self._worker: asyncio.Task[None] | None = None
        self._is_busy = False
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._queue)

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks in their order, the current one first."""
        return self._queue.waiting()

    def add(self, task: Task) -> None:
        self._queue.add(task)

    def add_first(self, tasks: Sequence[Task]) -> None:
        """Insert tasks after the one that is being processed."""
        self._queue.add_first(tasks)

    def take_following(self, matches: Callable[[Task], object]) -> list[Task]:
        """Remove and return the matching tasks that directly follow the current one."""
        return self._queue.take_following(matches)

    def start(self) -> None:
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work(), name=f"hooks: queue {self.name}")

    async def stop(self) -> None:
        """Stop after the current task; the others are dropped."""
        self._is_stopping = True
        self._queue.shut_down()
        if self._worker is None:
            return
        if not self._is_busy:
            self._worker.cancel()
        await asyncio.wait([self._worker])

    async def kill(self) -> None:
        """Stop at once."""
        self._is_stopping = True
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])

    async def _work(self) -> None:
        while not self._is_stopping:
            try:
                task = await self._queue.get()
            except QueueShutDown:
                return
            self._is_busy = True
            try:
                delay = await self._process(self, task)
            finally:
                self._is_busy = False
            if delay is None:
                self._queue.done()
            else:
                self._queue.retry(delay)
            if self.transient and not len(self._queue):
                self._gone(self)
                return
