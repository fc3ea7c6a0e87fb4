from __future__ import annotations

import asyncio
import threading

import pytest

from ostinato.world import DeadlockError, Simulation


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(0)


def test_blocking_functions_go_to_the_executor_of_the_world() -> None:
    simulation = Simulation(0, latency=lambda _: 2.0)

    async def main() -> list[object]:
        loop = asyncio.get_running_loop()
        return [await asyncio.to_thread(divmod, 7, 2), await loop.run_in_executor(None, threading.get_ident)]

    assert simulation.run(main()) == [(3, 1), threading.get_ident()]
    assert simulation.clock.monotonic() == 4


def test_workers_of_the_simulated_executor_are_bounded_in_virtual_time() -> None:
    simulation = Simulation(0, workers=2, latency=lambda _: 1.0)

    async def main() -> list[float]:
        async def call() -> float:
            return await simulation.executor.run(simulation.clock.monotonic)

        return await asyncio.gather(*(call() for _ in range(5)))

    assert simulation.run(main()) == [1, 1, 2, 2, 3]


def test_a_call_that_has_begun_runs_to_its_end_though_its_caller_is_gone() -> None:
    simulation = Simulation(0, workers=1, latency=lambda _: 1.0)
    ran: list[str] = []

    def fail() -> None:
        ran.append("third")
        raise KeyError("nobody listens")

    async def main() -> None:
        first = asyncio.create_task(simulation.executor.run(ran.append, "first"))
        second = asyncio.create_task(simulation.executor.run(ran.append, "second"))
        await asyncio.sleep(0.5)
        first.cancel()
        second.cancel()
        third = asyncio.create_task(simulation.executor.run(fail))
        await asyncio.sleep(1)
        third.cancel()
        await asyncio.sleep(5)

    simulation.run(main())
    assert ran == ["first", "third"]


def test_workers_that_a_run_leaves_behind_are_free_in_the_next() -> None:
    simulation = Simulation(0, workers=1, latency=lambda _: 1.0)
    simulation.run(simulation.executor.run(len, "a"), until=0.5)
    assert simulation.run(simulation.executor.run(len, "ab")) == 2


def test_a_worker_that_waits_for_the_loop_is_cancelled_when_the_run_ends(simulation: Simulation) -> None:
    async def main() -> str:
        def work() -> None:
            simulation.executor.block_on(asyncio.Event().wait())

        call = asyncio.create_task(simulation.executor.run(work))
        await asyncio.sleep(1)
        assert not call.done()
        return "done"

    assert simulation.run(main()) == "done"


def test_closing_the_executor_drops_the_calls_that_wait() -> None:
    simulation = Simulation(0, workers=1, latency=lambda _: 1.0)
    ran: list[str] = []

    async def main() -> list[object]:
        calls = [asyncio.create_task(simulation.executor.run(ran.append, word)) for word in ("first", "second")]
        await asyncio.sleep(0.5)
        simulation.executor.close()
        await asyncio.wait(calls)
        return [call.cancelled() for call in calls]

    assert simulation.run(main()) == [False, True]
    assert ran == ["first"]


def test_workers_that_wait_for_the_loop_overlap(simulation: Simulation) -> None:
    async def main() -> list[str]:
        log: list[str] = []

        def work(name: str, seconds: float) -> None:
            log.append(f"{name} begins")
            simulation.executor.block_on(simulation.clock.sleep(seconds))
            log.append(f"{name} ends")

        await asyncio.gather(simulation.executor.run(work, "a", 2), simulation.executor.run(work, "b", 1))
        return log

    assert simulation.run(main()) == ["a begins", "b begins", "b ends", "a ends"]
    assert simulation.clock.monotonic() == 2


def test_a_worker_that_waits_for_an_earlier_one_is_a_deadlock(simulation: Simulation) -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        def earlier() -> None:
            simulation.executor.block_on(simulation.clock.sleep(1))
            simulation.executor.block_on(set_event())

        async def set_event() -> None:
            go_on.set()

        def later() -> None:
            simulation.executor.block_on(go_on.wait())

        await asyncio.gather(simulation.executor.run(earlier), simulation.executor.run(later))

    with pytest.raises(DeadlockError):
        simulation.run(main())


def test_too_many_workers_that_wait_for_the_loop_are_an_error_and_not_a_crash() -> None:
    simulation = Simulation(0, workers=1000)

    def work() -> None:
        simulation.executor.block_on(simulation.clock.sleep(1))

    async def main() -> int:
        calls = [simulation.executor.run(work) for _ in range(90)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all("use fewer workers" in str(outcome) for outcome in outcomes if outcome is not None)
        return outcomes.count(None)

    assert simulation.run(main()) == 80
