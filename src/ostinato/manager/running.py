"""Running managers as a program: an event loop, signals and logs.

    run(manager)
    run(manager, another)          # the first that ends ends the others

- uvloop is used where it is installed.
- Logs are set up if the program has not done so: text for a terminal, else JSON.
- What the program has loaded is set aside, and once more when the caches are filled: the garbage collector looks only
  at what comes later. Otherwise it would stop everything for 10 to 30 ms now and then, to find all of it still in use.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any, Protocol

from ostinato.cache.sync_tracker import SyncError
from ostinato.client.config.error import ConfigError
from ostinato.manager.hosting import current_host
from ostinato.manager.logs import configure_logging
from ostinato.manager.signals import stop_on_signals
from ostinato.world.runner import program_runner

# How much comes before the collector looks at it: more than Python's 700, for nearly all of it lives shortly.
_THRESHOLDS = (10_000, 20, 20)


class Served(Protocol):
    """A manager."""

    async def serve(self) -> None: ...

    def stop(self) -> None: ...

    async def filled(self) -> None: ...


def run(*managers: Served) -> None:
    """Run until a signal comes, or one of them ends; all are stopped then, and errors raised.

    In a file that another program loads it returns at once: that program runs them (`hosting`).
    """
    host = current_host()
    if host is not None:
        host.managers += managers
        return
    if not logging.getLogger().handlers:
        configure_logging()
    with new_runner() as runner:
        try:
            runner.run(serve_together(*managers))
        except (ConfigError, SyncError) as error:  # which say all that there is to say
            raise error.with_traceback(None) from None


async def serve_together(*managers: Served, leave: Callable[[int], object] = os._exit) -> None:
    """The same on the running loop. `leave`: ends the process, with a code, at a second signal."""

    def stop() -> None:
        for manager in managers:
            manager.stop()

    with stop_on_signals(stop, leave), set_aside([manager.filled for manager in managers]):
        tasks = [asyncio.get_running_loop().create_task(manager.serve()) for manager in managers]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            stop()
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
    errors = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if len(errors) > 1:
        raise BaseExceptionGroup("several managers failed", errors)
    if errors:
        raise errors[0]


@contextmanager
def set_aside(filled: Sequence[Callable[[], Awaitable[object]]]) -> Iterator[None]:
    """Keep the garbage collector from what there is now, and from what there is when all of these have returned."""

    async def again() -> None:
        for each in filled:
            await each()
        _freeze()

    first, thresholds = gc.get_freeze_count() == 0, gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    _freeze()
    waiting = asyncio.get_running_loop().create_task(again(), name="set aside what stays")
    try:
        yield
    finally:
        waiting.cancel()
        gc.set_threshold(*thresholds)
        if first:
            gc.unfreeze()


def _freeze() -> None:
    gc.collect(1)  # or garbage would stay, too; what is older is hardly any, and takes long to look at
    gc.freeze()


def new_runner() -> AbstractContextManager[asyncio.Runner]:
    """What runs the coroutines of a program."""
    return program_runner(loop_factory())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes the event loop: uvloop where it is installed."""
    try:
        uvloop: Any = import_module("uvloop")  # Any: it is not a dependency
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
