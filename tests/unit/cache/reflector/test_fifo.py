"""The FIFO between reflector and store: order, batches, back-pressure."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.cache.store.test_store import pod

from ostinato.cache.reflector.fifo import BATCH, CAPACITY, Bookmark, Fifo, Put, Remove, ReplacedAll
from ostinato.cache.store.store import Store
from ostinato.world import Simulation


def run(scenario: Any) -> None:
    simulation = Simulation(1)
    simulation.run(scenario(simulation))


def test_deltas_keep_their_order_and_are_not_merged() -> None:
    async def scenario(simulation: Simulation) -> None:
        fifo = Fifo()
        a, b = pod("a"), pod("b")
        deltas = [Put(a), Put(a), Remove(a), Remove(a), Put(b), Remove(pod("unknown"))]
        for delta in deltas:
            fifo.put(delta)
        assert len(fifo) == 6
        assert await fifo.pop() == deltas
        assert len(fifo) == 0

    run(scenario)


def test_deltas_of_the_whole_store_are_a_batch_of_their_own() -> None:
    async def scenario(simulation: Simulation) -> None:
        fifo = Fifo()
        whole = ReplacedAll(Store().replacement(), "5")
        for delta in (Put(pod("a")), Bookmark("3"), Put(pod("b")), Put(pod("c")), whole, Bookmark("6")):
            fifo.put(delta)
        sizes = []
        for _ in range(5):
            taken = await fifo.pop()
            sizes.append(len(taken) if isinstance(taken, list) else type(taken).__name__)
        assert sizes == [1, "Bookmark", 2, "ReplacedAll", "Bookmark"]

    run(scenario)


def test_a_batch_has_a_thousand_changes_at_most() -> None:
    async def scenario(simulation: Simulation) -> None:
        fifo = Fifo()
        for _ in range(BATCH + 1):
            fifo.put(Put(pod("a")))
        assert [len(await fifo.pop()), len(await fifo.pop())] == [1000, 1]  # type: ignore[arg-type]

    run(scenario)


def test_take_waits_for_a_delta() -> None:
    async def scenario(simulation: Simulation) -> None:
        fifo = Fifo()
        taker = asyncio.ensure_future(fifo.pop())
        await simulation.clock.sleep(1)
        assert not taker.done()
        fifo.put(Bookmark("1"))
        fifo.put(Bookmark("2"))
        assert await taker == Bookmark("1")

    run(scenario)


def test_a_taker_that_is_cancelled_takes_nothing_with_it() -> None:
    async def scenario(simulation: Simulation) -> None:
        fifo = Fifo()
        taker = asyncio.ensure_future(fifo.pop())
        await simulation.clock.sleep(0)
        taker.cancel()
        fifo.put(Bookmark("1"))
        await asyncio.wait([taker])
        assert await fifo.pop() == Bookmark("1")

    run(scenario)


def test_put_waits_while_two_thousand_deltas_are_queued() -> None:
    async def scenario(simulation: Simulation) -> None:
        fifo = Fifo()
        entry = pod("a")
        for _ in range(CAPACITY - 1):
            fifo.put(Put(entry))
        assert not fifo.full
        await fifo.wait_for_room()
        fifo.put(Bookmark("1"))
        assert fifo.full
        putter = asyncio.ensure_future(fifo.wait_for_room())
        await simulation.clock.sleep(1)
        assert not putter.done()
        await fifo.pop()
        await putter
        assert not fifo.full

    run(scenario)
