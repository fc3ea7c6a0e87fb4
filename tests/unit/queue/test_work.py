"""Adding, getting and finishing keys of the work queue."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from ostinato.queue import QueueShutDown, WorkQueue
from ostinato.world import Simulation


def run(main: Callable[[WorkQueue[str]], Coroutine[Any, Any, None]]) -> None:
    simulation = Simulation(0)
    simulation.run(main(WorkQueue(simulation.clock)))


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue(Simulation(0).clock)


def test_keys_are_handed_out_in_the_order_of_their_first_add(queue: WorkQueue[str]) -> None:
    for key in "cabcab":
        queue.add(key)
    assert [queue.get_nowait() for _ in range(3)] == ["c", "a", "b"]


def test_a_key_added_many_times_before_it_is_processed_is_processed_once(queue: WorkQueue[str]) -> None:
    for _ in range(5):
        queue.add("a")
    assert len(queue) == 1
    queue.done(queue.get_nowait())
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()


def test_a_key_added_while_processed_is_processed_again_once_and_after(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    for _ in range(3):
        queue.add("a")
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()
    queue.done("a")
    assert queue.get_nowait() == "a"
    queue.done("a")
    assert len(queue) == 0


def test_a_key_that_is_queued_again_goes_to_the_end(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.add("a")
    queue.add("b")
    queue.add("c")
    queue.done("a")
    assert [queue.get_nowait() for _ in range(3)] == ["b", "c", "a"]


def test_the_length_counts_neither_processed_nor_delayed_keys(queue: WorkQueue[str]) -> None:
    async def main() -> None:
        queue.add("a")
        queue.add("b")
        assert len(queue) == 2
        queue.get_nowait()
        assert len(queue) == 1
        queue.add("a")
        queue.add_after("c", 60)
        assert len(queue) == 1

    asyncio.run(main())


def test_a_worker_waits_until_a_key_is_added() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not worker.done()
        queue.add("a")
        assert await worker == "a"

    run(main)


def test_a_worker_waits_until_another_is_done_with_the_key() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not worker.done()
        queue.done("a")
        assert await worker == "a"

    run(main)


def test_done_with_a_key_that_is_not_processed_raises_and_changes_nothing(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(ValueError, match="which is not being processed"):
        queue.done("a")
    assert len(queue) == 1
    assert queue.get_nowait() == "a"


def test_an_unhashable_key_is_rejected_and_changes_nothing() -> None:
    queue: WorkQueue[Any] = WorkQueue(Simulation(0).clock)
    with pytest.raises(TypeError):
        queue.add(["a"])
    assert len(queue) == 0


def test_a_queue_holds_no_reference_to_a_key_that_is_done() -> None:
    class Key:
        pass

    queue: WorkQueue[Key] = WorkQueue(Simulation(0).clock)
    key = Key()
    alive = weakref.ref(key)
    queue.add(key)
    queue.add(key, 5)
    queue.done(queue.get_nowait())
    del key
    gc.collect()
    assert alive() is None


# Waiting workers


def test_workers_are_served_in_the_order_of_their_calls() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        served = []

        async def worker(name: int) -> None:
            served.append((name, await queue.get()))

        async with asyncio.TaskGroup() as group:
            for name in range(3):
                group.create_task(worker(name))
            await asyncio.sleep(0)
            for key in "abc":
                queue.add(key)
        assert served == [(0, "a"), (1, "b"), (2, "c")]

    run(main)


def test_a_later_get_does_not_take_a_key_reserved_for_a_woken_worker() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        first = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        with pytest.raises(asyncio.QueueEmpty):
            queue.get_nowait()
        second = asyncio.create_task(queue.get())
        assert await first == "a"
        assert not second.done()
        queue.add("b")
        assert await second == "b"

    run(main)


def test_a_woken_worker_takes_the_first_key_at_the_time_it_runs() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("low", -100)
        queue.add("high", 10)
        assert await worker == "high"
        assert queue.get_nowait() == "low"

    run(main)


def test_a_worker_cancelled_while_it_waits_loses_no_key() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        worker.cancel()
        queue.add("a")  # the worker has not noticed yet
        assert queue.get_nowait() == "a"
        await asyncio.wait([worker])
        assert worker.cancelled()

    run(main)


def test_a_worker_cancelled_after_it_was_woken_wakes_the_next() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"
        assert first.cancelled()

    run(main)


def test_a_worker_cancelled_after_it_was_woken_leaves_the_key_queued() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        worker.cancel()
        await asyncio.wait([worker])
        assert worker.cancelled()
        assert queue.get_nowait() == "a"

    run(main)


def test_cancelled_workers_are_removed_from_an_idle_queue() -> None:
    simulation = Simulation(0)

    async def main(queue: WorkQueue[str]) -> None:
        for _ in range(10):
            with pytest.raises(TimeoutError):
                async with simulation.clock.timeout(1):
                    await queue.get()
        assert not queue._getters._waiting

    simulation.run(main(WorkQueue(simulation.clock)))


def test_an_item_is_done_at_the_end_of_its_block_even_if_that_raises() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.add("a")
        with suppress(RuntimeError):
            async with queue.item() as key:
                assert key == "a"
                queue.add("a")
                assert len(queue) == 0
                raise RuntimeError
        assert queue.get_nowait() == "a"

    run(main)


def test_item_raises_when_the_queue_is_shut_down() -> None:
    async def main(queue: WorkQueue[str]) -> None:
        queue.shut_down()
        with pytest.raises(QueueShutDown):
            async with queue.item():
                raise AssertionError("nothing to process")

    run(main)
