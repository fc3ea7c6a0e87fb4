"""Priorities."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.queue import LOW_PRIORITY, WorkQueue
from ostinato.queue.order import PriorityOrder
from ostinato.world import Clock, Simulation


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue(Simulation(0).clock)


def run(main: Callable[[WorkQueue[str], Clock], Coroutine[Any, Any, None]]) -> None:
    simulation = Simulation(0)
    simulation.run(main(WorkQueue(simulation.clock), simulation.clock))


def drained(queue: WorkQueue[str]) -> str:
    return "".join(queue.get_nowait() for _ in range(len(queue)))


def test_low_priority_is_that_of_controller_runtime() -> None:
    assert LOW_PRIORITY == -100


def test_higher_priorities_are_handed_out_first_and_within_one_the_first_added(queue: WorkQueue[str]) -> None:
    for key, priority in [("a", 0), ("b", LOW_PRIORITY), ("c", 5), ("d", 0), ("e", 5), ("f", LOW_PRIORITY)]:
        queue.add(key, priority)
    assert drained(queue) == "ceadbf"


@pytest.mark.parametrize(("again", "order"), [(-5, "abc"), (0, "abc"), (5, "cab")])
def test_a_priority_only_rises(queue: WorkQueue[str], again: int, order: str) -> None:
    for key in "abc":
        queue.add(key)
    queue.add("c", again)
    assert drained(queue) == order


def test_adding_without_a_priority_raises_a_low_one(queue: WorkQueue[str]) -> None:
    queue.add("a", LOW_PRIORITY)
    queue.add("b", -1)
    queue.add("a")
    assert drained(queue) == "ab"


def test_a_key_whose_priority_rises_becomes_the_last_of_the_new_priority(queue: WorkQueue[str]) -> None:
    for key, priority in [("a", 0), ("b", 3), ("c", 3), ("d", 0)]:
        queue.add(key, priority)
    queue.add("d", 3)
    assert drained(queue) == "bcda"


def test_a_raised_priority_does_not_outlive_the_processing_of_the_key(queue: WorkQueue[str]) -> None:
    queue.add("a", LOW_PRIORITY)
    queue.add("b", LOW_PRIORITY)
    queue.add("a", 0)
    queue.done(queue.get_nowait())
    queue.add("a", LOW_PRIORITY)
    assert drained(queue) == "ba"


def test_a_key_being_processed_does_not_block_those_of_lower_priority(queue: WorkQueue[str]) -> None:
    queue.add("a", 9)
    queue.get_nowait()
    queue.add("a", 9)
    queue.add("b", LOW_PRIORITY)
    assert queue.get_nowait() == "b"
    queue.done("a")
    assert queue.get_nowait() == "a"


def test_a_key_added_several_times_while_processed_is_requeued_with_the_highest_priority(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    for priority in (-3, 7, 2):
        queue.add("a", priority)
    queue.add("b", 6)
    queue.done("a")
    assert drained(queue) == "ab"
    assert queue.priority_of("a") == 7


def test_a_key_can_be_requeued_with_the_priority_it_was_handed_out_with() -> None:
    async def main(queue: WorkQueue[str], _: Clock) -> None:
        queue.add("a", LOW_PRIORITY)
        async with queue.item() as key:
            assert queue.priority_of(key) == LOW_PRIORITY
            queue.add_rate_limited(key, queue.priority_of(key))
        await queue.get()
        assert queue.priority_of("a") == LOW_PRIORITY

    run(main)


def test_a_delayed_key_of_high_priority_overtakes_when_its_delay_has_passed() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add("a", LOW_PRIORITY)
        queue.add("b", LOW_PRIORITY)
        queue.add_after("c", 5, 10)
        assert await queue.get() == "a"
        await clock.sleep(5)
        assert drained(queue) == "cb"

    run(main)


def test_a_delayed_key_added_without_a_delay_is_ready_immediately() -> None:
    async def main(queue: WorkQueue[str], _: Clock) -> None:
        queue.add_after("a", 5)
        queue.add("a")
        assert queue.get_nowait() == "a"

    run(main)


def test_a_waiting_worker_gets_the_highest_of_several_keys_added_together() -> None:
    async def main(queue: WorkQueue[str], _: Clock) -> None:
        worker = asyncio.create_task(queue.get())
        for key, priority in [("a", -1), ("b", 1), ("c", 0)]:
            queue.add_after(key, 3, priority)
        assert await worker == "b"

    run(main)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["push", "pop", "move"]), st.integers(0, 9), st.integers(-3, 3))))
def test_the_order_is_that_of_a_sorted_list(operations: list[tuple[str, int, int]]) -> None:
    order: PriorityOrder[int] = PriorityOrder()
    model: dict[int, tuple[int, int]] = {}  # key: -priority, arrival
    for arrival, (operation, key, priority) in enumerate(operations):
        if operation == "push" and key not in model:
            order.push(key, priority)
            model[key] = (-priority, arrival)
        elif operation == "move" and key in model:
            order.move(key, -model[key][0], priority)
            model[key] = (-priority, arrival)
        elif operation == "pop" and model:
            first = min(model, key=lambda key: model[key])
            del model[first]
            assert order.pop() == first
        assert order.length == len(model)
        assert sorted(order._bands) == order._priorities
        assert all(order._bands.values())
