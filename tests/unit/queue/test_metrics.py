"""Metrics of the work queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ostinato.metrics import Sample
from ostinato.queue import QueueStatistics, WorkQueue
from ostinato.world import Clock, DeadlockError, Simulation

Main = Callable[[WorkQueue[str], QueueStatistics[str], Clock], Coroutine[Any, Any, None]]


def run(main: Main) -> None:
    simulation = Simulation(0)
    statistics: QueueStatistics[str] = QueueStatistics("widgets", simulation.clock)
    simulation.run(main(WorkQueue(simulation.clock, metrics=statistics), statistics, simulation.clock))


def depths(statistics: QueueStatistics[str]) -> dict[str, float]:
    family = next(family for family in statistics.families() if family.name == "workqueue_depth")
    return {sample.labels["priority"]: sample.value for sample in family.samples}


def test_the_names_and_kinds_are_those_of_client_go() -> None:
    statistics: QueueStatistics[str] = QueueStatistics("widgets", Simulation(0).clock)
    assert {family.name: family.kind for family in statistics.families()} == {
        "workqueue_depth": "gauge",
        "workqueue_adds_total": "counter",
        "workqueue_queue_duration_seconds": "histogram",
        "workqueue_work_duration_seconds": "histogram",
        "workqueue_unfinished_work_seconds": "gauge",
        "workqueue_longest_running_processor_seconds": "gauge",
        "workqueue_retries_total": "counter",
    }
    samples = [sample for family in statistics.families() for sample in family.samples]
    assert all(sample.labels["name"] == "widgets" for sample in samples)
    assert all(sample.value == 0 for sample in samples)
    assert all(family.help and family.samples for family in statistics.families())


def test_a_histogram_has_ten_buckets_from_ten_nanoseconds_to_ten_seconds() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], clock: Clock) -> None:
        for wait in (0.0, 1e-8, 0.05, 1.0, 7.0, 10.0, 11.0):
            queue.add("a")
            await clock.sleep(wait)
            queue.done(await queue.get())
        name = "workqueue_queue_duration_seconds"
        family = next(family for family in statistics.families() if family.name == name)
        buckets = {sample.labels["le"]: sample.value for sample in family.samples if sample.name == f"{name}_bucket"}
        assert " ".join(buckets) == (
            "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 +Inf"
        )
        assert list(buckets.values()) == [2, 2, 2, 2, 2, 2, 2, 3, 4, 6, 7]
        assert family.samples[-1] == Sample(f"{name}_count", {"name": "widgets"}, 7)
        assert family.samples[-2].name == f"{name}_sum"
        assert family.samples[-2].value == pytest.approx(29.05)
        assert statistics.queue_duration.count == 7

    run(main)


def test_the_wait_is_measured_from_the_first_add_and_the_work_from_get_to_done() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], clock: Clock) -> None:
        queue.add("a")
        await clock.sleep(2)
        queue.add("a")
        await clock.sleep(3)
        await queue.get()
        assert statistics.queue_duration.sum == 5
        queue.add("a")
        await clock.sleep(7)
        queue.done("a")
        assert statistics.work_duration.sum == 7
        await clock.sleep(1)
        await queue.get()
        assert statistics.queue_duration.sum == 5 + 8

    run(main)


def test_adding_a_queued_key_is_not_counted() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], _: Clock) -> None:
        for key in "aab":
            queue.add(key)
        assert (statistics.adds, statistics.depth) == (2, 2)
        await queue.get()
        queue.add("a")
        queue.add("a")
        assert (statistics.adds, statistics.depth) == (3, 2)
        queue.done("a")
        assert (statistics.adds, statistics.depth) == (3, 2)
        queue.done(await queue.get())
        queue.done(await queue.get())
        assert (statistics.adds, statistics.depth) == (3, 0)

    run(main)


def test_delayed_keys_are_counted_when_their_delay_has_passed() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], clock: Clock) -> None:
        queue.add_after("a", 5)
        assert (statistics.adds, statistics.depth) == (0, 0)
        queue.add("a")
        assert (statistics.adds, statistics.depth) == (1, 1)
        queue.done(await queue.get())
        assert (statistics.adds, statistics.depth) == (1, 0)
        await clock.sleep(5)
        assert (statistics.adds, statistics.depth) == (2, 1)

    run(main)


def test_each_delayed_add_is_a_retry_whether_there_is_a_delay_or_not() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], _: Clock) -> None:
        queue.add("a")
        assert statistics.retries == 0
        queue.add_after("a", 0)
        queue.add_after("a", 5)
        queue.add_after("a", 9)
        queue.add_rate_limited("a")
        assert statistics.retries == 4
        queue.shut_down()
        queue.add_after("a", 1)
        assert statistics.retries == 4

    run(main)


def test_ages_of_keys_being_processed_are_computed_when_read() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], clock: Clock) -> None:
        queue.add("a")
        queue.add("b")
        await queue.get()
        await clock.sleep(3)
        await queue.get()
        await clock.sleep(0.25)
        assert statistics.unfinished_work == 3.5
        assert statistics.longest_running == 3.25
        queue.done("a")
        assert statistics.unfinished_work == statistics.longest_running == 0.25
        queue.done("b")
        assert statistics.unfinished_work == statistics.longest_running == 0

    run(main)


def test_metrics_need_no_ticker() -> None:
    async def main(queue: WorkQueue[str], _statistics: QueueStatistics[str], clock: Clock) -> None:
        queue.add("a")
        await queue.get()
        await clock.sleep(5)
        queue.shut_down()
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"at 5\.000000 s"):
        run(main)


def test_the_depth_moves_with_the_priority_of_a_key() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], _: Clock) -> None:
        queue.add("a", -100)
        queue.add("b", -100)
        assert depths(statistics) == {"0": 0, "-100": 2}
        queue.add("b")
        assert depths(statistics) == {"0": 1, "-100": 1}
        await queue.get()
        assert depths(statistics) == {"0": 0, "-100": 1}
        queue.add("b", 3)
        queue.add("b", 4)
        assert depths(statistics) == {"0": 0, "-100": 1, "3": 0, "4": 1}
        queue.add_after("c", 5, -100)
        queue.add_after("c", 9, 4)
        assert depths(statistics) == {"0": 0, "-100": 1, "3": 0, "4": 1}, "delayed keys are not counted"

    run(main)


def test_at_most_25_priorities_have_a_label() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], _: Clock) -> None:
        for priority in range(40):
            queue.add(f"key-{priority}", priority)
        assert len(depths(statistics)) == 26
        assert depths(statistics)["exceeded_cardinality_limit"] == 15
        queue.add("key-3", 39)
        assert depths(statistics)["exceeded_cardinality_limit"] == 16
        assert depths(statistics)["3"] == 0
        while queue:
            queue.done(await queue.get())
        assert set(depths(statistics).values()) == {0}

    run(main)


def test_keys_that_are_done_are_not_kept() -> None:
    async def main(queue: WorkQueue[str], statistics: QueueStatistics[str], _: Clock) -> None:
        queue.add("a")
        queue.done(await queue.get())
        assert not statistics._added_at
        assert not statistics._taken_at

    run(main)
