"""Clocks for tests with real connections and processes, where virtual time cannot be used."""

from __future__ import annotations

import asyncio
import time

from ostinato.world import Clock, World


class ShiftedClock(Clock):
    """The clock of this machine with an offset."""

    def __init__(self) -> None:
        self.shift = 0.0  # seconds by which monotonic time is ahead
        self._wall_shift = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.shift

    def wall(self) -> float:
        return time.time() + self._wall_shift

    def set_wall(self, wall: float) -> None:
        self._wall_shift = wall - time.time()

    def _loop_time_at(self, at: float) -> float:
        return asyncio.get_running_loop().time() + (at - self.monotonic())


class SleeplessClock(ShiftedClock):
    """A clock whose sleeps return immediately and advance its time; timeouts of connections are not shortened."""

    async def sleep(self, seconds: float) -> None:
        self.shift += max(seconds, 0.0)
        await asyncio.sleep(0)


def world_with(clock: Clock) -> World:
    world = World.real()
    return World(clock, world.rng, world.ids, world.executor)
