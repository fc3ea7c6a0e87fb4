"""Tasks and futures that hash by number.

The default hash is the address, so the order of a set differs between runs. asyncio keeps sets of tasks (in `TaskGroup`
and `wait`), cancels tasks in that order, and returns some sets to its callers.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Protocol, TypeVar, cast

T = TypeVar("T")


class NumberingLoop(Protocol):
    hashes: itertools.count[int]  # of its tasks


class NumberedFuture(asyncio.Future[T]):
    """`number` is set by the loop that makes it, which is faster than an `__init__`."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class NumberedTask(asyncio.Task[T]):
    """asyncio hashes a task at the end of its initialization, and so numbers it."""

    _number = 0

    def __hash__(self) -> int:
        if not self._number:
            self._number = next(cast("NumberingLoop", self.get_loop()).hashes)
        return self._number
