"""Simulation: a deterministic world in virtual time.

    simulation = Simulation(seed=7)
    assert simulation.run(program(simulation)) == "done"

The program, with all its servers, managers and clients, runs in one thread; waits take no real time. A seed gives the
same run, step by step, as recorded in its `trace`.

A simulation is a world itself; `machine(name)` returns further ones, each with its own clock and random numbers.
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
        - `interleave`: draw the next task at random from those that are ready. Defaults to False: asyncio's order.
        - `start`: the initial date. Defaults to 2026-01-01.
        - `limits`: of a run, in virtual time and steps.
        - `workers`: of each machine's executor. Defaults to 8.
        - `latency`: duration of a call in an executor. Defaults to zero.
        - `keep`: number of entries that the trace keeps. Defaults to 10,000.
        """
        rng = Rng(seed)
        self.seed = seed
        self.trace = Trace(keep)
        agenda = Agenda(rng.fork("interleave") if interleave else None)
        self._loop = SimulatedLoop(agenda, self.trace, limits)  # type: ignore[abstract]  # the others are defined dynamically
        self._workers = workers
        self._latency = latency
        self._machines: dict[str, World] = {}
        self._executors: list[SimulatedExecutor] = []
        clock = SimulatedClock(self._loop, start.timestamp())
        super().__init__(clock, rng.fork("rng"), Ids.simulated(rng.fork("ids")), self._executor(rng))
        self._loop.blocking = self.executor.run

    def machine(self, name: str, *, offset: float = 0.0, rate: float = 1.0, wall_rate: float | None = None) -> World:
        """Return the world of another machine in this simulation.

        - `offset`: seconds that its wall clock is ahead.
        - `rate`: of its clocks. Defaults to 1.
        - `wall_rate`: of its wall clock. Defaults to `rate`.
        """
        if name in self._machines:
            raise ValueError(f"machine() name {name!r} is in use; choose another, as random numbers depend on it")
        rng = Rng(self.seed).fork("machine").fork(name)
        clock = SimulatedClock(self._loop, self.clock.wall() + offset, rate=rate, wall_rate=wall_rate)
        world = World(clock, rng.fork("rng"), Ids.simulated(rng.fork("ids")), self._executor(rng))
        self._machines[name] = world
        return world

    @overload
    def run(self, main: Coroutine[Any, Any, T], *, wind_down: bool = True) -> T: ...
    @overload
    def run(self, main: Coroutine[Any, Any, T], *, until: float | None, wind_down: bool = True) -> T | None: ...
    def run(self, main: Coroutine[Any, Any, T], *, until: float | None = None, wind_down: bool = True) -> T | None:
        """Run `main` to its end, or for `until` virtual seconds, and return its result, or None if it is not done.

        - Remaining tasks are cancelled and awaited; with `wind_down=False` they continue with the next run.
        - Unhandled errors are raised as `BackgroundError`, or added as notes to the error of `main`.
        - Can be called again: time continues.
        """
        loop = self._loop
        try:
            loop.check_idle()
        except RuntimeError:
            main.close()
            raise
        loop.take_failures()  # of an earlier run
        task: Any = loop.create_task(main, name="main")
        try:
            done = loop.run_task(task, until)
            error = task.exception() if done and not task.cancelled() else None
        finally:
            if wind_down:
                loop.wind_down()
                for executor in self._executors:
                    executor.abandon()
        failures = loop.take_failures()
        if error is not None:
            for failure in failures:
                error.add_note(f"unhandled error in the background: {failure!r}")
            raise error
        if failures:
            raise BackgroundError("unhandled errors", failures)
        result: T | None = task.result() if done else None
        return result

    def failures(self) -> list[Exception]:
        """Return the unhandled errors of this run up to now; those of tasks that nothing can await any more, too."""
        self._loop.collect_failures()
        return list(self._loop.failures)

    def abandon(self) -> None:
        """Leave the remaining tasks as they are, for a process that is about to end."""
        self._loop.forget_tasks()

    def note(self, what: str) -> None:
        """Add a note to the trace."""
        self.trace.add(self._loop.time(), what)

    def _executor(self, rng: Rng) -> SimulatedExecutor:
        source = rng.fork("executor")
        latency = self._latency
        executor = SimulatedExecutor(self._loop, self._workers, lambda: latency(source) if latency else 0.0)
        self._executors.append(executor)
        return executor
