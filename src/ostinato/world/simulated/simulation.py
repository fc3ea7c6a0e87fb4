"""Simulation: a world in virtual time that a seed decides.

    simulation = Simulation(seed=7)
    assert simulation.run(program(simulation)) == "done"

The program, however many servers, managers and clients it starts, runs in one thread; an hour of it takes as long as
its work does. The same seed gives the same run, step by step, as its `trace` shows; another seed gives another run.

A simulation is a world itself; `machine(name)` gives further ones in it, each with its own clock and random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar, overload

from ostinato.world.ids import Ids
from ostinato.world.rng import Rng
from ostinato.world.simulated.agenda import Agenda
from ostinato.world.simulated.clock import SimulatedClock
from ostinato.world.simulated.errors import BackgroundError
from ostinato.world.simulated.executor import SimulatedExecutor
from ostinato.world.simulated.loop import Limits, SimulatedLoop
from ostinato.world.simulated.trace import Trace
from ostinato.world.world import World

T = TypeVar("T")

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Simulation(World):
    clock: SimulatedClock

    def __init__(
        self,
        seed: int | str | bytes,
        *,
        interleave: bool = False,
        start: datetime = _EPOCH,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        workers: int = 8,
        latency: Callable[[Rng], float] | None = None,
        keep: int = 10_000,
    ) -> None:
        """
        - `interleave` lets the seed choose which of the ready tasks runs next. Defaults to the order of asyncio.
        - `start` is the date at the beginning.
        - `limits` end a run that never would by itself.
        - `workers` and `latency`: each machine's executor, and how long a call in it takes. Defaults to no time.
        - `keep` is how many of the latest entries the trace holds.
        """
        rng = Rng(seed)
        self.seed = seed
        self.trace = Trace(keep)
        agenda = Agenda(rng.fork("interleave") if interleave else None)
        self._loop = SimulatedLoop(agenda, self.trace, limits)  # type: ignore[abstract]  # it refuses what is missing
        self._workers = workers
        self._latency = latency
        self._machines: dict[str, World] = {}
        self._executors: list[SimulatedExecutor] = []
        clock = SimulatedClock(self._loop, start.timestamp())
        super().__init__(clock, rng.fork("rng"), Ids.simulated(rng.fork("ids")), self._executor(rng))
        self._loop.blocking = self.executor.run

    def machine(self, name: str, *, offset: float = 0.0, rate: float = 1.0, wall_rate: float | None = None) -> World:
        """Another machine in this simulation.

        Its wall clock is `offset` seconds ahead; its clocks run at `rate`, the wall clock at `wall_rate` if given.
        """
        if name in self._machines:
            raise ValueError(f"there is a machine {name!r} already: two would draw the same random numbers")
        rng = Rng(self.seed).fork("machine").fork(name)
        clock = SimulatedClock(self._loop, self.clock.wall() + offset, rate=rate, wall_rate=wall_rate)
        world = World(clock, rng.fork("rng"), Ids.simulated(rng.fork("ids")), self._executor(rng))
        self._machines[name] = world
        return world

    @overload
    def run(self, main: Coroutine[Any, Any, T]) -> T: ...
    @overload
    def run(self, main: Coroutine[Any, Any, T], *, until: float | None) -> T | None: ...
    def run(self, main: Coroutine[Any, Any, T], *, until: float | None = None) -> T | None:
        """Run `main` to its end, or for `until` virtual seconds: its result, or None if it was not done by then.

        Tasks that are left over are cancelled and finish. Errors that nothing handled are raised as `BackgroundError`,
        or noted on the error of `main`. May be called again: time goes on from where it stood.
        """
        loop = self._loop
        try:
            loop.check_idle()
        except RuntimeError:
            main.close()
            raise
        loop.take_failures()  # what came to light after the end of an earlier run
        task: Any = loop.create_task(main, name="main")
        try:
            done = loop.run_task(task, until)
            error = task.exception() if done and not task.cancelled() else None
        finally:
            loop.wind_down()
            for executor in self._executors:
                executor.abandon()
        failures = loop.take_failures()
        if error is not None:
            for failure in failures:
                error.add_note(f"and in the background: {failure!r}")
            raise error
        if failures:
            raise BackgroundError("errors that nothing handled", failures)
        result: T | None = task.result() if done else None
        return result

    def note(self, what: str) -> None:
        """Put a remark into the trace: what matters to a test, among what ran."""
        self.trace.add(self._loop.time(), what)

    def _executor(self, rng: Rng) -> SimulatedExecutor:
        source = rng.fork("executor")
        latency = self._latency
        executor = SimulatedExecutor(self._loop, self._workers, lambda: latency(source) if latency else 0.0)
        self._executors.append(executor)
        return executor
