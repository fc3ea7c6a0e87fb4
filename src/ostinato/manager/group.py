"""A group: runnables that start together and stop together.

- What is added before the group starts starts with it; what is added later starts at once; nothing is added once it
  stops.
- `start` returns when all that had been added are ready. Whoever cancels it waits no longer.
- `stop` asks all to stop, and returns when they have. `drop` insists, and does not wait for those that will not end.
- They have the context (`contextvars`) in which the group was made, whoever starts or adds them, and wherever.
- An error of one is told to whoever made the group. That a runnable was cancelled is none if it was to stop; if nobody
  had asked it to, it is: otherwise its work would end and nobody would know.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import Any, NamedTuple

from ostinato.world import Clock
from ostinato.world.cancellation import cancel_repeatedly

_logger = logging.getLogger("ostinato.manager")


class Stopped(RuntimeError):  # noqa: N818 - what is the case
    """Too late: the manager stops."""

    def __init__(self) -> None:
        super().__init__("can't accept new runnable as stop procedure is already engaged")


class Job(NamedTuple):
    """Something to run, and how to know that it is ready; None if it is so at once."""

    name: str
    work: Callable[[], Coroutine[Any, Any, object]]
    ready: Callable[[], Awaitable[object]] | None = None


class Group:
    def __init__(self, name: str, clock: Clock, failed: Callable[[str, Exception], object]) -> None:
        self.name = name
        self._clock = clock
        self._context = copy_context()
        self._failed = failed
        self._waiting: list[Job] = []  # added before the start
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = False
        self._stopped = False

    def add(self, job: Job) -> None:
        if self._stopped:
            raise Stopped
        if self._started:
            self._launch(job)
        else:
            self._waiting.append(job)

    async def start(self) -> None:
        """Harmless when it has started, or stopped."""
        if self._started or self._stopped:
            return
        self._started = True
        jobs, self._waiting = self._waiting, []
        for job in jobs:
            self._launch(job)
        for job in jobs:
            if job.ready is not None:
                await job.ready()

    async def wait(self) -> None:
        """Return when all that were started have ended by themselves."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def stop(self) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        await self.wait()

    def close(self) -> None:
        """Start nothing any more."""
        self._stopped = True
        self._waiting.clear()

    async def drop(self) -> None:
        self.close()
        for task in await cancel_repeatedly(self._tasks, self._clock):
            _logger.error("%s does not end though it was cancelled: it is left behind", task.get_name())

    def _launch(self, job: Job) -> None:
        context = self._context.copy()
        task = asyncio.get_running_loop().create_task(self._run(job), name=job.name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job) -> None:
        try:
            await job.work()
        except asyncio.CancelledError as error:
            if self._stopped:
                raise
            self._failed(job.name, _caused("it was cancelled by something that it awaited, or cancelled itself", error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the manager, not this task alone
            self._failed(job.name, error)
        except BaseExceptionGroup as group:
            self._failed(job.name, _caused(f"it raised {group!r}", group))


def _caused(text: str, cause: BaseException) -> RuntimeError:
    error = RuntimeError(text)
    error.__cause__ = cause
    return error
