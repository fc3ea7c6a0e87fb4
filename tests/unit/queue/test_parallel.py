"""Parallel work on pieces. Number 145 of the acceptance list."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.queue import parallelize
from ostinato.world import Simulation


@pytest.mark.parametrize(("pieces", "workers"), [(0, 3), (1, 3), (3, 3), (10, 3), (10, 1), (10, 100)])
def test_each_piece_is_worked_on_once_by_at_most_so_many_at_a_time(pieces: int, workers: int) -> None:
    simulation = Simulation(0, interleave=True)
    begun: list[int] = []
    most = now = 0

    async def work(piece: int) -> None:
        nonlocal most, now
        begun.append(piece)
        now += 1
        most = max(most, now)
        await simulation.clock.sleep(simulation.rng.random())
        now -= 1

    simulation.run(parallelize(range(pieces), work, workers=workers))
    assert sorted(begun) == list(range(pieces))
    assert most == min(pieces, workers)
    if workers == 1:
        assert begun == list(range(pieces))


def test_nothing_is_begun_after_the_caller_was_cancelled() -> None:
    simulation = Simulation(0)
    begun: list[int] = []

    async def work(piece: int) -> None:
        begun.append(piece)
        await simulation.clock.sleep(1)

    async def main() -> None:
        task = asyncio.create_task(parallelize(range(1000), work, workers=4))
        await simulation.clock.sleep(2.5)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    simulation.run(main())
    assert begun == list(range(12))


def test_nothing_is_begun_after_a_piece_failed() -> None:
    simulation = Simulation(0)
    begun: list[int] = []

    async def work(piece: int) -> None:
        begun.append(piece)
        await simulation.clock.sleep(1)
        if piece == 5:
            raise RuntimeError("five")

    with pytest.raises(ExceptionGroup) as caught:
        simulation.run(parallelize(range(1000), work, workers=4))
    assert [str(error) for error in caught.value.exceptions] == ["five"]
    assert len(begun) < 12


def test_no_workers_are_refused() -> None:
    async def work(_: int) -> None: ...

    with pytest.raises(ValueError, match="0 workers cannot work"):
        Simulation(0).run(parallelize([1], work, workers=0))
