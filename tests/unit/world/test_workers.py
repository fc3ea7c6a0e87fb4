"""Workers: bounded, in order, and no reason for a process to go on."""

from __future__ import annotations

import asyncio
import gc
import queue
import subprocess
import sys
import threading
import weakref
from concurrent.futures import CancelledError, Future

import pytest

from ostinato.world import World
from ostinato.world.workers import Workers

SECONDS = 10.0  # after which a test that hangs fails

STUCK = """
import asyncio, threading
from ostinato.world import World

async def main():
    world = World.real()
    begun = threading.Event()
    def stuck():
        begun.set()
        threading.Event().wait()
    call = asyncio.create_task(world.executor.run(stuck))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    call.cancel()
    world.executor.close()

asyncio.run(main())
print("over")
"""


def test_a_process_ends_though_a_call_never_returns() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_no_more_threads_begin_than_there_may_be_and_idle_ones_are_used_again() -> None:
    workers, gate = Workers(3, "test-bounded"), threading.Event()
    names: Future[str] = workers.submit(lambda: threading.current_thread().name)
    assert names.result(SECONDS) == "test-bounded_0"
    calls = [workers.submit(lambda: (gate.wait(SECONDS), threading.current_thread().name)[1]) for _ in range(9)]
    assert len([each for each in threading.enumerate() if each.name.startswith("test-bounded_")]) == 3
    gate.set()
    assert {call.result(SECONDS) for call in calls} <= {f"test-bounded_{number}" for number in range(3)}
    workers.close()


def test_without_further_threads_the_existing_ones_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, gate = Workers(3, "test-few"), threading.Event()
    first = workers.submit(lambda: gate.wait(SECONDS))
    with monkeypatch.context() as system:
        system.setattr(threading.Thread, "start", _refused)
        calls = [workers.submit(lambda: threading.current_thread().name) for _ in range(5)]
    gate.set()
    assert first.result(SECONDS)
    assert {call.result(SECONDS) for call in calls} == {"test-few_0"}
    gate.clear()
    busy = [workers.submit(lambda: gate.wait(SECONDS)) for _ in range(9)]
    gate.set()
    assert all(call.result(SECONDS) for call in busy)
    workers.close()


def test_a_call_rejected_for_lack_of_a_thread_is_not_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, made = Workers(3, "test-none"), list[str]()
    with monkeypatch.context() as system:
        system.setattr(threading.Thread, "start", _refused)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            workers.submit(lambda: made.append("refused"))
    workers.submit(lambda: made.append("taken")).result(SECONDS)
    assert made == ["taken"]
    workers.close()


def _refused(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_calls_are_made_in_order_by_one_worker() -> None:
    workers = Workers(1, "test-order")
    made: list[int] = []
    calls = [workers.submit(lambda number=number: made.append(number)) for number in range(100)]  # type: ignore[misc]
    for call in calls:
        call.result(SECONDS)
    assert made == list(range(100))
    workers.close()


def test_errors_of_calls_are_returned_and_the_worker_continues() -> None:
    workers = Workers(1, "test-errors")
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result(SECONDS)
    assert workers.submit(lambda: 1).result(SECONDS) == 1
    workers.close()


def test_closing_drops_what_waits_and_takes_no_more() -> None:
    workers, begun, gate = Workers(1, "test-close"), threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return gate.wait(SECONDS)

    running = workers.submit(wait)
    assert begun.wait(SECONDS)
    waiting = workers.submit(lambda: True)
    workers.close()
    with pytest.raises(CancelledError):
        waiting.result(SECONDS)
    with pytest.raises(RuntimeError, match="after shutdown"):
        workers.submit(lambda: True)
    gate.set()
    assert running.result(SECONDS) is True


def test_threads_end_when_the_workers_are_closed_or_forgotten() -> None:
    def threads() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name.startswith("test-end_")]

    for forget in (False, True):
        workers, barrier = Workers(2, "test-end"), threading.Barrier(2)
        for call in [workers.submit(lambda: barrier.wait(SECONDS)) for _ in range(2)]:  # noqa: B023 - made in this round
            call.result(SECONDS)
        alive = threads()
        assert len(alive) == 2
        if forget:
            gone = weakref.ref(workers)
            del workers
            gc.collect()
            assert gone() is None
        else:
            workers.close()
        for thread in alive:
            thread.join(SECONDS)
        assert threads() == []


def test_a_worker_that_asks_a_closed_loop_gets_an_error_and_leaves_no_coroutine() -> None:
    world, closed, outcome = World.real(), threading.Event(), queue.SimpleQueue[BaseException]()

    async def ignored() -> None:
        """Never runs."""

    def work() -> None:
        closed.wait(SECONDS)
        try:
            world.executor.block_on(ignored())
        except RuntimeError as error:
            outcome.put(error)

    async def main() -> None:
        call = asyncio.create_task(world.executor.run(work))
        while not world.executor.load().busy:  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.001)
        call.cancel()

    asyncio.run(main())
    closed.set()
    assert "closed" in str(outcome.get(timeout=SECONDS))
    gc.collect()  # a coroutine that was never awaited would warn
    world.executor.close()


@pytest.mark.parametrize("started", [False, True])
def test_a_worker_whose_loop_ends_before_the_answer_gets_an_error(started: bool) -> None:
    world, stopped, outcome = World.real(), threading.Event(), queue.SimpleQueue[BaseException]()
    asked = threading.Event()

    async def endless() -> None:
        asked.set()
        await asyncio.get_running_loop().create_future()

    def work() -> None:
        stopped.wait(SECONDS)
        try:
            world.executor.block_on(endless())
        except RuntimeError as error:
            outcome.put(error)

    async def main() -> None:
        call = asyncio.create_task(world.executor.run(work))
        while not world.executor.load().busy:  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.001)
        call.cancel()

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # a task that is destroyed is reported there
    loop.run_until_complete(main())
    stopped.set()
    while not loop._ready:  # type: ignore[attr-defined]  # the question of the worker, which the loop has not seen
        threading.Event().wait(0.001)
    if started:
        loop.run_until_complete(asyncio.sleep(0))
        assert asked.is_set()
    loop.close()
    gc.collect()
    assert "closed" in str(outcome.get(timeout=SECONDS))
    world.executor.close()
