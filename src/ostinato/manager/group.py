"""Group: runnables that start and stop together.

- Runnables that are added before the start start with the group, later ones immediately. None can be added once the
  group stops.
- `start` returns when all runnables that were added before are ready.
- `stop` cancels all runnables and waits for them. `drop` cancels them repeatedly, and leaves those that do not end.
- All run in the context (`contextvars`) in which the group was created.
- An error of a runnable is passed to `failed`. So is a cancellation that the group did not request: otherwise its work
  would stop unnoticed.
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


class Stopped(RuntimeError):  # noqa: N818
    """A runnable cannot be added: the manager is stopping."""

    def __init__(self) -> None:
        super().__init__("can't accept new runnable as stop procedure is already engaged")


class Job(NamedTuple):
    """A coroutine function to run. `ready` waits until it is ready; None if it is ready immediately."""

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
        """Start all jobs and wait until they are ready. No effect if the group has started or stopped."""
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
        """Wait until all started jobs have ended."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def stop(self) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        await self.wait()

    def close(self) -> None:
        """Prevent further starts."""
        self._stopped = True
        self._waiting.clear()

    async def drop(self) -> None:
        self.close()
        for task in await cancel_repeatedly(self._tasks, self._clock):
            _logger.error("runnable does not end after cancellation, abandoned runnable=%s", task.get_name())

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
            self._failed(job.name, _caused("it was cancelled by something it awaited, or cancelled itself", error))
        except Exception as error:  # noqa: BLE001 - any error stops the manager
            self._failed(job.name, error)
        except BaseExceptionGroup as group:
            self._failed(job.name, _caused(f"it raised {group!r}", group))


def _caused(text: str, cause: BaseException) -> RuntimeError:
    error = RuntimeError(text)
    error.__cause__ = cause
    return error
