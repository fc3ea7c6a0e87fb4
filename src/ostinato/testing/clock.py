"""Virtual time: the clock of a test that runs in a simulation."""

from __future__ import annotations

from datetime import datetime

from ostinato.testing.errors import NotOnThisCluster
from ostinato.world import Simulation, World

_INSTANT = 1e-6  # seconds; in virtual time, everything that is ready now runs before


class VirtualClock:
    """Time of a test, its cluster and its controllers.

    It stands still while anything can run, and then moves to the next timer. A wait takes no real time.
    """

    def __init__(self, world: World) -> None:
        if not isinstance(world, Simulation):
            raise NotOnThisCluster("virtual time needs Cluster(world=Simulation(seed)), run by Simulation.run()")
        self._clock = world.clock

    def now(self) -> datetime:
        """Return the date and time in UTC."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Return the seconds since the start of the test."""
        return self._clock.monotonic()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass; return when what is due by then has run, as far as it needs no more time."""
        if seconds < 0:
            raise ValueError(f"advance() seconds is {seconds}; time does not go back")
        await self._clock.sleep(seconds)
        await self._clock.sleep(_INSTANT)

    async def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as when an administrator sets it; timers are not affected."""
        self._clock.jump(seconds)
        await self._clock.sleep(_INSTANT)
