"""The ordered queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.queue import ExponentialBackoff, FastSlow, OrderedQueue, QueueShutDown
from ostinato.world import Clock, DeadlockError, Simulation


def run(main: Callable[[OrderedQueue[Any], Clock], Coroutine[Any, Any, None]]) -> None:
    simulation = Simulation(0)
    simulation.run(main(OrderedQueue(simulation.clock), simulation.clock))


class Failed(Exception):  # noqa: N818
    pass


def test_things_are_handed_out_one_at_a_time_in_order_and_equal_ones_all() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        things: list[Any] = ["a", {"not": "hashable"}, "a"]
        for thing in things:
            queue.add(thing)
        assert len(queue) == 3
        got = []
        for left in (2, 1, 0):
            got.append(await queue.get())
            queue.done()
            assert len(queue) == left
        assert got == things

    run(main)


def test_nobody_gets_anything_while_the_head_is_held() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        queue.add("b")
        assert await queue.get() == "a"
        others = [asyncio.create_task(queue.get()) for _ in range(2)]
        await asyncio.sleep(1)
        assert not any(other.done() for other in others)
        queue.done()
        assert await others[0] == "b"
        assert not others[1].done()

    run(main)


def test_a_worker_waits_until_a_thing_is_added() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        late = asyncio.create_task(queue.get())
        assert await worker == "a"
        await asyncio.sleep(1)
        assert not late.done()

    run(main)


def test_a_head_that_failed_is_tried_again_before_the_next_after_growing_waits() -> None:
    async def main(queue: OrderedQueue[Any], clock: Clock) -> None:
        queue.add("a")
        queue.add("b")
        tries = []
        for _ in range(6):
            with suppress(Failed):
                async with queue.item() as thing:
                    tries.append((clock.monotonic(), thing, queue.retries))
                    if len(tries) < 5:
                        raise Failed
        assert tries == [(0, "a", 0), (5, "a", 1), (15, "a", 2), (35, "a", 3), (67, "a", 4), (67, "b", 0)]
        assert queue.retries == 0

    run(main)


def test_the_wait_can_be_chosen() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: OrderedQueue[str] = OrderedQueue(simulation.clock, limiter=FastSlow(1, 10, 1))
        queue.add("a")
        for expected in (0, 1, 11):
            await queue.get()
            assert simulation.clock.monotonic() == expected
            queue.retry()

    simulation.run(main())


def test_a_cancelled_worker_gives_the_head_back_without_a_failure() -> None:
    async def main(queue: OrderedQueue[Any], clock: Clock) -> None:
        async def worker() -> None:
            async with queue.item():
                await asyncio.Event().wait()

        queue.add("a")
        task = asyncio.create_task(worker())
        await asyncio.sleep(1)
        task.cancel()
        assert await queue.get() == "a"
        assert clock.monotonic() == 1
        assert queue.retries == 0

    run(main)


def test_a_worker_cancelled_after_it_was_woken_passes_its_turn_to_the_next() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"

    run(main)


@pytest.mark.parametrize("end", ["done", "retry"])
def test_done_and_retry_without_a_head_are_errors(end: str) -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        with pytest.raises(ValueError, match="no worker holds"):
            getattr(queue, end)()
        queue.add("a")
        with pytest.raises(ValueError, match="no worker holds"):
            getattr(queue, end)()
        assert len(queue) == 1

    run(main)


def test_after_shutdown_nothing_is_added_and_what_is_queued_is_handed_out() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        queue.add("b")
        queue.shut_down()
        assert queue.shutting_down
        queue.add("c")
        for expected in "ab":
            async with queue.item() as thing:
                assert thing == expected
        with pytest.raises(QueueShutDown):
            await queue.get()

    run(main)


def test_shutdown_sends_away_all_who_wait() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.shut_down()
        outcomes = await asyncio.gather(*workers, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [QueueShutDown] * 2

    run(main)


def test_a_head_that_fails_after_shutdown_is_the_end_and_nothing_overtakes_it() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        queue.add("b")
        queue.shut_down()
        await queue.get()
        queue.retry()
        with pytest.raises(QueueShutDown):
            await queue.get()
        assert len(queue) == 2

    run(main)


@pytest.mark.parametrize("drain", [False, True])
def test_a_head_that_waits_for_its_next_try_is_not_waited_for_at_shutdown(drain: bool) -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        await queue.get()
        queue.retry()
        await asyncio.sleep(1)
        if drain:
            await queue.shut_down_with_drain()
        else:
            queue.shut_down()
        with pytest.raises(QueueShutDown):
            await queue.get()
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"at 1\.000000 s"):
        run(main)


@pytest.mark.parametrize("end", ["done", "retry"])
def test_drain_waits_for_the_worker_that_holds_the_head(end: str) -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        await queue.get()
        drain = asyncio.create_task(queue.shut_down_with_drain())
        await asyncio.sleep(1)
        assert not drain.done()
        getattr(queue, end)()
        await drain

    run(main)


def test_shutdown_releases_whoever_drains() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        await queue.get()
        drain = asyncio.create_task(queue.shut_down_with_drain())
        await asyncio.sleep(1)
        queue.shut_down()
        await drain

    run(main)


@settings(max_examples=40, deadline=None)
@given(st.integers(), st.lists(st.integers(0, 3), max_size=20), st.integers(1, 4))
def test_whatever_fails_and_whoever_works_things_are_finished_in_order(
    seed: int, failures: list[int], workers: int
) -> None:
    simulation = Simulation(seed, interleave=True)
    finished: list[int] = []

    async def main() -> None:
        queue: OrderedQueue[int] = OrderedQueue(simulation.clock, limiter=ExponentialBackoff(0.1, 1.0))
        remaining = list(failures)
        holders = 0

        async def worker() -> None:
            nonlocal holders
            with suppress(QueueShutDown):
                while True:
                    with suppress(Failed):
                        async with queue.item() as number:
                            holders += 1
                            assert holders == 1
                            await simulation.clock.sleep(simulation.rng.random())
                            holders -= 1
                            if remaining[number]:
                                remaining[number] -= 1
                                raise Failed
                            finished.append(number)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
            for number in range(len(failures)):
                queue.add(number)
                await simulation.clock.sleep(simulation.rng.random())
            while queue:
                await simulation.clock.sleep(1)
            queue.shut_down()

    simulation.run(main())
    assert finished == list(range(len(failures)))
