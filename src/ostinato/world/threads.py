"""The real executor: a bounded thread pool with load statistics, and threads with their own event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar, TypeVarTuple

from ostinato.world.clock import Clock
from ostinato.world.executor import Executor, Load, NotInWorkerError, Thread, call_as_future
from ostinato.world.runner import LoopWorkers
from ostinato.world.workers import Call, Workers, outcome_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LOOP_CHECK_SECONDS: Final = 1.0  # how often a worker that waits looks whether its loop still exists

# The loop that called `run`, on which `block_on` runs coroutines; in the context of the function.
_calling_loop: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("ostinato.world.home")


class ThreadExecutor(Executor):
    def __init__(self, clock: Clock, workers: int | None = None) -> None:
        """`workers`: Defaults to the number of processors plus four, at most 32, as they mostly wait for I/O."""
        if workers is not None and workers < 1:
            raise ValueError(f"ThreadExecutor() workers is {workers}; it must be at least 1")
        self._clock = clock
        self._workers = workers or min(32, (os.cpu_count() or 1) + 4)
        self._pool = Workers(self._workers, "ostinato-worker")
        self._queued: dict[_Call, float] = {}  # since when, oldest first
        self._running: set[_Call] = set()

    async def run(self, func: Callable[[*Ts], T], *args: *Ts) -> T:
        queued = self._queued
        call = _Call(func, args, queued, self._running)
        queued[call] = self._clock.monotonic()
        try:
            self._pool.put(call)
            result: T = await call.outcome
            return result
        finally:
            queued.pop(call, None)  # a call cancelled while queued, or rejected

    def block_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        loop = _calling_loop.get(None)
        if loop is None or asyncio._get_running_loop() is not None:
            coroutine.close()
            raise NotInWorkerError
        try:
            outcome = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise
        while not _is_done(outcome):
            if loop.is_closed():  # it has dropped the coroutine
                if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                    coroutine.close()  # it would warn that it was never awaited
                raise RuntimeError("Event loop is closed")
        return outcome.result()

    def thread(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> Thread[T]:
        return _LoopThread(name, main)

    def load(self) -> Load:
        queued = tuple(self._queued.values())  # a copy: workers change it
        waited = self._clock.monotonic() - queued[0] if queued else 0.0
        return Load(self._workers, len(self._running), len(queued), waited)

    def separate(self) -> ThreadExecutor:
        return ThreadExecutor(self._clock, self._workers)

    def close(self) -> None:
        self._pool.close()


class _Call(Call):
    """A call of `run`. In `queued` until it is made or cancelled: whoever removes it decides."""

    __slots__ = ("_args", "_context", "_func", "_loop", "_queued", "_running", "outcome")

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], queued: dict[_Call, float], running: set[_Call]
    ) -> None:
        self._func = func
        self._args = args
        self._queued = queued
        self._running = running
        self._loop = loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(_calling_loop.set, loop)
        self.outcome: asyncio.Future[Any] = loop.create_future()

    def make(self) -> None:
        if self._queued.pop(self, None) is None:
            return
        self._running.add(self)
        result, error = self._context.run(outcome_of, call_as_future, self._func, *self._args)
        self._running.discard(self)
        self._deliver(self._set, result, error)

    def cancel(self) -> None:
        self._queued.pop(self, None)
        self._deliver(self.outcome.cancel)

    def _deliver(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(callback, *args)

    def _set(self, result: Any, error: BaseException | None) -> None:
        if self.outcome.done():  # the caller was cancelled
            return
        if error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(result)


def _is_done(outcome: concurrent.futures.Future[Any]) -> bool:
    """Wait for an outcome, for a while."""
    with suppress(concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
        outcome.exception(_LOOP_CHECK_SECONDS)
    return outcome.done()


class _LoopThread(Thread[T]):
    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.name = name
        self._main = main
        self._loop = asyncio.new_event_loop()  # created here, so that `call_soon` works before the thread has started
        self._loop.set_default_executor(LoopWorkers())  # not waited for at its end, e.g. for a DNS lookup
        self._task: asyncio.Task[T | None] | None = None  # this and the next are used by the thread only
        self._stopped = False
        self._outcome: concurrent.futures.Future[T | None] = concurrent.futures.Future()
        # A daemon: a process that exits with an error does not wait for its lease renewal.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._cancel)

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        self._loop.call_soon_threadsafe(callback, *args)

    async def join(self) -> T | None:
        # Shielded: a cancelled waiter must not cancel the outcome for the others.
        return await asyncio.shield(asyncio.wrap_future(self._outcome))

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                result = runner.run(self._body())
        except asyncio.CancelledError:
            self._outcome.set_result(None)
        except BaseException as error:  # noqa: BLE001 - raised by join()
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(result)

    async def _body(self) -> T | None:
        if self._stopped:
            return None
        self._task = asyncio.current_task()
        return await self._main()

    def _cancel(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
