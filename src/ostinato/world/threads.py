"""The real executor: a bounded thread pool with load statistics, and threads with their own event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import itertools
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar, TypeVarTuple

from ostinato.world.clock import Clock
from ostinato.world.executor import Executor, Load, NotInWorkerError, Thread, call_as_future
from ostinato.world.runner import LoopWorkers
from ostinato.world.workers import Workers

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

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
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # guards the two below
        self._queued: dict[int, float] = {}  # queued calls by number: since when, oldest first
        self._busy = 0

    async def run(self, func: Callable[[*Ts], T], *args: *Ts) -> T:
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(_calling_loop.set, loop)
        number = next(self._numbers)
        with self._lock:
            self._queued[number] = self._clock.monotonic()

        def work() -> T:
            with self._lock:
                self._queued.pop(number, None)
                self._busy += 1
            try:
                return context.run(lambda: call_as_future(func, *args))
            finally:
                with self._lock:
                    self._busy -= 1

        try:
            return await asyncio.wrap_future(self._pool.submit(work), loop=loop)
        finally:
            with self._lock:  # a call cancelled while queued, or rejected
                self._queued.pop(number, None)

    def block_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        loop = _calling_loop.get(None)
        if loop is None or asyncio._get_running_loop() is not None:
            coroutine.close()
            raise NotInWorkerError
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    def thread(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> Thread[T]:
        return _LoopThread(name, main)

    def load(self) -> Load:
        with self._lock:
            oldest = next(iter(self._queued.values()), None)
            busy, queued = self._busy, len(self._queued)
        return Load(self._workers, busy, queued, 0.0 if oldest is None else self._clock.monotonic() - oldest)

    def separate(self) -> ThreadExecutor:
        return ThreadExecutor(self._clock, self._workers)

    def close(self) -> None:
        self._pool.close()


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
