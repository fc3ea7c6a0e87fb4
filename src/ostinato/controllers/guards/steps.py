"""Slow steps: measures how long a coroutine blocks the event loop between two awaits.

While it does, no other reconcile, watch or probe runs in the process. A slow step is reported after it ends; it cannot
be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from ostinato.world import Clock

T = TypeVar("T")


class Measured(Generic[T]):
    """`await Measured(coroutine, clock, limit, slow)` calls `slow(seconds)` after each step that is over the limit."""

    __slots__ = ("_clock", "_coroutine", "_limit", "_slow")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], clock: Clock, limit: float, slow: Callable[[float], object]
    ) -> None:
        self._coroutine = coroutine
        self._clock = clock
        self._limit = limit
        self._slow = slow

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, monotonic, limit = self._coroutine, self._clock.monotonic, self._limit
        sent: Any = None
        raised: BaseException | None = None
        while True:
            began = monotonic()
            try:
                awaited = coroutine.send(sent) if raised is None else coroutine.throw(raised)
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                took = monotonic() - began
                if took > limit:
                    self._slow(took)
            sent = raised = None
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001 - thrown into the coroutine
                raised = error
