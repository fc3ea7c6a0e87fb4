"""Parallel work on many pieces, by a bounded number of workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def parallelize(pieces: Iterable[T], work: Callable[[T], Awaitable[object]], *, workers: int) -> None:
    """Call `work` with each piece, at most `workers` at a time; return when all are done.

    Pieces are begun in order. When the caller is cancelled, or one piece fails, no further piece is begun and those
    under way are cancelled; failures are raised together, as an exception group.
    """
    if workers < 1:
        raise ValueError(f"{workers} workers cannot work")
    remaining = iter(pieces)
    async with asyncio.TaskGroup() as group:
        for _, piece in zip(range(workers), remaining, strict=False):
            group.create_task(_work_on(piece, remaining, work))


async def _work_on(first: T, remaining: Iterator[T], work: Callable[[T], Awaitable[object]]) -> None:
    await work(first)
    for piece in remaining:
        await work(piece)
