from __future__ import annotations

import asyncio

import pytest

from ostinato.plane.controllers.workloads.slow_start import slow_start


def test_batches_double_in_size() -> None:
    sizes: list[int] = []
    under_way = 0

    async def work(_: int) -> None:
        nonlocal under_way
        under_way += 1
        await asyncio.sleep(0)
        if under_way:
            sizes.append(under_way)
            under_way = 0

    asyncio.run(slow_start(range(12), work))
    assert sizes == [1, 2, 4, 5]


def test_batches_are_limited_in_size() -> None:
    most_at_once = under_way = 0

    async def work(_: int) -> None:
        nonlocal most_at_once, under_way
        under_way += 1
        most_at_once = max(most_at_once, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    asyncio.run(slow_start(range(40), work, max_batch=3))
    assert most_at_once == 3


def test_an_error_stops_after_its_batch() -> None:
    tried: list[int] = []

    async def work(piece: int) -> None:
        tried.append(piece)
        if piece == 1:
            raise ValueError(f"{piece} is refused")

    with pytest.raises(ValueError, match="1 is refused"):
        asyncio.run(slow_start(range(100), work))
    assert tried == [0, 1, 2]
