"""Tasks and futures that hash by number.

The default hash is the address, so the order of a set differs between runs. asyncio keeps sets of tasks (in `TaskGroup`
and `wait`), cancels tasks in that order, and returns some sets to its callers.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


class NumberedFuture(asyncio.Future[T]):
    def __init__(self, number: int, *, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class NumberedTask(asyncio.Task[T]):
    def __init__(self, number: int, coro: Any, **options: Any) -> None:
        self._number = number  # first: asyncio hashes a task during its initialization
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number
