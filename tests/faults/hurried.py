"""A world in which a minute passes in less than a second, for tests that need real sockets and long waits."""

from __future__ import annotations

import asyncio
import time

from ostinato.world import Clock, World


class HurriedClock(Clock):
    """This machine's clock, many times faster."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._begun = time.monotonic()

    def monotonic(self) -> float:
        return self._begun + (time.monotonic() - self._begun) * self._rate

    def wall(self) -> float:
        return time.time()

    def _loop_time_at(self, at: float) -> float:
        return asyncio.get_running_loop().time() + (at - self.monotonic()) / self._rate


def hurried(rate: float) -> World:
    world = World.real()
    world.clock = HurriedClock(rate)
    return world
