"""Rate limiters, alone and in the queue.

tests/data/queue/limiters.json holds what the limiters of client-go v0.36.4 answered to the same calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from ostinato.queue import (
    ExponentialBackoff,
    FastSlow,
    MaxOf,
    MaxWait,
    RateLimiter,
    TokenBucket,
    WorkQueue,
)
from ostinato.world import Clock, Simulation

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "queue" / "limiters.json").read_text())


class HandClock(Clock):
    """Set by hand."""

    at = 0.0

    def monotonic(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at

    def _loop_time_at(self, at: float) -> float:
        return at


MAKERS: dict[str, Callable[..., RateLimiter[str]]] = {
    "ExponentialBackoff": lambda _, base, maximum: ExponentialBackoff(base, maximum),
    "FastSlow": lambda _, fast, slow, attempts: FastSlow(fast, slow, int(attempts)),
    "TokenBucket": lambda clock, rate, burst: TokenBucket(clock, rate, int(burst)),
    "MaxOf": lambda _: MaxOf(FastSlow(0.02, 3, 4), ExponentialBackoff()),
    "MaxWait": lambda _: MaxWait(ExponentialBackoff(), 0.5),
}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['limiter']}{case['arguments']}")
def test_limiters_return_the_delays_of_client_go(case: dict[str, Any]) -> None:
    clock = HandClock()
    limiter = MAKERS[case["limiter"]](clock, *case["arguments"])
    for number, (operation, key, at, answer) in enumerate(case["calls"]):
        clock.at = at
        if operation == "forget":
            limiter.forget(key)
        else:
            # Go counts whole nanoseconds.
            assert getattr(limiter, operation)(key) == pytest.approx(answer, abs=3e-9), f"call {number}"


def test_the_default_doubles_from_5_milliseconds_to_1000_seconds() -> None:
    limiter: ExponentialBackoff[str] = ExponentialBackoff()
    waits = [limiter.when("a") for _ in range(20)]
    assert waits[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert waits[17] == pytest.approx(655.36)
    assert waits[18:] == [1000.0, 1000.0]
    assert limiter.when("b") == 0.005


def test_the_default_for_items_alone_starts_at_1_millisecond() -> None:
    limiter: ExponentialBackoff[str] = ExponentialBackoff(0.001)
    assert [limiter.when("a") for _ in range(3)] == pytest.approx([0.001, 0.002, 0.004])


@pytest.mark.parametrize(("base", "maximum"), [(0.005, 1000.0), (1e300, 1e308), (0.0, 5.0), (1e-9, 1.0)])
def test_no_number_of_failures_overflows(base: float, maximum: float) -> None:
    limiter: ExponentialBackoff[str] = ExponentialBackoff(base, maximum)
    waits = [limiter.when("a") for _ in range(5000)]
    assert waits[-1] == (maximum if base else 0.0)
    assert waits == sorted(waits)
    assert limiter.requeues("a") == 5000


def test_a_bucket_allows_its_burst_then_reserves_future_tokens() -> None:
    clock = HandClock()
    bucket = TokenBucket(clock)
    assert [bucket.when(key) for key in range(100)] == [0.0] * 100
    assert [bucket.when("a") for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])
    clock.at = 0.25
    assert bucket.when("b") == pytest.approx(0.15)
    bucket.forget("a")
    assert bucket.requeues("a") == 0
    assert bucket.when("b") == pytest.approx(0.25)
    clock.at = 3600
    assert [bucket.when("a") for _ in range(101)] == pytest.approx([0.0] * 100 + [0.1])


def test_the_longest_wait_is_taken_and_every_limiter_counts() -> None:
    clock = HandClock()
    backoff: ExponentialBackoff[str] = ExponentialBackoff(1, 8)
    bucket = TokenBucket(clock, rate=1, burst=2)
    limiter = MaxOf(backoff, bucket)
    assert [limiter.when(key) for key in "abcccc"] == [1, 1, 1, 2, 4, 8]
    assert limiter.requeues("c") == backoff.requeues("c") == 4
    assert bucket.when("d") == 5  # all six took a token
    limiter.forget("c")
    assert limiter.requeues("c") == 0


def test_max_of_no_limiters_does_not_delay() -> None:
    nothing: MaxOf[str] = MaxOf()
    assert nothing.when("a") == 0
    assert nothing.requeues("a") == 0


def test_the_first_attempts_are_fast_and_the_others_slow() -> None:
    limiter: FastSlow[str] = FastSlow(0.005, 10, 3)
    assert [limiter.when("a") for _ in range(5)] == [0.005, 0.005, 0.005, 10, 10]
    assert limiter.requeues("a") == 5
    limiter.forget("a")
    assert limiter.requeues("a") == 0
    assert limiter.when("a") == 0.005


def test_max_wait_caps_the_delay_and_counts_the_failure() -> None:
    limiter = MaxWait(ExponentialBackoff[str](1, 1000), 3)
    assert [limiter.when("a") for _ in range(4)] == [1, 2, 3, 3]
    assert limiter.requeues("a") == 4
    limiter.forget("a")
    assert limiter.when("a") == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: ExponentialBackoff(-1.0),
        lambda: ExponentialBackoff(1.0, inf),
        lambda: FastSlow(nan, 1.0, 1),
        lambda: FastSlow(1.0, -1.0, 1),
        lambda: MaxWait(ExponentialBackoff(), nan),
        lambda: TokenBucket(HandClock(), rate=0),
        lambda: TokenBucket(HandClock(), rate=nan),
        lambda: TokenBucket(HandClock(), burst=0),
    ],
)
def test_invalid_arguments_are_rejected(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must be a finite, non-negative number of seconds|rate must be positive"):
        make()


# In the queue


def test_a_failing_key_waits_longer_each_time_until_it_is_forgotten() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(simulation.clock, limiter=ExponentialBackoff(1, 60))
        times = []
        for _ in range(4):
            queue.add_rate_limited("a")
            queue.done(await queue.get())
            times.append(simulation.clock.monotonic())
        assert times == [1, 3, 7, 15]
        assert queue.requeues("a") == 4
        queue.add_after("a", 1)
        queue.forget("a")  # of the limiter only: the delayed key is still added
        assert queue.requeues("a") == 0
        queue.done(await queue.get())
        queue.add_rate_limited("a")
        await queue.get()
        assert simulation.clock.monotonic() == 17

    simulation.run(main())


def test_the_failures_of_one_key_do_not_hold_back_another() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(simulation.clock, limiter=ExponentialBackoff(1, 60))
        for key in "aaabbc":
            queue.add_rate_limited(key)
            queue._delayed.clear()
        for key in "abc":
            queue.add_rate_limited(key)
        came = {}
        for _ in range(3):
            key = await queue.get()
            came[key] = simulation.clock.monotonic()
        assert came == {"a": 8, "b": 4, "c": 2}

    simulation.run(main())


def test_a_queue_limits_by_default_as_client_go_does_for_controllers() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: WorkQueue[int] = WorkQueue(simulation.clock)
        for key in range(150):
            queue.add_rate_limited(key)
        came = {}
        for _ in range(150):
            key = await queue.get()
            came[key] = simulation.clock.monotonic()
        assert [came[key] for key in (0, 99)] == pytest.approx([0.005, 0.005])
        assert [came[key] for key in (100, 149)] == pytest.approx([0.1, 5.0])

    simulation.run(main())


def test_the_limiters_of_sample_controller() -> None:
    clock = HandClock()
    limiter: MaxOf[str] = MaxOf(ExponentialBackoff(0.005, 1000), TokenBucket(clock, rate=50, burst=300))
    for _ in range(300):
        limiter.when("a")
        limiter.forget("a")
    assert limiter.when("a") == pytest.approx(0.02)
