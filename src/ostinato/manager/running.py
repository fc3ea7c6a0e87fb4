"""Run managers as a program: event loop, signals and logs.

    run(manager)
    run(manager, another)          # when one ends, the others are stopped

- uvloop is used if it is installed.
- Logging is configured unless the program has done so: text for a terminal, else JSON.
- Objects are frozen (`gc.freeze`) at the start and when the caches have synced, so that the garbage collector does not
  traverse them: full collections would pause the process for 10 to 30 ms.
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
from ostinato.client.config.error import ConfigError, NoConfig
from ostinato.controllers.guards.program import program
from ostinato.manager.hosting import current_host
from ostinato.manager.logs import configure_logging
from ostinato.manager.signals import stop_on_signals
from ostinato.world.runner import program_runner

# Higher than Python's 700, since nearly all objects are short-lived.
_THRESHOLDS = (10_000, 20, 20)


class Served(Protocol):
    """The interface of a manager to `run`."""

    async def serve(self) -> None: ...

    def stop(self) -> None: ...

    async def synced(self) -> None: ...


def run(*managers: Served) -> None:
    """Run until a signal arrives or one manager ends; then all are stopped, and errors are raised.

    In a file that another program loads, returns immediately: that program runs the managers (`hosting`).
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
        except NoConfig as error:
            advice = f": ostinato run {name} --embedded" if (name := program()) else ""
            raise NoConfig(f"{error}{advice}") from None
        except (ConfigError, SyncError) as error:  # a traceback would not help
            raise error.with_traceback(None) from None


async def serve_together(*managers: Served, leave: Callable[[int], object] = os._exit) -> None:
    """Run managers on the running loop. `leave`: ends the process with a code at a second signal."""

    def stop() -> None:
        for manager in managers:
            manager.stop()

    with stop_on_signals(stop, leave), freeze_objects([manager.synced for manager in managers]):
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
def freeze_objects(synced: Sequence[Callable[[], Awaitable[object]]]) -> Iterator[None]:
    """Freeze the current objects for the garbage collector, and again when all of `synced` have returned."""

    async def again() -> None:
        for each in synced:
            await each()
        _freeze()

    first, thresholds = gc.get_freeze_count() == 0, gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    _freeze()
    waiting = asyncio.get_running_loop().create_task(again(), name="freeze objects")
    try:
        yield
    finally:
        waiting.cancel()
        gc.set_threshold(*thresholds)
        if first:
            gc.unfreeze()


def _freeze() -> None:
    gc.collect(1)  # garbage must not be frozen; the oldest generation has little and takes long
    gc.freeze()


def new_runner() -> AbstractContextManager[asyncio.Runner]:
    """Return the asyncio runner of a program."""
    return program_runner(loop_factory())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the event loop factory: uvloop's if it is installed."""
    try:
        uvloop: Any = import_module("uvloop")  # Any: it is not a dependency
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
