"""Batches: many requests of a kind, a few at first.

What fails for one usually fails for all: a quota is used up, a template is refused. So one is tried, then two at once,
then four, and so on; when any of a batch fails the next does not begin, and a hundred attempts that cannot succeed are
not made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def slow_start(items: Sequence[T], work: Callable[[T], Awaitable[object]], *, max_batch: int = 500) -> None:
    """Do the work for each piece, in batches of 1, 2, 4, … up to `most`.

    If some of a batch fail, the first error is raised when the whole batch is done, and the rest is not tried.
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
