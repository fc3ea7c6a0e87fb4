"""Runner: an event loop for a whole program, which ends when the program has nothing more to do.

What is still there then is cancelled. Python would wait for what does not end, for ever: for tasks that swallow their
cancellation, and for functions that block a thread (`asyncio.to_thread`). A process that has to end, because others do
its work by now, would stay. Here such functions are forgotten; such tasks are told of, and cost the process its orderly
end: they cannot even be forgotten, since Python asks them once more as it forgets.
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
    """A runner for coroutines of a program, one after the other."""

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
        _logger.error("%s does not end though it was cancelled: does it catch CancelledError? It is left behind", name)
        asyncio._unregister_task(task)
    if left:
        atexit.register(_leave, left)  # which keeps them until then


def _leave(left: set[asyncio.Task[Any]]) -> None:  # noqa: ARG001 - kept, not used
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


class LoopWorkers(ThreadPoolExecutor):
    """Workers in the form in which loops take them: as many as Python has by default, and not waited for."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._workers = Workers(min(32, (os.cpu_count() or 1) + 4), "asyncio")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._workers.submit(partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - as it is called
        self._workers.close()
