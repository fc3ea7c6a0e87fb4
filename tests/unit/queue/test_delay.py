"""Delayed adds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.queue import WorkQueue
from ostinato.queue.delay import _STALE_ALLOWED, DelayedAdds
from ostinato.world import Clock, Simulation, Timer


def run(main: Callable[[WorkQueue[str], Clock], Coroutine[Any, Any, None]]) -> None:
    simulation = Simulation(0)
    simulation.run(main(WorkQueue(simulation.clock), simulation.clock))


def test_a_key_is_added_when_its_delay_has_passed_and_not_before() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add_after("a", 0.05)
        await clock.sleep(0.049)
        assert len(queue) == 0
        assert await queue.get() == "a"
        assert clock.monotonic() == pytest.approx(0.05)

    run(main)


@pytest.mark.parametrize("delay", [0, -1, -inf])
def test_without_a_delay_a_key_is_added_immediately(delay: float) -> None:
    async def main(queue: WorkQueue[str], _: Clock) -> None:
        queue.add_after("a", delay)
        assert queue.get_nowait() == "a"

    run(main)


@pytest.mark.parametrize("delay", [inf, nan])
def test_a_delay_that_is_not_finite_is_rejected(delay: float) -> None:
    async def main(queue: WorkQueue[str], _: Clock) -> None:
        with pytest.raises(ValueError, match=r"add_after\(\) delay of 'a' is"):
            queue.add_after("a", delay)

    run(main)


@pytest.mark.parametrize("delays", [(0.05, 0.07), (0.07, 0.05), (0.07, 0.05, 0.06)])
def test_of_several_delays_the_earliest_time_counts_and_the_key_is_added_once(delays: tuple[float, ...]) -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        for delay in delays:
            queue.add_after("a", delay)
        assert await queue.get() == "a"
        assert clock.monotonic() == pytest.approx(0.05)
        queue.done("a")
        await clock.sleep(1)
        assert len(queue) == 0

    run(main)


def test_a_later_key_with_a_shorter_delay_comes_first() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add_after("first", 1)
        queue.add_after("second", 0.05)
        assert await queue.get() == "second"
        queue.add_after("third", 2)
        assert await queue.get() == "first"
        assert clock.monotonic() == pytest.approx(1)
        assert await queue.get() == "third"
        assert clock.monotonic() == pytest.approx(2.05)

    run(main)


def test_adding_a_delayed_key_does_not_cancel_the_delay() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add_after("a", 10)
        queue.add("a")
        queue.done(await queue.get())
        assert clock.monotonic() == 0
        queue.done(await queue.get())
        assert clock.monotonic() == 10

    run(main)


def test_a_key_whose_delay_passes_while_it_is_queued_or_processed_is_not_duplicated() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add_after("a", 10)
        queue.add("a")
        await clock.sleep(11)
        assert len(queue) == 1
        await queue.get()
        queue.add_after("a", 10)
        await clock.sleep(11)
        assert len(queue) == 0
        queue.done("a")
        assert len(queue) == 1

    run(main)


def test_keys_of_the_same_time_are_added_in_the_order_of_their_calls() -> None:
    async def main(queue: WorkQueue[str], _: Clock) -> None:
        for key in "cab":
            queue.add_after(key, 5)
        assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]

    run(main)


def test_a_delayed_key_is_added_at_its_earliest_time_with_its_highest_priority() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add_after("a", 5, -100)
        queue.add_after("a", 9, 7)
        queue.add_after("a", 7, 3)
        queue.add_after("b", 5, 5)
        queue.add_after("c", 9, 6)
        queue.add_after("c", 5, -100)
        await clock.sleep(5)
        assert [await queue.get() for _ in range(3)] == ["a", "c", "b"]
        assert queue.priority_of("a") == 7
        assert clock.monotonic() == 5

    run(main)


def test_delays_are_measured_on_the_clock_of_the_queue() -> None:
    simulation = Simulation(0)
    fast = simulation.machine("fast", rate=4.0).clock

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(fast)
        for delay in (0.1, 0.3, 0.7, 40.0):
            queue.add_after("a", delay)
            await queue.get()
            queue.done("a")
        assert simulation.clock.monotonic() == pytest.approx(41.1 / 4)

    simulation.run(main())


def test_a_jump_of_the_wall_clock_does_not_change_delays() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(simulation.clock)
        queue.add_after("a", 60)
        simulation.clock.jump(-86_400)
        await queue.get()
        assert simulation.clock.monotonic() == 60
        simulation.clock.jump(86_400)
        queue.done("a")
        queue.add_after("a", 60)
        await queue.get()
        assert simulation.clock.monotonic() == 120

    simulation.run(main())


class CountingClock(Clock):
    """A clock that counts active timers, and can run behind so that they fire too early."""

    def __init__(self, inner: Clock) -> None:
        self.inner = inner
        self.timers: list[Timer] = []
        self.early = 0.0

    def monotonic(self) -> float:
        return self.inner.monotonic() - self.early

    def wall(self) -> float:
        return self.inner.wall()

    def _loop_time_at(self, at: float) -> float:
        return self.inner._loop_time_at(at)

    def timer(self, delay: float, callback: Any, *args: Any) -> Timer:  # type: ignore[override]
        self.timers.append(self.inner.timer(delay, callback, *args))
        return self.timers[-1]

    def active(self) -> int:
        return sum(not timer.cancelled() for timer in self.timers)


def test_one_timer_serves_all_delayed_keys() -> None:
    simulation = Simulation(0)
    clock = CountingClock(simulation.clock)

    async def main() -> None:
        added: list[int] = []
        delayed: DelayedAdds[int] = DelayedAdds(clock, lambda key, _: added.append(key))
        for key in range(1000):
            delayed.add_after(key, 1 + key, 0)
        assert len(clock.timers) == 1
        for key in range(1000, 1010):
            delayed.add_after(key, 0.5 - key / 10_000, 0)
        assert clock.active() == 1
        assert len(delayed) == 1010
        delayed.clear()
        assert clock.active() == 0
        await simulation.clock.sleep(2000)
        assert not added

    simulation.run(main())


def test_a_timer_that_fires_too_early_does_not_add_the_key() -> None:
    simulation = Simulation(0)
    clock = CountingClock(simulation.clock)

    async def main() -> None:
        added: list[str] = []
        delayed: DelayedAdds[str] = DelayedAdds(clock, lambda key, _: added.append(key))
        delayed.add_after("a", 5, 0)
        clock.early = 2
        await simulation.clock.sleep(6)
        assert not added
        await simulation.clock.sleep(1)
        assert added == ["a"]

    simulation.run(main())


def test_repeatedly_shortened_delays_do_not_grow_the_heap() -> None:
    async def main(queue: WorkQueue[str], clock: Clock) -> None:
        for step in range(10_000):
            queue.add_after("a", 1000 - step / 100)
        assert len(queue._delayed._heap) <= 2 + _STALE_ALLOWED
        await queue.get()
        assert clock.monotonic() == pytest.approx(1000 - 99.99)

    run(main)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 1000)), max_size=150))
def test_each_key_is_added_once_at_its_earliest_time_in_the_order_of_times(waits: list[tuple[int, int]]) -> None:
    simulation = Simulation(0)
    came: list[tuple[float, int]] = []

    async def main() -> None:
        delayed: DelayedAdds[int] = DelayedAdds(
            simulation.clock, lambda key, _: came.append((simulation.clock.monotonic(), key))
        )
        for key, delay in waits:
            delayed.add_after(key, delay, 0)
        await asyncio.sleep(2000)

    simulation.run(main())
    earliest = {key: min(delay for other, delay in waits if other == key) for key, _ in waits}
    assert sorted(came) == sorted((float(delay), key) for key, delay in earliest.items())
    assert [at for at, _ in came] == sorted(at for at, _ in came)
