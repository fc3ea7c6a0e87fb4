"""Simulated executor: blocking functions run inline, in one thread, each at its own virtual time.

A call occupies a worker for `latency` and then runs at once. Calls are queued, overlap and finish out of order as in
threads, but never run concurrently: races inside of functions are not found. A thread with its own loop is a task on
the simulated loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from ostinato.world.executor import Executor, Load, NotInWorkerError, Thread, call_as_future
from ostinato.world.loop_task import LoopTask
from ostinato.world.simulated.loop import SimulatedLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_in_worker = contextvars.ContextVar("ostinato.world.in_worker", default=False)


class _Call(NamedTuple):
    func: Callable[..., Any]
    args: tuple[Any, ...]
    context: contextvars.Context
    outcome: asyncio.Future[Any]
    since: float


class SimulatedExecutor(Executor):
    def __init__(self, loop: SimulatedLoop, workers: int, latency: Callable[[], float]) -> None:
        """`latency`: returns the duration of the next call, in virtual seconds."""
        if workers < 1:
            raise ValueError(f"SimulatedExecutor() workers is {workers}; it must be at least 1")
        self._loop = loop
        self._workers = workers
        self._latency = latency
        self._queue: deque[_Call] = deque()  # queued calls; some may be cancelled
        self._busy = 0
        self._closed = False
        self._others: list[SimulatedExecutor] = []  # created by `separate`

    async def run(self, func: Callable[[*Ts], T], *args: *Ts) -> T:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        outcome: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(_Call(func, args, contextvars.copy_context(), outcome, self._loop.time()))
        self._start()
        return await outcome

    def block_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if not _in_worker.get() or asyncio._get_running_loop() is not None:
            coroutine.close()
            raise NotInWorkerError
        asyncio._set_running_loop(self._loop)
        try:
            return self._loop.run_nested(coroutine)
        except asyncio.CancelledError:
            raise concurrent.futures.CancelledError from None  # as in a thread
        finally:
            asyncio._set_running_loop(None)

    def thread(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> Thread[T]:
        return LoopTask(name, main, self._loop)

    def load(self) -> Load:
        waiting = [call for call in self._queue if not call.outcome.done()]
        longest = self._loop.time() - waiting[0].since if waiting else 0.0
        return Load(self._workers, self._busy, len(waiting), longest)

    def separate(self) -> SimulatedExecutor:
        other = SimulatedExecutor(self._loop, self._workers, self._latency)
        self._others.append(other)
        return other

    def close(self) -> None:
        self._closed = True
        for call in self._queue:
            call.outcome.cancel()
        self._queue.clear()

    def abandon(self) -> None:
        """Drop all calls after the end of a run."""
        self._queue.clear()
        self._busy = 0
        for other in self._others:
            other.abandon()

    def _start(self) -> None:
        while self._queue and self._busy < self._workers:
            call = self._queue.popleft()
            if not call.outcome.done():
                self._busy += 1
                self._loop.call_later(self._latency(), self._finish, call, context=call.context)

    def _finish(self, call: _Call) -> None:
        # As in a thread there is no running loop, and no current task, so that `block_on` is allowed.
        asyncio._set_running_loop(None)
        _in_worker.set(True)
        try:
            result = call_as_future(call.func, *call.args)
        except concurrent.futures.CancelledError:
            call.outcome.cancel()
        except Exception as error:  # noqa: BLE001 - raised in the caller
            if not call.outcome.done():
                call.outcome.set_exception(error)
        else:
            if not call.outcome.done():
                call.outcome.set_result(result)
        finally:
            asyncio._set_running_loop(self._loop)
            self._busy -= 1
            self._start()
