from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.world import Limits, Simulation, World


def test_time_jumps_to_the_next_timer() -> None:
    simulation = Simulation(0)
    began = time.monotonic()
    simulation.run(simulation.clock.sleep(3600))
    assert simulation.clock.monotonic() == 3600
    assert time.monotonic() - began < 60


def test_the_date_starts_as_configured_and_follows_virtual_time() -> None:
    simulation = Simulation(0, start=datetime(2030, 2, 3, 4, 5, 6, tzinfo=UTC))
    simulation.run(simulation.clock.sleep(10.25))
    assert simulation.clock.now() == datetime(2030, 2, 3, 4, 5, 16, 250_000, tzinfo=UTC)


def test_time_goes_on_from_one_run_to_the_next() -> None:
    simulation = Simulation(0)
    simulation.run(simulation.clock.sleep(1))
    simulation.run(simulation.clock.sleep(2))
    assert simulation.clock.monotonic() == 3


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_the_wall_clock_may_jump_while_the_monotonic_one_goes_on(jump: float) -> None:
    simulation = Simulation(0)
    before = simulation.clock.wall()

    async def main() -> None:
        sleeper = asyncio.create_task(simulation.clock.sleep(10))
        await simulation.clock.sleep(5)
        simulation.clock.jump(jump)
        await sleeper

    simulation.run(main())
    assert simulation.clock.monotonic() == 10
    assert simulation.clock.wall() == before + 10 + jump


def test_the_wall_clock_may_change_its_pace() -> None:
    simulation = Simulation(0)
    before = simulation.clock.wall()
    simulation.run(simulation.clock.sleep(10))
    simulation.clock.drift(1.5)
    simulation.run(simulation.clock.sleep(10))
    assert simulation.clock.wall() == before + 25
    assert simulation.clock.monotonic() == 20


def test_each_machine_has_its_own_idea_of_the_time() -> None:
    simulation = Simulation(0)
    ahead = simulation.machine("ahead", offset=100)
    fast = simulation.machine("fast", rate=2)
    drifting = simulation.machine("drifting", wall_rate=0.5)
    before = simulation.clock.wall()
    simulation.run(simulation.clock.sleep(10))
    assert [world.clock.wall() - before for world in (ahead, fast, drifting)] == [110, 20, 5]
    assert [world.clock.monotonic() for world in (ahead, fast, drifting)] == [10, 20, 10]


def test_a_wait_is_measured_on_the_clock_of_the_machine() -> None:
    simulation = Simulation(0)
    fast, slow = simulation.machine("fast", rate=2), simulation.machine("slow", rate=0.5)

    async def main() -> list[tuple[str, float]]:
        done: list[tuple[str, float]] = []

        async def wait(name: str, world: World) -> None:
            with pytest.raises(TimeoutError):
                async with world.clock.timeout(10):
                    await asyncio.Event().wait()
            done.append((name, simulation.clock.monotonic()))

        async with asyncio.TaskGroup() as group:
            group.create_task(wait("slow", slow))
            group.create_task(wait("fast", fast))
            fast.clock.timer(1, lambda: done.append(("timer", simulation.clock.monotonic())))
        return done

    assert simulation.run(main()) == [("timer", 0.5), ("fast", 5), ("slow", 20)]


@settings(max_examples=50)
@given(st.floats(0.01, 100), st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=5))
def test_no_sleep_ends_early_on_its_own_clock(rate: float, sleeps: list[float]) -> None:
    simulation = Simulation(0, limits=Limits(time=1e9))
    clock = simulation.machine("skewed", rate=rate).clock

    async def main() -> None:
        for seconds in sleeps:
            target = clock.monotonic() + seconds
            await clock.sleep(seconds)
            assert target <= clock.monotonic() <= target * (1 + 1e-12)

    simulation.run(main())


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_clock_neither_stands_still_nor_runs_backwards(rate: float) -> None:
    with pytest.raises(ValueError, match="clock rate is"):
        Simulation(0).machine("broken", rate=rate)
    with pytest.raises(ValueError, match="clock rate is"):
        Simulation(0).clock.drift(rate)


def test_two_machines_of_one_name_are_an_error() -> None:
    simulation = Simulation(0)
    simulation.machine("a")
    with pytest.raises(ValueError, match="name 'a' is in use"):
        simulation.machine("a")


def test_each_machine_draws_its_own_random_numbers() -> None:
    simulation = Simulation(0)
    a, b = simulation.machine("a"), simulation.machine("b")
    assert len({a.ids.uid(), b.ids.uid(), simulation.ids.uid()}) == 3
    assert len({a.rng.random(), b.rng.random(), simulation.rng.random()}) == 3
    assert Simulation(0).machine("b").rng.random() == Simulation(0).machine("b").rng.random()
