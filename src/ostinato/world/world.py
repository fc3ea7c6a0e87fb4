"""World: clock, random numbers, ids and executor, passed down together."""

from __future__ import annotations

from ostinato.world.clock import Clock, RealClock
from ostinato.world.executor import Executor
from ostinato.world.ids import Ids
from ostinato.world.rng import Rng


class World:
    """Environment of one machine. Pass it down; do not keep one in a global variable."""

    def __init__(self, clock: Clock, rng: Rng, ids: Ids, executor: Executor) -> None:
        self.clock = clock
        self.rng = rng
        self.ids = ids
        self.executor = executor

    def with_separate_executor(self) -> World:
        """Return this world with an executor of its own: its blocking calls do not wait for those of the other."""
        return World(self.clock, self.rng, self.ids, self.executor.separate())

    @staticmethod
    def real(*, workers: int | None = None) -> World:
        """Return the world of this machine. `workers`: maximum of the executor, whose threads start on demand."""
        from ostinato.world.threads import ThreadExecutor  # noqa: PLC0415 - not loaded in simulations

        clock = RealClock()
        return World(clock, Rng.from_entropy(), Ids.real(), ThreadExecutor(clock, workers))
