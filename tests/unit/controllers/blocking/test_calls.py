"""Calls from a worker to an event loop that has ended."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
import warnings

from ostinato.controllers.blocking.calls import BlockingCalls
from ostinato.world import World

SECONDS = 30


def test_a_call_to_a_closed_loop_fails_and_leaves_no_coroutine() -> None:
    world, closed = World.real(), threading.Event()
    outcome: queue.SimpleQueue[tuple[str, list[str]]] = queue.SimpleQueue()
    calls = BlockingCalls(world.executor, lambda: None)

    async def read() -> None:
        """Never runs."""

    def work() -> None:
        closed.wait(SECONDS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                calls.wait(read())
                message = ""
            except RuntimeError as error:
                message = str(error)
            gc.collect()  # a coroutine that was never awaited would warn
        outcome.put((message, [str(each.message) for each in caught]))

    async def main() -> None:
        call = asyncio.create_task(world.executor.run(work))
        while not world.executor.load().busy:  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.001)
        call.cancel()

    asyncio.run(main())
    closed.set()
    message, caught = outcome.get(timeout=SECONDS)
    assert "closed" in message
    assert caught == []
    world.executor.close()
