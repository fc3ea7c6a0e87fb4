from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ostinato.world import Simulation, Trace

SAMPLE = Path(__file__).with_name("sample_program.py")
SOURCE = Path(__file__).parents[3] / "src"

spec = importlib.util.spec_from_file_location("sample_program", SAMPLE)
assert spec is not None
assert spec.loader is not None
sample_program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sample_program)
simulate = sample_program.simulate


@pytest.mark.parametrize("interleave", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_trace_twice_in_a_row(seed: int, interleave: bool) -> None:
    first, first_log = simulate(seed, interleave=interleave)
    garbage = [object() for _ in range(1000)]  # other addresses the second time
    second, second_log = simulate(seed, interleave=interleave)
    assert first.trace.first_difference(second.trace) is None
    assert first.trace.digest() == second.trace.digest()
    assert first_log == second_log
    assert len(first_log) == 50
    del garbage


@pytest.mark.parametrize("interleave", [False, True])
def test_another_seed_gives_another_trace(interleave: bool) -> None:
    first, _ = simulate(1, interleave=interleave)
    second, _ = simulate(2, interleave=interleave)
    assert first.trace.digest() != second.trace.digest()
    assert first.trace.first_difference(second.trace) is not None


def test_the_trace_is_the_same_in_another_process_with_other_hashes() -> None:
    digests = [
        subprocess.run(
            [sys.executable, str(SAMPLE), "7"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert digests[0] == digests[1] == simulate(7, interleave=True)[0].trace.digest()


async def racing(simulation: Simulation) -> str:
    order: list[str] = []

    async def append(letter: str) -> None:
        await asyncio.sleep(1)
        order.append(letter)

    async with asyncio.TaskGroup() as group:
        for letter in "abc":
            group.create_task(append(letter))
    return "".join(order)


def test_tasks_run_in_the_order_of_asyncio_unless_interleaving_is_asked_for() -> None:
    orders = set()
    for seed in range(20):
        simulation = Simulation(seed)
        orders.add(simulation.run(racing(simulation)))
    assert orders == {"abc"}


def test_interleaving_reaches_every_order_of_tasks() -> None:
    orders = set()
    for seed in range(60):
        simulation = Simulation(seed, interleave=True)
        orders.add(simulation.run(racing(simulation)))
    assert orders == {"abc", "acb", "bac", "bca", "cab", "cba"}


def test_interleaving_keeps_plain_callbacks_in_order() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        order: list[int] = []
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(10)]
        for number in range(10):
            loop.call_soon(order.append, number)
        await asyncio.gather(*tasks)
        await asyncio.sleep(1)
        return order

    for seed in range(10):
        assert Simulation(seed, interleave=True).run(main()) == list(range(10))


def test_sets_of_tasks_and_futures_are_in_order_of_their_making() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in range(50)]
        tasks = [asyncio.create_task(asyncio.sleep(1)) for _ in range(50)]
        for made in (futures, tasks):
            late_to_early = list(reversed(made))
            assert list(set(late_to_early)) == made

    Simulation(0).run(main())


def test_tasks_have_names_that_say_what_they_run() -> None:
    async def renew() -> None:
        pass

    async def main() -> list[str]:
        tasks = [asyncio.create_task(renew()), asyncio.create_task(renew(), name="mine")]
        await asyncio.wait(tasks)
        return [task.get_name() for task in tasks]

    for _ in range(2):
        assert Simulation(0).run(main()) == ["renew-2", "mine"]


def test_the_trace_contains_callbacks_times_and_notes() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        await asyncio.sleep(1.5)
        simulation.note("halfway")
        simulation.clock.timer(1, simulation.note, "timer")
        await asyncio.sleep(2)

    simulation.run(main())
    entries = [str(entry) for entry in simulation.trace.entries]
    assert entries[0] == "0.000000 main"
    assert "1.500000 halfway" in entries
    assert entries.index("2.500000 timer") == entries.index("2.500000 Simulation.note") + 1
    assert simulation.trace.count == len(entries)


def test_finalisers_run_at_the_same_step_every_time() -> None:
    class Cycle:
        def __init__(self, simulation: Simulation) -> None:
            self.simulation = simulation
            self.me = self

        def __del__(self) -> None:
            self.simulation.note("finalised")

    def trace() -> str:
        simulation = Simulation(0)

        async def main() -> None:
            for number in range(50_000):
                if number == 10_000:
                    Cycle(simulation)
                await asyncio.sleep(0)

        simulation.run(main())
        assert simulation.trace.count > 50_000
        return simulation.trace.digest()

    first = trace()
    garbage = [[object()] for _ in range(5000)]
    assert trace() == first
    del garbage


def traced(*words: str, keep: int = 10) -> Trace:
    trace = Trace(keep)
    for time, word in enumerate(words):
        trace.add(float(time), word)
    return trace


def test_the_first_difference_of_two_traces_is_found() -> None:
    assert traced("a", "b").first_difference(traced("a", "b")) is None
    assert traced("a", "b", "c").first_difference(traced("a", "x", "c")) == ((1.0, "b"), (1.0, "x"))
    assert traced("a").first_difference(traced("a", "b")) == (None, (1.0, "b"))
    assert traced("a", "b").first_difference(traced("a")) == ((1.0, "b"), None)


def test_traces_whose_beginning_is_gone_have_digests_but_are_not_compared() -> None:
    words = [str(number) for number in range(10_000)]
    long, other = traced(*words, keep=5), traced("x", *words[1:], keep=5)
    assert len(long.entries) == 5
    assert long.entries == other.entries
    assert long.digest() != other.digest()
    assert long.digest() == traced(*words, keep=100).digest()
    with pytest.raises(ValueError, match="larger keep"):
        long.first_difference(other)


def test_what_ran_last_is_named_once_and_latest_first() -> None:
    assert traced("a", "b", "c", "b", "c").last_names() == ["c", "b", "a"]
    assert traced("a", "b", "c").last_names(2) == ["c", "b"]
