"""Supervision of background work: it never ends silently."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ostinato.world.clock import Clock

_logger = logging.getLogger(__name__)

_FIRST_DELAY = 1.0  # seconds before the first restart; doubled with each,
_LONGEST_DELAY = 60.0  # up to this, and reset by a run that lasted longer


async def supervised(name: str, work: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Run work until it returns or is cancelled. If it fails, log the error and run it again after a delay.

    For work of a task that nobody awaits. `name`: the work in logs.
    """
    delay = _FIRST_DELAY
    while True:
        began = clock.monotonic()
        try:
            await work()
        except Exception:
            if clock.monotonic() - began > _LONGEST_DELAY:
                delay = _FIRST_DELAY
            _logger.exception("background task failed, restarting task=%s retry_seconds=%g", name, delay)
        else:
            return
        await clock.sleep(delay)
        delay = min(2 * delay, _LONGEST_DELAY)
