"""A program with much that could go differently from run to run. Prints the digest of its trace; takes a seed."""

from __future__ import annotations

import asyncio
import sys

from ostinato.world import Simulation, World


async def worker(name: str, world: World, queue: asyncio.Queue[str], log: list[str]) -> None:
    while True:
        item = await queue.get()
        await world.clock.sleep(world.rng.jitter(0.1, 2.0))
        size = await world.executor.run(len, item)
        log.append(f"{name} {item} {size} {world.ids.uid()} {world.clock.now().isoformat()}")
        queue.task_done()


async def failing_group(world: World) -> None:
    """A task group aborts in the order of a set, and `wait` gives sets back."""

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await world.clock.sleep(0.01)

    async def fails() -> None:
        await world.clock.sleep(0.5)
        raise KeyError("on purpose")

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(waits())
            group.create_task(fails())
    except* KeyError:
        pass
    sleepers = [asyncio.create_task(world.clock.sleep(world.rng.random())) for _ in range(20)]
    _, pending = await asyncio.wait(sleepers, timeout=0.5)
    for task in pending:
        task.cancel()
        await asyncio.sleep(0)


async def program(simulation: Simulation) -> list[str]:
    log: list[str] = []
    queue: asyncio.Queue[str] = asyncio.Queue()
    machines = [simulation.machine(name, rate=1 + simulation.rng.random() / 10) for name in ("a", "b", "c")]
    workers = [
        asyncio.create_task(worker(f"worker-{number}", machine, queue, log))
        for number, machine in enumerate(machines)
        for _ in range(3)
    ]
    for _ in range(50):
        queue.put_nowait(simulation.ids.suffix(simulation.rng.randrange(1, 10)))
    await failing_group(simulation)
    await queue.join()
    for task in set(workers):
        task.cancel()
    simulation.note(f"{len(log)} items")
    return log


def simulate(seed: int, *, interleave: bool = False) -> tuple[Simulation, list[str]]:
    simulation = Simulation(seed, interleave=interleave, workers=2, latency=lambda rng: rng.random() / 100)
    return simulation, simulation.run(program(simulation))


if __name__ == "__main__":
    simulation, _ = simulate(int(sys.argv[1]), interleave=True)
    print(simulation.trace.digest())
