"""Clock: time, sleeping, timers and timeouts.

- `monotonic()` never goes back; only differences are meaningful. All waits and deadlines are on it.
- `wall()` and `now()` are the date and time, for timestamps in objects. They may jump; nothing waits on them.
- Waits are on the running event loop, in any thread.
- `timeout` and `deadline` cancel their block and raise `TimeoutError` at its end.
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
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback. No effect if it has run or is cancelled already."""

    def cancelled(self) -> bool: ...


class Clock(ABC):
    """Clock of one machine."""

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds since an arbitrary point; compare only with the same clock."""

    @abstractmethod
    def wall(self) -> float:
        """Return seconds since 1970-01-01T00:00:00Z on this machine."""

    @abstractmethod
    def _loop_time_at(self, at: float) -> float:
        """Return the `time()` of the running loop at which `monotonic()` is `at`."""

    def now(self) -> datetime:
        """Return the date and time in UTC on this machine."""
        return datetime.fromtimestamp(self.wall(), UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; zero or less yields to other tasks once."""
        if math.isnan(seconds):
            raise ValueError("sleep() seconds is NaN")
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
        """Call `callback(*args)` on the running loop after `delay` seconds."""
        return asyncio.get_running_loop().call_at(self._loop_time_at(self.monotonic() + delay), callback, *args)

    def timeout(self, seconds: float | None) -> Timeout:
        """Limit a block to `seconds` from now: `async with clock.timeout(5):`. None is no limit."""
        return Timeout(self, None if seconds is None else self.monotonic() + seconds)

    def deadline(self, at: float | None) -> Timeout:
        """Limit a block until `monotonic()` is `at`: `async with clock.deadline(at):`. None is no limit."""
        return Timeout(self, at)


class Timeout:
    """Asynchronous context manager that raises `TimeoutError` at a time on a clock."""

    __slots__ = ("_at", "_clock", "_inner")

    def __init__(self, clock: Clock, at: float | None) -> None:
        self._clock = clock
        self._at = at
        self._inner: asyncio.Timeout | None = None

    async def __aenter__(self) -> Self:
        if self._inner is not None:
            raise RuntimeError("a timeout can be entered only once; create another")
        self._inner = asyncio.timeout_at(self._loop_time())
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._inner is not None, "exited before it was entered"
        await self._inner.__aexit__(kind, error, traceback)

    def when(self) -> float | None:
        """Return the time on the clock's `monotonic()` at which the block is cancelled."""
        return self._at

    def reschedule(self, at: float | None) -> None:
        """Change the time while the block runs."""
        if self._inner is None:
            raise RuntimeError("reschedule() called before the timeout was entered")
        self._at = at
        self._inner.reschedule(self._loop_time())

    def expired(self) -> bool:
        """Whether the block was cancelled by this timeout."""
        return self._inner is not None and self._inner.expired()

    def _loop_time(self) -> float | None:
        return None if self._at is None else self._clock._loop_time_at(self._at)


class RealClock(Clock):
    """Clocks of the operating system."""

    monotonic = staticmethod(time.monotonic)  # not wrapped in methods: hot paths
    wall = staticmethod(time.time)

    def _loop_time_at(self, at: float) -> float:
        # The time of a loop may have another origin than time.monotonic(), or be cached during an iteration.
        return asyncio.get_running_loop().time() + (at - time.monotonic())


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
