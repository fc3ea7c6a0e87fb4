"""Tasks and futures that hash by number.

An object's own hash is its address: a set of them is iterated in another order in every run. asyncio keeps sets of
tasks (in `TaskGroup` and `wait`), cancels them in that order, and gives some back to its users.
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
        self._number = number  # before all else: asyncio hashes a task while it initialises it
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number
