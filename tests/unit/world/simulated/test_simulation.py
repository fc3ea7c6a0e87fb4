from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator

import pytest

from ostinato.world import BackgroundError, DeadlockError, Limits, LivelockError, Simulation


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(0)


def test_a_deadlock_names_the_waiting_tasks_and_their_positions(simulation: Simulation) -> None:
    async def worker(queue: asyncio.Queue[int]) -> None:
        await queue.get()

    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()
        task = asyncio.create_task(worker(queue), name="worker of queue")
        await asyncio.sleep(5)
        await task

    with pytest.raises(DeadlockError) as caught:
        simulation.run(main())
    message = str(caught.value)
    assert "no callback is ready and no timer is set, at 5.000000 s" in message
    assert "main waits at" in message
    assert "worker of queue waits at" in message
    assert "simulated/test_simulation.py" in message
    assert "Queue.get (asyncio/queues.py" in message


def test_a_deadlock_among_many_tasks_names_only_some(simulation: Simulation) -> None:
    async def main() -> None:
        await asyncio.gather(*(asyncio.Event().wait() for _ in range(100)))

    with pytest.raises(DeadlockError, match="and 81 more"):
        simulation.run(main())


def test_a_deadlock_reports_tasks_that_failed_before(simulation: Simulation) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "lost", "exception": KeyError("the reason")})
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"failed before: KeyError\('the reason'\)"):
        simulation.run(main())


def test_waiting_forever_is_a_deadlock(simulation: Simulation) -> None:
    with pytest.raises(DeadlockError):
        simulation.run(asyncio.sleep(float("inf")))


def test_a_deadlock_inside_generators_and_plain_futures_is_described(simulation: Simulation) -> None:
    async def items() -> AsyncIterator[int]:
        await asyncio.Event().wait()
        yield 1

    async def main() -> None:
        async for _ in items():
            pass

    with pytest.raises(DeadlockError, match="main waits at test_a_deadlock_inside"):
        simulation.run(main())


def test_a_run_that_takes_too_long_is_a_livelock_that_names_what_runs() -> None:
    simulation = Simulation(0, limits=Limits(time=100))

    async def poll() -> None:
        while True:  # noqa: ASYNC110 - on purpose
            await asyncio.sleep(10)

    async def main() -> None:
        await asyncio.create_task(poll(), name="poller")

    with pytest.raises(LivelockError, match=r"(?s)not done after 100 virtual seconds, at 100\.0.*ran last: poller"):
        simulation.run(main())


def test_a_run_that_yields_without_sleeping_is_a_livelock() -> None:
    simulation = Simulation(0, limits=Limits(steps=20_000))

    async def main() -> None:
        while True:  # noqa: ASYNC110 - on purpose
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match=r"(?s)after 20000 steps.*time has not advanced for 20001 steps"):
        simulation.run(main())


def test_limits_apply_to_each_run() -> None:
    simulation = Simulation(0, limits=Limits(time=100))
    for _ in range(5):
        simulation.run(simulation.clock.sleep(99))


def test_a_run_until_a_time_ends_there_and_cancels_what_is_left(simulation: Simulation) -> None:
    log: list[str] = []

    async def forever() -> None:
        try:
            while True:
                log.append("beat")
                await asyncio.sleep(10)
        finally:
            log.append("cleaned up")

    assert simulation.run(forever(), until=25) is None
    assert simulation.clock.monotonic() == 25
    assert log == ["beat", "beat", "beat", "cleaned up"]


def test_a_run_until_a_time_gives_the_result_if_it_is_done_before(simulation: Simulation) -> None:
    assert simulation.run(asyncio.sleep(1, "done"), until=25) == "done"
    assert simulation.clock.monotonic() == 1
    simulation.run(asyncio.sleep(50))
    assert simulation.clock.monotonic() == 51


def test_tasks_left_over_at_the_end_are_cancelled_and_clean_up(simulation: Simulation) -> None:
    log: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            tasks.append(asyncio.create_task(asyncio.sleep(1000)))
            log.append("cleaned up")

    async def main() -> str:
        tasks.append(asyncio.create_task(background()))
        simulation.clock.timer(100, log.append, "never")
        await asyncio.sleep(1)
        return "done"

    assert simulation.run(main()) == "done"
    assert log == ["cleaned up"]
    assert all(task.cancelled() for task in tasks)
    simulation.run(asyncio.sleep(1000))
    assert log == ["cleaned up"]


