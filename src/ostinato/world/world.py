"""World: a clock, a stream of random numbers, a maker of ids and an executor, to be passed down together."""

from __future__ import annotations

from ostinato.world.clock import Clock, RealClock
from ostinato.world.executor import Executor
from ostinato.world.ids import Ids
from ostinato.world.rng import Rng


class World:
    """What one machine has. Pass it down; never keep one in a global variable."""

    def __init__(self, clock: Clock, rng: Rng, ids: Ids, executor: Executor) -> None:
        self.clock = clock
        self.rng = rng
        self.ids = ids
        self.executor = executor

    def with_separate_executor(self) -> World:
        """The same world, with workers of its own: blocking calls here and there do not wait for each other."""
        return World(self.clock, self.rng, self.ids, self.executor.separate())

    @staticmethod
    def real(*, workers: int | None = None) -> World:
        """This machine. Starts no thread until one is needed; `workers` bounds those of the executor."""
        from ostinato.world.threads import ThreadExecutor  # noqa: PLC0415 - a simulation never loads threads

        clock = RealClock()
        return World(clock, Rng.from_entropy(), Ids.real(), ThreadExecutor(clock, workers))
