"""A clock in virtual time, as wrong as a test wants it to be.

Each simulated machine has one. Its monotonic clock may run fast or slow; its wall clock may moreover be off, jump and
change its pace. A wait takes as long as this machine's own monotonic clock says: one second on a clock of rate 2 is
half a second of the simulation.
"""

from __future__ import annotations

import asyncio
import math

from ostinato.world.clock import Clock


class SimulatedClock(Clock):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, wall: float, *, rate: float = 1.0, wall_rate: float | None = None
    ) -> None:
        """`wall` is the date now. The wall clock has the pace of the monotonic one unless it has a rate of its own."""
        self._loop = loop
        self._rate = _checked(rate)
        self._wall_rate = rate if wall_rate is None else _checked(wall_rate)
        self._wall = wall  # what the wall clock showed at _wall_set, in the loop's time
        self._wall_set = loop.time()

    def monotonic(self) -> float:
        return self._loop.time() * self._rate

    def wall(self) -> float:
        return self._wall + (self._loop.time() - self._wall_set) * self._wall_rate

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards, or back."""
        self._wall += seconds

    def drift(self, rate: float) -> None:
        """Let the wall clock run at another pace from now on."""
        self._wall, self._wall_set, self._wall_rate = self.wall(), self._loop.time(), _checked(rate)

    def _loop_time_at(self, at: float) -> float:
        when = at / self._rate
        while when * self._rate < at:  # rounding must not wake anybody early
            when = math.nextafter(when, math.inf)
        return when


def _checked(rate: float) -> float:
    if not 0 < rate < math.inf:
        raise ValueError(f"a clock cannot run at the rate {rate}")
    return rate
