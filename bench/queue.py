"""Work queues: keys per second of one worker on one core.

The peers are asyncio's queues, which neither deduplicate keys nor keep a key from two workers, and, if Go is installed,
client-go's work queue and controller-runtime's priority queue (bench/go/queue), built and run here.
"""

import asyncio
import json
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

from bench.timing import ROUNDS
from ostinato.queue import LOW_PRIORITY, QueueStatistics, WorkQueue
from ostinato.world import World

COUNT = 100_000
KEYS = [f"default/pod-{number}" for number in range(COUNT)]
CLOCK = World.real().clock
GO = Path(__file__).parent / "go" / "queue"

Contender = Callable[[], Awaitable[None]]


def main() -> None:
    go, reason = _measure_go()
    with asyncio.Runner() as runner:
        _compare(runner, "fill and drain", go, ostinato=_fill_and_drain, asyncio_queue=_fill_and_drain_asyncio)
        _compare(runner, "one at a time", go, ostinato=_one_at_a_time, asyncio_queue=_one_at_a_time_asyncio)
        _compare(runner, "16 workers wait", go, ostinato=_workers, asyncio_queue=_workers_asyncio)
        _compare(runner, "with metrics", go, ostinato=_with_metrics)
        _compare(runner, "priorities", go, ostinato=_priorities, asyncio_priority_queue=_priorities_asyncio)
        _compare(runner, "delayed add", go, ostinato=_delayed_add, asyncio_timers=_delayed_add_asyncio)
    if reason:
        print(f"  skipped Go: {reason}")


def _compare(runner: asyncio.Runner, title: str, go: dict[str, float], **contenders: Contender) -> None:
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, contender in contenders.items():
            best[name] = min(best[name], runner.run(_seconds(contender)) / COUNT)
    if title in go:
        best["Go"] = go[title] / 1e9
    print(f"\nWork queue, {title}")
    for name, seconds in best.items():
        ratio = best["ostinato"] / seconds
        print(f"  {name.replace('_', ' '):<22}  {1 / seconds:10,.0f} keys/s  {ratio:6.2f} x ostinato")


async def _seconds(contender: Contender) -> float:
    begun = perf_counter()
    await contender()
    return perf_counter() - begun


def _measure_go() -> tuple[dict[str, float], str]:
    """Return nanoseconds per key of each workload, or the reason why there are none."""
    if shutil.which("go") is None:
        return {}, "there is no go command"
    with tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory) / "queue")
        build = subprocess.run(["go", "build", "-o", program, "."], cwd=GO, capture_output=True, text=True, check=False)
        if build.returncode:
            return {}, build.stderr.strip().splitlines()[-1]
        run = subprocess.run([program, str(COUNT)], capture_output=True, text=True, check=True)
    results: dict[str, float] = json.loads(run.stdout)
    return results, ""


async def _fill_and_drain() -> None:
    await _fill_and_drain_with(WorkQueue(CLOCK))


async def _with_metrics() -> None:
    await _fill_and_drain_with(WorkQueue(CLOCK, metrics=QueueStatistics("bench", CLOCK)))


async def _fill_and_drain_with(queue: WorkQueue[str]) -> None:
    for key in KEYS:
        queue.add(key)
    for _ in KEYS:
        queue.done(await queue.get())


async def _fill_and_drain_asyncio() -> None:
    queue: asyncio.Queue[str] = asyncio.Queue()
    for key in KEYS:
        queue.put_nowait(key)
    for _ in KEYS:
        await queue.get()
        queue.task_done()


async def _one_at_a_time() -> None:
    queue: WorkQueue[str] = WorkQueue(CLOCK)
    for key in KEYS:
        queue.add(key)
        queue.done(await queue.get())


async def _one_at_a_time_asyncio() -> None:
    queue: asyncio.Queue[str] = asyncio.Queue()
    for key in KEYS:
        queue.put_nowait(key)
        await queue.get()
        queue.task_done()


async def _workers() -> None:
    queue: WorkQueue[str] = WorkQueue(CLOCK)

    async def work() -> None:
        while True:
            queue.done(await queue.get())

    await _feed(work, queue.add)


async def _workers_asyncio() -> None:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def work() -> None:
        while True:
            await queue.get()
            queue.task_done()

    await _feed(work, queue.put_nowait)


async def _feed(work: Callable[[], Awaitable[None]], add: Callable[[str], None]) -> None:
    workers = [asyncio.ensure_future(work()) for _ in range(16)]
    await asyncio.sleep(0)
    for number, key in enumerate(KEYS):
        add(key)
        if number % 16 == 15:
            await asyncio.sleep(0)  # all sixteen wake, and wait again
    await asyncio.sleep(0)
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)


async def _priorities() -> None:
    queue: WorkQueue[str] = WorkQueue(CLOCK)
    for number, key in enumerate(KEYS):
        queue.add(key, LOW_PRIORITY)
        if number % 4 == 0:
            queue.add(key, 0)
    for _ in KEYS:
        queue.done(await queue.get())


async def _priorities_asyncio() -> None:
    queue: asyncio.PriorityQueue[tuple[int, int, str]] = asyncio.PriorityQueue()
    for number, key in enumerate(KEYS):
        queue.put_nowait((-LOW_PRIORITY if number % 4 else 0, number, key))
    for _ in KEYS:
        await queue.get()
        queue.task_done()


async def _delayed_add() -> None:
    queue: WorkQueue[str] = WorkQueue(CLOCK)
    for number, key in enumerate(KEYS):
        queue.add_after(key, 3600 + number % 1000)
    queue.shut_down()


async def _delayed_add_asyncio() -> None:
    queue: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    timers = [loop.call_later(3600 + number % 1000, queue.put_nowait, key) for number, key in enumerate(KEYS)]
    for timer in timers:
        timer.cancel()
