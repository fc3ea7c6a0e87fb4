"""Many workers, producers and cancellations, interleaved by a seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from ostinato.queue import ExponentialBackoff, QueueShutDown, WorkQueue
from ostinato.world import Simulation

KEYS = 12
CHANGES = 150


class Plant:
    """Producers raise the version of a key and add it; a worker reads the version when it begins, and records it as
    processed when it ends."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.queue: WorkQueue[int] = WorkQueue(simulation.clock, limiter=ExponentialBackoff(0.01, 1.0))
        self.wanted: Counter[int] = Counter()
        self.processed: Counter[int] = Counter()
        self.under_way: set[int] = set()

    async def produce(self, number: int) -> None:
        rng = self.simulation.rng.fork(f"producer-{number}")
        for _ in range(CHANGES):
            key = rng.randrange(KEYS)
            self.wanted[key] += 1
            match rng.randrange(4):
                case 0:
                    self.queue.add_after(key, rng.random())
                case 1:
                    self.queue.add_rate_limited(key, rng.randrange(3))
                case _:
                    self.queue.add(key, rng.randrange(3) - 100)
            if rng.random() < 0.5:
                await self.simulation.clock.sleep(rng.random() / 10)

    async def work(self, number: int) -> None:
        rng = self.simulation.rng.fork(f"worker-{number}")
        with suppress(QueueShutDown):
            while True:
                async with self.queue.item() as key:
                    assert key not in self.under_way, "a key is processed by two workers"
                    self.under_way.add(key)
                    try:
                        version = self.wanted[key]
                        await self.simulation.clock.sleep(rng.random() / 5 if rng.random() < 0.7 else 0)
                        if rng.random() < 0.2:
                            self.queue.add_rate_limited(key, self.queue.priority_of(key))
                        else:
                            self.processed[key] = version
                            self.queue.forget(key)
                    except asyncio.CancelledError:
                        self.queue.add(key)  # a worker requeues what it did not finish
                        raise
                    finally:
                        self.under_way.discard(key)

    async def disturb(self, workers: list[asyncio.Task[None]], group: asyncio.TaskGroup) -> None:
        """Cancel workers at random points, and start others."""
        rng = self.simulation.rng.fork("disturb")
        for number in range(40):
            await self.simulation.clock.sleep(rng.random() / 5)
            workers.pop(rng.randrange(len(workers))).cancel()
            workers.append(group.create_task(self.work(100 + number)))


@pytest.mark.parametrize("seed", range(25))
def test_a_key_is_never_processed_by_two_workers_and_no_change_is_lost(seed: int) -> None:
    simulation = Simulation(seed, interleave=True)
    plant = Plant(simulation)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(plant.work(number)) for number in range(6)]
            disturbance = group.create_task(plant.disturb(workers, group))
            producers = [group.create_task(plant.produce(number)) for number in range(3)]
            await asyncio.wait([disturbance, *producers])
            while plant.processed != plant.wanted:
                await simulation.clock.sleep(1)
            await plant.queue.shut_down_with_drain()
            assert not plant.under_way

    simulation.run(main())


@pytest.mark.parametrize("seed", range(25))
def test_workers_that_time_out_in_get_lose_no_key(seed: int) -> None:
    simulation = Simulation(seed, interleave=True)
    queue: WorkQueue[int] = WorkQueue(simulation.clock)
    got: list[int] = []

    async def impatient() -> None:
        with suppress(TimeoutError):
            async with simulation.clock.timeout(simulation.rng.random()):
                while True:
                    got.append(await queue.get())  # nothing can be cancelled between these two
                    await simulation.clock.sleep(0)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for key in range(300):
                group.create_task(impatient())
                queue.add(key)
                if simulation.rng.random() < 0.3:
                    await simulation.clock.sleep(simulation.rng.random())
        queue.shut_down()
        with suppress(QueueShutDown):
            while True:
                got.append(await queue.get())

    simulation.run(main())
    assert sorted(got) == list(range(300))
