"""Supervision: background work is restarted, and its failures are logged."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest

from ostinato.world import Simulation
from ostinato.world.supervision import supervised


def test_work_that_fails_is_logged_and_run_again_later_and_later(caplog: pytest.LogCaptureFixture) -> None:
    world, began = Simulation(1), list[float]()

    async def main() -> None:
        async def work() -> None:
            began.append(world.clock.monotonic())
            if len(began) == 9:
                await world.clock.sleep(100)  # a long run: the next failure is a first one again
            if len(began) < 11:
                raise ValueError("broken")

        await supervised("the work", work, world.clock)

    with caplog.at_level(logging.ERROR):
        world.run(main())
    pauses = [round(after - before) for before, after in pairwise(began)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 101, 2]
    assert len(caplog.records) == 10
    assert "task=the work" in caplog.messages[0]
    assert caplog.records[0].exc_info is not None


def test_cancelled_work_is_not_run_again() -> None:
    world, runs = Simulation(1), list[int]()

    async def main() -> None:
        async def work() -> None:
            runs.append(1)
            await world.clock.sleep(10)

        task = asyncio.get_running_loop().create_task(supervised("the work", work, world.clock))
        await world.clock.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    world.run(main())
    assert runs == [1]
