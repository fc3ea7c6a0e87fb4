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


def test_items_are_handed_out_one_at_a_time_in_order_and_equal_ones_are_not_coalesced() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        items: list[Any] = ["a", {"not": "hashable"}, "a"]
        for item in items:
            queue.add(item)
        assert len(queue) == 3
        got = []
        for left in (2, 1, 0):
            got.append(await queue.get())
            queue.done()
            assert len(queue) == left
        assert got == items

    run(main)


def test_no_item_is_handed_out_while_the_head_is_processed() -> None:
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


def test_a_worker_waits_until_an_item_is_added() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        late = asyncio.create_task(queue.get())
        assert await worker == "a"
        await asyncio.sleep(1)
        assert not late.done()

    run(main)


def test_a_failed_head_is_retried_before_the_next_after_growing_delays() -> None:
    async def main(queue: OrderedQueue[Any], clock: Clock) -> None:
        queue.add("a")
        queue.add("b")
        tries = []
        for _ in range(6):
            with suppress(Failed):
                async with queue.item() as item:
                    tries.append((clock.monotonic(), item, queue.retries))
                    if len(tries) < 5:
                        raise Failed
        assert tries == [(0, "a", 0), (5, "a", 1), (15, "a", 2), (35, "a", 3), (67, "a", 4), (67, "b", 0)]
        assert queue.retries == 0

    run(main)


def test_the_caller_can_choose_the_delay() -> None:
    async def main(queue: OrderedQueue[Any], clock: Clock) -> None:
        queue.add("a")
        await queue.get()
        queue.retry(0.5)
        before = clock.monotonic()
        await queue.get()
        assert clock.monotonic() - before == pytest.approx(0.5)

    run(main)


def test_items_can_be_inserted_after_the_head_that_is_processed() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add_first(["a"])
        queue.add("d")
        assert await queue.get() == "a"
        queue.add_first(["b", "c"])
        assert queue.waiting() == ("a", "b", "c", "d")
        queue.done()
        queue.add_first(["first"])  # no head is held: before all
        assert queue.waiting() == ("first", "b", "c", "d")

    run(main)


def test_a_worker_can_take_what_follows_its_head() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        for item in (1, 3, 5, 6, 7):
            queue.add(item)
        await queue.get()
        assert queue.take_following(lambda item: item % 2) == [3, 5]
        assert queue.waiting() == (1, 6, 7)
        queue.retry()
        with pytest.raises(ValueError, match="call get"):
            queue.take_following(bool)

    run(main)


def test_the_limiter_can_be_chosen() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: OrderedQueue[str] = OrderedQueue(simulation.clock, limiter=FastSlow(1, 10, 1))
        queue.add("a")
        for expected in (0, 1, 11):
            await queue.get()
            assert simulation.clock.monotonic() == expected
            queue.retry()

    simulation.run(main())


def test_a_cancelled_worker_returns_the_head_without_counting_a_failure() -> None:
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


def test_a_worker_cancelled_after_it_was_woken_wakes_the_next() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"

    run(main)


@pytest.mark.parametrize("end", ["done", "retry"])
def test_done_and_retry_without_get_raise(end: str) -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        with pytest.raises(ValueError, match="while no worker holds the head"):
            getattr(queue, end)()
        queue.add("a")
        with pytest.raises(ValueError, match="while no worker holds the head"):
            getattr(queue, end)()
        assert len(queue) == 1

    run(main)


def test_after_shutdown_nothing_is_added_and_queued_items_are_handed_out() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        queue.add("b")
        queue.shut_down()
        assert queue.shutting_down
        queue.add("c")
        for expected in "ab":
            async with queue.item() as item:
                assert item == expected
        with pytest.raises(QueueShutDown):
            await queue.get()

    run(main)


def test_shutdown_raises_in_all_waiting_workers() -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.shut_down()
        outcomes = await asyncio.gather(*workers, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [QueueShutDown] * 2

    run(main)


def test_after_shutdown_a_failed_head_is_not_retried_and_not_overtaken() -> None:
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
def test_shutdown_does_not_wait_for_a_retry(drain: bool) -> None:
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
def test_drain_waits_until_the_head_is_no_longer_processed(end: str) -> None:
    async def main(queue: OrderedQueue[Any], _: Clock) -> None:
        queue.add("a")
        await queue.get()
        drain = asyncio.create_task(queue.shut_down_with_drain())
        await asyncio.sleep(1)
        assert not drain.done()
        getattr(queue, end)()
        await drain

    run(main)


def test_shutdown_ends_the_wait_of_a_drain() -> None:
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
def test_items_are_finished_in_order_with_any_failures_and_workers(
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
