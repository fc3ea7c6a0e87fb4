"""The same calls at the same times, in client-go v0.36.4 and in this queue.

tests/data/queue/traces.json holds random calls of its rate limiting work queue (5 ms to 1 s for each key) in virtual
time, with what each answered and how long the queue was after it. Steps are 7 microseconds apart, so that no two keys
become ready at the same moment, for which client-go has no rule.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ostinato.queue import ExponentialBackoff, QueueShutDown, WorkQueue
from ostinato.world import Simulation

TRACES = json.loads((Path(__file__).parents[2] / "data" / "queue" / "traces.json").read_text())


@pytest.mark.parametrize("trace", TRACES, ids=range(len(TRACES)))
def test_a_queue_behaves_like_client_gos(trace: list[Any]) -> None:
    simulation = Simulation(0)

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(simulation.clock, limiter=ExponentialBackoff(0.005, 1.0))
        for number, (operation, key, micros, answer, length) in enumerate(trace):
            what = f"step {number}: {operation} {key}"
            match operation:
                case "get" if answer is None:
                    with pytest.raises(QueueShutDown):
                        await queue.get()
                case "get":
                    assert await queue.get() == answer, what
                case "sleep":
                    await simulation.clock.sleep(micros / 1e6)
                case "add_after":
                    queue.add_after(key, micros / 1e6)
                case "requeues":
                    assert queue.requeues(key) == answer, what
                case "shut_down":
                    queue.shut_down()
                case _:
                    getattr(queue, operation)(key)
            await simulation.clock.sleep(7e-6)
            assert len(queue) == length, what

    simulation.run(main())
