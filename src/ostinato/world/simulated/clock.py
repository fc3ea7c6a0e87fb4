"""Clock in virtual time, with configurable errors.

Each simulated machine has one. Its monotonic clock may run fast or slow; its wall clock may also have an offset, jump
and drift. Waits are on the machine's monotonic clock: one second on a clock of rate 2 is half a second of the
simulation.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TypeVarTuple

from ostinato.world.clock import Clock, Timer

Ts = TypeVarTuple("Ts")


class SimulatedClock(Clock):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, wall: float, *, rate: float = 1.0, wall_rate: float | None = None
    ) -> None:
        """`wall`: the current wall time. `wall_rate`: rate of the wall clock. Defaults to `rate`."""
        self._loop = loop
        self._rate = _checked(rate)
        self._wall_rate = rate if wall_rate is None else _checked(wall_rate)
        self._wall = wall  # the wall time at the loop's time _wall_set
        self._wall_set = loop.time()

    def monotonic(self) -> float:
        return self._loop.time() * self._rate

    def wall(self) -> float:
        return self._wall + (self._loop.time() - self._wall_set) * self._wall_rate

    def timer(self, delay: float, callback: Callable[[*Ts], object], *args: *Ts) -> Timer:
        at = self._loop.time() * self._rate + delay
        return self._loop.call_at(at if self._rate == 1.0 else self._loop_time_at(at), callback, *args)

    def jump(self, seconds: float) -> None:
        """Move the wall clock forward, or back."""
        self._wall += seconds

    def drift(self, rate: float) -> None:
        """Change the rate of the wall clock from now on."""
        self._wall, self._wall_set, self._wall_rate = self.wall(), self._loop.time(), _checked(rate)

    def _loop_time_at(self, at: float) -> float:
        when = at / self._rate
        while when * self._rate < at:  # rounding must not end a wait early
            when = math.nextafter(when, math.inf)
        return when


def _checked(rate: float) -> float:
    if not 0 < rate < math.inf:
        raise ValueError(f"clock rate is {rate}; it must be positive and finite")
    return rate