def test_tasks_continue_with_the_next_run_without_winding_down(simulation: Simulation) -> None:
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(simulation.clock.monotonic())

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(tick())

    task = simulation.run(begin(), wind_down=False)
    simulation.run(asyncio.sleep(2.5), wind_down=False)
    assert ticks == [1, 2]
    simulation.run(asyncio.sleep(0))
    assert task.cancelled()


def test_a_task_that_does_not_let_itself_be_cancelled_is_an_error(simulation: Simulation) -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(stubborn(), name="stubborn")
        await asyncio.sleep(1)
        return task

    with pytest.raises(BackgroundError) as caught:
        simulation.run(main())
    [error] = caught.value.exceptions
    assert "stubborn waits at" in str(error)
    assert "did not end after cancellation" in error.__notes__[0]


def test_asynchronous_generators_are_closed(simulation: Simulation) -> None:
    log: list[str] = []

    async def numbers(name: str) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(1)
            log.append(name)

    kept = []

    async def main() -> None:
        dropped = numbers("dropped")
        await anext(dropped)
        del dropped
        await asyncio.sleep(2)
        assert log == ["dropped"]
        kept.append(numbers("kept"))
        await anext(kept[0])

    simulation.run(main())
    assert log == ["dropped", "kept"]


def test_the_error_of_main_is_raised_with_those_of_the_background_as_notes(simulation: Simulation) -> None:
    async def broken() -> None:
        raise ValueError("background")

    async def main() -> None:
        task = asyncio.create_task(broken())
        await asyncio.sleep(1)
        assert task.done()
        raise KeyError("main")

    with pytest.raises(KeyError, match="main") as caught:
        simulation.run(main())
    assert caught.value.__notes__ == ["unhandled error in the background: ValueError('background')"]


@pytest.mark.parametrize("keep", [True, False])
def test_the_error_of_an_unawaited_task_is_raised(simulation: Simulation, keep: bool) -> None:
    kept = []

    async def broken() -> None:
        raise ValueError("background")

    async def main() -> str:
        task = asyncio.create_task(broken(), name="broken")
        if keep:
            kept.append(task)
        del task
        await asyncio.sleep(1)
        return "done"

    with pytest.raises(BackgroundError) as caught:
        simulation.run(main())
    [error] = caught.value.exceptions
    assert repr(error) == "ValueError('background')"
    assert "broken" in error.__notes__[0]
    assert simulation.run(asyncio.sleep(1, "again")) == "again"


def test_the_error_of_a_callback_ends_the_run_immediately(simulation: Simulation) -> None:
    async def main() -> None:
        simulation.clock.timer(3, lambda: {}["missing"])
        await asyncio.sleep(100)

    with pytest.raises(BackgroundError) as caught:
        simulation.run(main())
    assert [type(error) for error in caught.value.exceptions] == [KeyError]
    assert simulation.clock.monotonic() == 3


def test_a_task_destroyed_while_it_waits_is_an_error(simulation: Simulation) -> None:
    async def lonely() -> None:
        me = asyncio.current_task()
        await asyncio.get_running_loop().create_future()
        del me

    async def main() -> None:
        asyncio.create_task(lonely(), name="lonely")  # noqa: RUF006 - the mistake that is to be found
        await asyncio.sleep(1)
        gc.collect()

    with pytest.raises(BackgroundError) as caught:
        simulation.run(main())
    [error] = caught.value.exceptions
    assert "destroyed but it is pending" in str(error)
    assert "lonely" in str(error)


def test_an_exception_handler_of_the_programs_own_gets_the_errors_instead(simulation: Simulation) -> None:
    heard: list[object] = []

    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
        assert loop.get_exception_handler() is not None
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)
        loop.set_exception_handler(None)
        return "done"

    assert simulation.run(main()) == "done"
    assert [type(error) for error in heard] == [ZeroDivisionError]


def test_a_base_exception_is_wrapped(simulation: Simulation) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_exception_handler({"exception": GeneratorExit("odd")})

    with pytest.raises(BackgroundError) as caught:
        simulation.run(main())
    assert isinstance(caught.value.exceptions[0].__cause__, GeneratorExit)


def test_main_that_is_cancelled_from_inside_raises_cancelled(simulation: Simulation) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    with pytest.raises(asyncio.CancelledError):
        simulation.run(main())


def test_an_interrupt_passes_through_and_leaves_the_process_as_it_was(simulation: Simulation) -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulation.run(main())
    assert gc.isenabled()
    assert asyncio._get_running_loop() is None


def test_garbage_collection_is_left_as_it_was_found(simulation: Simulation) -> None:
    gc.disable()
    gc.freeze()
    try:
        simulation.run(asyncio.sleep(1))
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.enable()
