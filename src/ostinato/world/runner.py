"""Runner: the event loop of a program, which always ends.

At the end the remaining tasks are cancelled. Python would wait indefinitely for tasks that suppress their cancellation
and for functions that block a thread (`asyncio.to_thread`), so that a process that lost its lease would not exit. Here
such functions are abandoned. Such tasks are logged, and the process exits with `os._exit`: when they are destroyed,
Python would resume them once more.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from ostinato.world.workers import Workers

P = ParamSpec("P")
T = TypeVar("T")

_LAST_SECONDS: Final = 1.0

_logger = logging.getLogger("ostinato.world")


@contextmanager
def program_runner(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> Iterator[asyncio.Runner]:
    """Provide a runner for the coroutines of a program."""

    def make() -> asyncio.AbstractEventLoop:
        loop = make_loop()
        loop.set_default_executor(LoopWorkers())
        return loop

    with asyncio.Runner(loop_factory=make) as runner:
        try:
            yield runner
        finally:
            runner.run(_end_all())


async def _end_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=_LAST_SECONDS)
    for task in left:
        name = task.get_name()
        _logger.error("task suppresses its cancellation, abandoned task=%s", name)
        asyncio._unregister_task(task)
    if left:
        atexit.register(_leave, left)  # keeps them alive until then


def _leave(left: set[asyncio.Task[Any]]) -> None:  # noqa: ARG001 - only keeps them alive
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


class LoopWorkers(ThreadPoolExecutor):
    """Default executor of a loop, with Python's default number of workers, which shutdown does not wait for."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._workers = Workers(min(32, (os.cpu_count() or 1) + 4), "asyncio")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._workers.submit(partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - of the base class
        self._workers.close()
