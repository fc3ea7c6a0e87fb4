"""Slow start: batches of 1, 2, 4, … calls.

An error such as an exceeded quota usually affects all calls. The next batch starts only if the previous one succeeded,
so that calls that cannot succeed are not made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def slow_start(items: Sequence[T], work: Callable[[T], Awaitable[object]], *, max_batch: int = 500) -> None:
    """Call `work` for each item, in batches that double in size up to `max_batch`.

    If calls of a batch fail, the first error is raised after the whole batch has finished, and the remaining items are
    skipped.
    """
    started, size = 0, 1
    while started < len(items):
        batch = items[started : started + size]
        results = await asyncio.gather(*(work(item) for item in batch), return_exceptions=True)
        started += len(batch)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        size = min(2 * size, max_batch)
