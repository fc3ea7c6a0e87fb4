"""Tasks of a runnable. Cancelled once, they finish their work; cancelled again, they stop immediately."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

from ostinato.controllers.runnable import Dependencies

Work = Callable[[Dependencies], Awaitable[None]]


async def run_together(work: Iterable[Work], dependencies: Dependencies) -> None:
    """Run until cancelled, or until one fails; then stop the others, and raise its error."""
    create = asyncio.get_running_loop().create_task
    tasks = [create(_awaited(each(dependencies))) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await stop(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def stop(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await wait_for_end(tasks)


async def wait_for_end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Wait for tasks; if the caller is cancelled meanwhile, cancel them."""
    if not tasks:
        return
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def _awaited(awaitable: Awaitable[None]) -> None:
    await awaitable
