"""Repeated cancellation of tasks that did not end within their grace period."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from ostinato.world.clock import Clock

_ATTEMPTS: Final = 3  # cancellations per task
_STEPS: Final = 5  # of the event loop between two attempts


async def cancel_repeatedly(tasks: Collection[asyncio.Task[Any]], clock: Clock) -> list[asyncio.Task[Any]]:
    """Cancel tasks repeatedly, and return those that have not ended after a few steps of the loop."""
    left = [task for task in tasks if not task.done()]
    for _ in range(_ATTEMPTS):
        for task in left:
            task.cancel()
        for _ in range(_STEPS):
            if left:
                await clock.sleep(0)
                left = [task for task in left if not task.done()]
    return left
