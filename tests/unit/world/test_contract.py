"""What both worlds promise: the same tests on the real one, with waits of a few milliseconds, and on a simulation."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, timedelta
from typing import Any

import pytest

from ostinato.world import Simulation, World

Run = Callable[[Coroutine[Any, Any, Any]], Any]
SHORT = 0.002
LONG = 30.0  # never waited for

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture(params=["real", "simulated"])
def setting(request: pytest.FixtureRequest) -> Any:
    if request.param == "real":
        world = World.real(workers=2)
        yield world, asyncio.run
        world.executor.close()
    else:
        simulation = Simulation(1, workers=2, latency=lambda rng: rng.uniform(0, SHORT))
        yield simulation, simulation.run


@pytest.fixture
def world(setting: tuple[World, Run]) -> World:
    return setting[0]


@pytest.fixture
def run(setting: tuple[World, Run]) -> Run:
    return setting[1]


def test_a_sleep_takes_the_time_asked_for(world: World, run: Run) -> None:
    async def main() -> float:
        before = world.clock.monotonic()
        await world.clock.sleep(SHORT)
        return world.clock.monotonic() - before

    assert run(main()) >= SHORT * 0.999


@pytest.mark.parametrize("seconds", [0, -1, -0.0])
def test_a_sleep_of_no_time_lets_others_run(world: World, run: Run, seconds: float) -> None:
    async def main() -> list[str]:
        order = []
        other = asyncio.create_task(world.clock.sleep(0))
        other.add_done_callback(lambda _: order.append("other"))
        while not order:
            await world.clock.sleep(seconds)
        return order

    assert run(main()) == ["other"]


def test_a_sleep_of_nan_is_an_error(world: World, run: Run) -> None:
    with pytest.raises(ValueError, match="NaN"):
        run(world.clock.sleep(float("nan")))


def test_a_sleep_can_be_cancelled(world: World, run: Run) -> None:
    async def main() -> None:
        sleeper = asyncio.create_task(world.clock.sleep(LONG))
        await world.clock.sleep(0)
        sleeper.cancel()
        await sleeper

    with pytest.raises(asyncio.CancelledError):
        run(main())


def test_now_is_the_wall_clock_in_utc(world: World) -> None:
    now = world.clock.now()
    assert now.tzinfo is UTC
    assert abs(now.timestamp() - world.clock.wall()) < 5


def test_the_wall_clock_goes_on_while_one_sleeps(world: World, run: Run) -> None:
    async def main() -> timedelta:
        before = world.clock.now()
        await world.clock.sleep(SHORT)
        return world.clock.now() - before

    assert run(main()) >= timedelta(seconds=SHORT * 0.9)


def test_timers_fire_in_the_order_of_their_times(world: World, run: Run) -> None:
    async def main() -> list[str]:
        order: list[str] = []
        done = asyncio.Event()
        world.clock.timer(3 * SHORT, done.set)
        world.clock.timer(2 * SHORT, order.append, "second")
        world.clock.timer(SHORT, order.append, "first")
        await done.wait()
        return order

    assert run(main()) == ["first", "second"]


def test_a_cancelled_timer_does_not_fire(world: World, run: Run) -> None:
    async def main() -> list[str]:
        fired: list[str] = []
        timer = world.clock.timer(SHORT, fired.append, "fired")
        assert not timer.cancelled()
        timer.cancel()
        timer.cancel()
        assert timer.cancelled()
        await world.clock.sleep(3 * SHORT)
        return fired

    assert run(main()) == []


def test_a_timeout_ends_its_block(world: World, run: Run) -> None:
    async def main() -> bool:
        try:
            async with world.clock.timeout(SHORT) as timeout:
                await world.clock.sleep(LONG)
        except TimeoutError:
            return timeout.expired()
        return False

    assert run(main()) is True


def test_a_timeout_that_does_not_come_changes_nothing(world: World, run: Run) -> None:
    async def main() -> list[object]:
        async with world.clock.timeout(LONG) as timeout:
            await world.clock.sleep(0)
        async with world.clock.timeout(None) as unlimited:
            await world.clock.sleep(0)
        return [timeout.expired(), unlimited.expired(), unlimited.when()]

    assert run(main()) == [False, False, None]


def test_a_deadline_is_on_the_monotonic_clock_and_can_be_moved(world: World, run: Run) -> None:
    async def main() -> float:
        before = world.clock.monotonic()
        with pytest.raises(TimeoutError):  # noqa: PT012
            async with world.clock.deadline(None) as deadline:
                deadline.reschedule(before + LONG)
                deadline.reschedule(before + SHORT)
                assert deadline.when() == before + SHORT
                await world.clock.sleep(LONG)
        return world.clock.monotonic() - before

    assert SHORT * 0.999 <= run(main()) < LONG


def test_a_deadline_in_the_past_ends_its_block_immediately(world: World, run: Run) -> None:
    async def main() -> None:
        async with world.clock.deadline(world.clock.monotonic() - 1):
            await world.clock.sleep(LONG)

    with pytest.raises(TimeoutError):
        run(main())


def test_a_timeout_is_entered_once_and_moved_only_inside(world: World, run: Run) -> None:
    async def main() -> None:
        timeout = world.clock.timeout(LONG)
        with pytest.raises(RuntimeError, match="before the timeout was entered"):
            timeout.reschedule(None)
        async with timeout:
            pass
        with pytest.raises(RuntimeError, match="only once"):
            await timeout.__aenter__()

    run(main())


def test_an_error_in_a_block_with_a_timeout_passes_through(world: World, run: Run) -> None:
    async def main() -> None:
        async with world.clock.timeout(LONG):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(main())


def test_the_executor_gives_back_the_result_of_a_function(world: World, run: Run) -> None:
    assert run(world.executor.run(divmod, 7, 2)) == (3, 1)


def test_the_executor_raises_the_error_of_a_function(world: World, run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run(world.executor.run(divmod, 7, 0))


def test_stop_iteration_from_a_function_is_an_error_and_not_a_hang(world: World, run: Run) -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        run(world.executor.run(next, iter(())))


def test_a_function_in_the_executor_sees_no_running_loop(world: World, run: Run) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        run(world.executor.run(asyncio.get_running_loop))


def test_a_function_in_the_executor_has_a_copy_of_the_callers_context(world: World, run: Run) -> None:
    def look_and_change() -> str:
        seen = variable.get()
        variable.set("changed in the worker")
        return seen

    async def main() -> list[str]:
        variable.set("of the caller")
        return [await world.executor.run(look_and_change), variable.get()]

    assert run(main()) == ["of the caller", "of the caller"]


def test_a_function_in_the_executor_can_wait_for_the_loop(world: World, run: Run) -> None:
    async def main() -> tuple[str, bool]:
        loop = asyncio.get_running_loop()

        async def on_the_loop(word: str) -> tuple[str, bool]:
            await world.clock.sleep(SHORT)
            return word.upper(), asyncio.get_running_loop() is loop

        return await world.executor.run(lambda: world.executor.block_on(on_the_loop("done")))

    assert run(main()) == ("DONE", True)


def test_an_error_of_a_coroutine_that_a_worker_waits_for_reaches_the_worker(world: World, run: Run) -> None:
    async def broken() -> None:
        await world.clock.sleep(0)
        raise KeyError("mine")

    def work() -> str:
        with pytest.raises(KeyError):
            world.executor.block_on(broken())
        return "caught"

    assert run(world.executor.run(work)) == "caught"


def test_block_on_is_allowed_only_in_workers(world: World, run: Run) -> None:
    async def main() -> None:
        world.executor.block_on(world.clock.sleep(0))

    with pytest.raises(RuntimeError, match=r"outside of Executor\.run"):
        run(main())
    with pytest.raises(RuntimeError, match=r"outside of Executor\.run"):
        world.executor.block_on(world.clock.sleep(0))


def test_the_load_of_the_executor_counts_calls_that_run_and_calls_that_wait(world: World, run: Run) -> None:
    async def main() -> None:
        release = asyncio.Event()
        started = []

        async def held() -> None:
            started.append(1)
            await release.wait()

        calls = [asyncio.create_task(world.executor.run(lambda: world.executor.block_on(held()))) for _ in range(2)]
        while len(started) < 2:
            await world.clock.sleep(SHORT)
        calls += [asyncio.create_task(world.executor.run(len, "abc")) for _ in range(3)]
        await world.clock.sleep(SHORT)
        load = world.executor.load()
        assert load[:3] == (2, 2, 3)
        assert load.longest_wait >= SHORT * 0.9
        calls[-1].cancel()
        await world.clock.sleep(SHORT)
        assert world.executor.load().queued == 2
        release.set()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert results[:4] == [None, None, 3, 3]
        assert isinstance(results[4], asyncio.CancelledError)
        while world.executor.load().busy:  # a real worker counts itself out after it has handed over its result
            await world.clock.sleep(SHORT)
        assert world.executor.load() == (2, 0, 0, 0.0)

    run(main())


def test_calls_with_a_separate_executor_do_not_wait_for_others(world: World, run: Run) -> None:
    async def main() -> None:
        release = asyncio.Event()
        separate = world.with_separate_executor()
        calls = [
            asyncio.create_task(world.executor.run(lambda: world.executor.block_on(release.wait()))) for _ in range(2)
        ]
        while world.executor.load().busy < 2:
            await world.clock.sleep(SHORT)
        assert await separate.executor.run(len, "abc") == 3
        assert separate.executor.load().workers == 2
        separate.executor.close()
        release.set()
        await asyncio.gather(*calls)
        assert await world.executor.run(len, "abc") == 3, "closing the one does not close the other"

    run(main())


def test_a_closed_executor_takes_no_calls(world: World, run: Run) -> None:
    world.executor.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        run(world.executor.run(len, "abc"))
    assert world.executor.load().queued == 0


def test_a_thread_gives_back_its_result(world: World, run: Run) -> None:
    async def body() -> str:
        await world.clock.sleep(SHORT)
        return "result"

    async def main() -> list[str | None]:
        thread = world.executor.thread("renewal", body)
        assert thread.name == "renewal"
        return [await thread.join(), await thread.join()]

    assert run(main()) == ["result", "result"]


def test_the_error_of_a_thread_is_raised_where_it_is_joined(world: World, run: Run) -> None:
    async def body() -> None:
        raise KeyError("mine")

    async def main() -> None:
        await world.executor.thread("renewal", body).join()

    with pytest.raises(KeyError, match="mine"):
        run(main())


def test_a_stopped_thread_cleans_up_and_has_no_result(world: World, run: Run) -> None:
    async def main() -> list[object]:
        log: list[object] = []
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def body() -> None:
            loop.call_soon_threadsafe(begun.set)
            try:
                await world.clock.sleep(LONG)
            finally:
                log.append("cleaned up")

        thread = world.executor.thread("renewal", body)
        await begun.wait()
        thread.stop()
        log.append(await thread.join())
        thread.stop()
        return log

    assert run(main()) == ["cleaned up", None]


def test_a_thread_stopped_immediately_never_starts_or_ends_early(world: World, run: Run) -> None:
    async def main() -> object:
        thread = world.executor.thread("renewal", lambda: world.clock.sleep(LONG))
        thread.stop()
        return await thread.join()

    assert run(main()) is None


def test_a_thread_takes_calls_until_it_ends(world: World, run: Run) -> None:
    async def main() -> list[str]:
        heard: list[str] = []
        ended: list[asyncio.Event] = []

        async def body() -> None:
            ended.append(asyncio.Event())
            await ended[0].wait()

        def end(word: str) -> None:
            heard.append(word)
            ended[0].set()

        thread = world.executor.thread("renewal", body)
        while not ended:
            await world.clock.sleep(SHORT)
        thread.call_soon(end, "stop please")
        await thread.join()
        with pytest.raises(RuntimeError):
            thread.call_soon(end, "too late")
        return heard

    assert run(main()) == ["stop please"]


def test_who_gives_up_joining_a_thread_does_not_end_it(world: World, run: Run) -> None:
    async def main() -> str | None:
        released: list[str] = []

        async def body() -> str:
            while not released:
                await world.clock.sleep(SHORT)
            return "result"

        thread = world.executor.thread("renewal", body)
        with pytest.raises(TimeoutError):
            async with world.clock.timeout(SHORT):
                await thread.join()
        thread.call_soon(released.append, "now")
        return await thread.join()

    assert run(main()) == "result"


def test_a_blocked_loop_does_not_stop_a_real_thread() -> None:
    world = World.real()
    beats = threading.Event()

    async def main() -> None:
        async def body() -> None:
            await world.clock.sleep(SHORT)
            beats.set()

        thread = world.executor.thread("renewal", body)
        assert beats.wait(timeout=LONG)  # blocks this loop
        await thread.join()

    asyncio.run(main())


@pytest.mark.parametrize("make", [lambda: World.real(workers=0), lambda: Simulation(0, workers=0)])
def test_an_executor_without_workers_is_an_error(make: Callable[[], World]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        make()
