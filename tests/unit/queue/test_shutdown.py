"""Shutdown and drain of the work queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from ostinato.queue import QueueShutDown, WorkQueue
from ostinato.world import DeadlockError, Simulation


def run(main: Callable[[WorkQueue[str]], Coroutine[Any, Any, None]]) -> None:
    simulation = Simulation(0)
    simulation.run(main(WorkQueue(simulation.clock)))


def test_nothing_is_added_after_shutdown_and_queued_keys_are_still_handed_out() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.add("b")
        before = queue.shutting_down
        queue.shut_down()
        assert (before, queue.shutting_down) == (False, True)
        queue.add("c")
        queue.add_after("d", 0)
        queue.add_after("e", 1)
        queue.add_rate_limited("f")
        assert await queue.get() == "a"
        assert queue.get_nowait() == "b"
        with pytest.raises(QueueShutDown):
            await queue.get()
        with pytest.raises(QueueShutDown):
            queue.get_nowait()

    run(main)


def test_shutdown_raises_in_all_waiting_workers_and_is_idempotent() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.shut_down()
        queue.shut_down()
        outcomes = await asyncio.gather(*workers, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [QueueShutDown] * 3

    run(main)


def test_a_key_reserved_for_a_woken_worker_stays_reserved_after_shutdown() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        queue.shut_down()
        with pytest.raises(QueueShutDown):
            queue.get_nowait()
        assert await worker == "a"

    run(main)


def test_a_worker_cancelled_during_shutdown_ends_cancelled() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        before, after = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        before.cancel()
        queue.shut_down()
        after.cancel()
        await asyncio.wait([before, after])
        assert before.cancelled()
        assert after.cancelled()

    run(main)


def test_a_key_added_while_processed_is_handed_out_again_after_shutdown() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.shut_down()
        queue.done("a")
        assert await queue.get() == "a"

    run(main)


def test_shutdown_does_not_wait_for_keys_being_processed() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.shut_down()  # returns
        queue.done("a")

    run(main)


def test_drain_waits_for_all_keys_being_processed() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.add("b")
        await queue.get()
        await queue.get()
        drain = asyncio.create_task(queue.shut_down_with_drain())
        await asyncio.sleep(1)
        queue.done("a")
        await asyncio.sleep(1)
        assert not drain.done()
        with pytest.raises(QueueShutDown):
            await queue.get()
        queue.done("b")
        await drain

    run(main)


def test_drain_without_keys_being_processed_returns_immediately() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.shut_down_with_drain()
        assert await queue.get() == "a"

    run(main)


def test_drain_waits_for_a_key_that_its_worker_gets_again() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        processed: list[str] = []

        async def worker() -> None:
            with suppress(QueueShutDown):
                while True:
                    async with queue.item() as key:
                        if not processed:
                            queue.add(key)
                        await asyncio.sleep(10)
                        processed.append(key)

        queue.add("a")
        task = asyncio.create_task(worker())
        await asyncio.sleep(1)
        await queue.shut_down_with_drain()
        assert processed == ["a", "a"]
        await task

    run(main)


def test_shutdown_ends_the_waits_of_drains() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        drains = [asyncio.create_task(queue.shut_down_with_drain()) for _ in range(2)]
        await asyncio.sleep(1)
        assert not any(drain.done() for drain in drains)
        queue.shut_down()
        await asyncio.gather(*drains)

    run(main)


def test_drain_may_follow_shutdown() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.shut_down()
        drain = asyncio.create_task(queue.shut_down_with_drain())
        await asyncio.sleep(1)
        assert not drain.done()
        queue.done("a")
        await drain

    run(main)


def test_drain_never_returns_if_done_is_not_called() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        await queue.shut_down_with_drain()

    with pytest.raises(DeadlockError):
        run(main)


@pytest.mark.parametrize("drain", [False, True])
def test_both_ways_to_shut_down_cancel_all_timers(drain: bool) -> None:
    simulation = Simulation(0)
    queue: WorkQueue[str] = WorkQueue(simulation.clock)

    async def main() -> None:
        queue.add_after("a", 3600)
        queue.add_after("b", 1800)
        await asyncio.sleep(5)
        if drain:
            await queue.shut_down_with_drain()
        else:
            queue.shut_down()
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"at 5\.000000 s"):  # no timer is left that could move time
        simulation.run(main())
    assert len(queue) == 0
