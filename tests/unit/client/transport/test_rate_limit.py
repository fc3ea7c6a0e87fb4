"""The rate limit, in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ostinato.client.transport.rate_limit import TokenBucket
from ostinato.world import Simulation


def test_a_burst_passes_immediately_and_the_rest_in_order_at_the_rate() -> None:
    simulation = Simulation(1)

    async def main() -> list[tuple[int, float]]:
        bucket = TokenBucket(simulation.clock, qps=5, burst=10)
        passed: list[tuple[int, float]] = []

        async def send(number: int) -> None:
            await bucket.wait(f"request {number}")
            passed.append((number, round(simulation.clock.monotonic(), 6)))

        await asyncio.gather(*[send(number) for number in range(13)])
        return passed

    passed = simulation.run(main())
    assert passed == [(number, 0.0) for number in range(10)] + [(10, 0.2), (11, 0.4), (12, 0.6)]


def test_unused_time_fills_the_bucket_no_further_than_the_burst() -> None:
    simulation = Simulation(1)

    async def main() -> list[float]:
        bucket = TokenBucket(simulation.clock, qps=1, burst=2)
        await simulation.clock.sleep(1000)
        return [await bucket.wait("request") for _ in range(3)]

    assert simulation.run(main()) == [0.0, 0.0, 1.0]


def test_a_cancelled_wait_returns_its_token() -> None:
    simulation = Simulation(1)

    async def main() -> float:
        bucket = TokenBucket(simulation.clock, qps=1, burst=1)
        await bucket.wait("first")
        for _ in range(5):
            with pytest.raises(TimeoutError):
                async with simulation.clock.timeout(0.1):
                    await bucket.wait("impatient")
        return await bucket.wait("last")

    assert simulation.run(main()) == pytest.approx(0.5)


def test_long_waits_are_logged_loudly_at_most_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    simulation = Simulation(1)

    async def main() -> None:
        bucket = TokenBucket(simulation.clock, qps=4, burst=1)
        await asyncio.gather(*[bucket.wait(f"request {number}") for number in range(13)])

    with caplog.at_level(logging.DEBUG, "ostinato.client.transport.rate_limit"):
        simulation.run(main())
    loud = [record.message for record in caplog.records if record.levelno == logging.INFO]
    assert loud == [
        "request delayed by client-side rate limit request=request 5 delay=1.2s",
        "request delayed by client-side rate limit request=request 9 delay=2.2s",
    ]
    assert len(caplog.records) == 12


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0), (float("inf"), 1), (float("nan"), 1)])
def test_invalid_rates_are_rejected(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="qps must be positive"):
        TokenBucket(Simulation(1).clock, qps, burst)
