"""World: the only access to time, randomness, ids and threads.

No other package reads a clock, draws a random number, generates an id, sleeps or starts a thread. Components take a
`World`, or the part of it that they use:

- `Clock`: monotonic and wall time, sleeping, timers, timeouts.
- `Rng`: random numbers, in streams that fork by name.
- `Ids`: uids, name suffixes, secret tokens.
- `Executor`: blocking functions in a bounded thread pool, and threads with their own event loop.

`World.real()` is this machine. `Simulation(seed)` is a world in virtual time, in which a whole system of several
processes runs in one thread, deterministically for a seed.

Names are imported on first use, so that importing this package is cheap, and `Rng` and `Ids` do not load asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.lazy import lazy_names

if TYPE_CHECKING:
    from ostinato.world.clock import Clock, Timeout, Timer
    from ostinato.world.executor import Executor, Load, Thread
    from ostinato.world.ids import Ids
    from ostinato.world.rng import Rng
    from ostinato.world.simulated.clock import SimulatedClock
    from ostinato.world.simulated.errors import BackgroundError, DeadlockError, LivelockError, SimulationError
    from ostinato.world.simulated.loop import Limits
    from ostinato.world.simulated.simulation import Simulation
    from ostinato.world.simulated.trace import Trace
    from ostinato.world.world import World

__all__ = [
    "BackgroundError",
    "Clock",
    "DeadlockError",
    "Executor",
    "Ids",
    "Limits",
    "LivelockError",
    "Load",
    "Rng",
    "SimulatedClock",
    "Simulation",
    "SimulationError",
    "Thread",
    "Timeout",
    "Timer",
    "Trace",
    "World",
]

_HOME = {
    "BackgroundError": "simulated.errors",
    "Clock": "clock",
    "DeadlockError": "simulated.errors",
    "Executor": "executor",
    "Ids": "ids",
    "Limits": "simulated.loop",
    "LivelockError": "simulated.errors",
    "Load": "executor",
    "Rng": "rng",
    "SimulatedClock": "simulated.clock",
    "Simulation": "simulated.simulation",
    "SimulationError": "simulated.errors",
    "Thread": "executor",
    "Timeout": "clock",
    "Timer": "clock",
    "Trace": "simulated.trace",
    "World": "world",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
