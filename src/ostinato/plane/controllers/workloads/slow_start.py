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


async def slow_start(pieces: Sequence[T], work: Callable[[T], Awaitable[object]], *, most: int = 500) -> None:
    """Do the work for each piece, in batches of 1, 2, 4, … up to `most`.

    If some of a batch fail, the first error is raised when the whole batch is done, and the rest is not tried.
    """
    begun, size = 0, 1
    while begun < len(pieces):
        batch = pieces[begun : begun + size]
        answers = await asyncio.gather(*(work(piece) for piece in batch), return_exceptions=True)
        begun += len(batch)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        size = min(2 * size, most)
