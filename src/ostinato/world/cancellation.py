"""Insisting: for tasks that were asked to end, whose time to do so is over."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from ostinato.world.clock import Clock

_TIMES: Final = 3  # that what will not end is told to
_STEPS: Final = 5  # of the loop in which it may do so


async def cancel_repeatedly(tasks: Collection[asyncio.Task[Any]], clock: Clock) -> list[asyncio.Task[Any]]:
    """Cancel these tasks, more than once. Returns soon, with those that have not ended all the same."""
    left = [task for task in tasks if not task.done()]
    for _ in range(_TIMES):
        for task in left:
            task.cancel()
        for _ in range(_STEPS):
            if left:
                await clock.sleep(0)
                left = [task for task in left if not task.done()]
    return left
