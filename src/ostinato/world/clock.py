"""Clocks: what time it is, and waiting for a time to come.

- `monotonic()` measures: it never goes back, and its zero means nothing. Every wait and every deadline is on it.
- `wall()` and `now()` are the date: they are written into objects, and may jump. Nothing waits on them.
- Waiting happens on the running event loop, whichever thread that is in.
- `timeout` and `deadline` raise `TimeoutError` where the block is left, and cancel what runs in it.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self, TypeVarTuple

Ts = TypeVarTuple("Ts")


class Timer(Protocol):
    """A callback that is to run later."""

    def cancel(self) -> None:
        """Do not run it. Harmless when it has run or is cancelled already."""

    def cancelled(self) -> bool: ...


class Clock(ABC):
    """Time as one machine sees it."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds since some moment; only differences mean something, and only on the same clock."""

    @abstractmethod
    def wall(self) -> float:
        """Seconds since 1970-01-01T00:00:00Z, as this machine believes."""

    @abstractmethod
    def _loop_time_at(self, at: float) -> float:
        """What `time()` of the running loop shows when `monotonic()` shows `at`."""

    def now(self) -> datetime:
        """The date and time in UTC, as this machine believes."""
        return datetime.fromtimestamp(self.wall(), UTC)

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed; zero or less lets others run once."""
        if math.isnan(seconds):
            raise ValueError("cannot sleep for NaN seconds")
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        timer = self.timer(seconds, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()

    def timer(self, delay: float, callback: Callable[[*Ts], object], *args: *Ts) -> Timer:
        """Call `callback(*args)` on the running loop when `delay` seconds have passed."""
        return asyncio.get_running_loop().call_at(self._loop_time_at(self.monotonic() + delay), callback, *args)

    def timeout(self, seconds: float | None) -> Timeout:
        """`async with clock.timeout(5):` the block has five seconds from now; None is no limit."""
        return Timeout(self, None if seconds is None else self.monotonic() + seconds)

    def deadline(self, at: float | None) -> Timeout:
        """`async with clock.deadline(at):` the block has until `monotonic()` shows `at`; None is no limit."""
        return Timeout(self, at)


class Timeout:
    """An asynchronous context that ends, with `TimeoutError`, when its clock shows a given time."""

    __slots__ = ("_at", "_clock", "_inner")

    def __init__(self, clock: Clock, at: float | None) -> None:
        self._clock = clock
        self._at = at
        self._inner: asyncio.Timeout | None = None

    async def __aenter__(self) -> Self:
        if self._inner is not None:
            raise RuntimeError("a timeout can be entered only once")
        self._inner = asyncio.timeout_at(self._loop_time())
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._inner is not None, "left before it was entered"
        await self._inner.__aexit__(kind, error, traceback)

    def when(self) -> float | None:
        """The time on the clock's `monotonic()` at which the block ends."""
        return self._at

    def reschedule(self, at: float | None) -> None:
        """Move the end, while the block runs."""
        if self._inner is None:
            raise RuntimeError("a timeout must be entered before it can be moved")
        self._at = at
        self._inner.reschedule(self._loop_time())

    def expired(self) -> bool:
        """Whether the time came before the block was done."""
        return self._inner is not None and self._inner.expired()

    def _loop_time(self) -> float | None:
        return None if self._at is None else self._clock._loop_time_at(self._at)


class RealClock(Clock):
    """The clocks of this machine."""

    monotonic = staticmethod(time.monotonic)  # as they are, without a call in between: these are asked all the time
    wall = staticmethod(time.time)

    def _loop_time_at(self, at: float) -> float:
        # A loop may count from another zero than time.monotonic(), or keep its time for the length of an iteration.
        return asyncio.get_running_loop().time() + (at - time.monotonic())


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
