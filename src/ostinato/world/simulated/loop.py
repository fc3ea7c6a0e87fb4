"""Simulated event loop: asyncio in virtual time, in one thread, deterministic.

- Everything in asyncio that is not I/O works unchanged: sleep, timeout, wait_for, gather, TaskGroup, Event, Queue.
- Sockets, processes, signals and other threads raise `SimulationError`.
- `DeadlockError` if no callback is ready and no timer is set; `LivelockError` if a run exceeds its `Limits`.
- Unhandled errors are collected in `failures`; that of a callback ends the run immediately.
- Tasks and futures hash by number, so that sets of them, such as asyncio's own, have a deterministic order. Garbage is
  collected at fixed steps, so that finalizers run at deterministic times.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from ostinato.world.simulated import waiting
from ostinato.world.simulated.agenda import Agenda, name_of
from ostinato.world.simulated.errors import BackgroundError, DeadlockError, LivelockError, SimulationError
from ostinato.world.simulated.garbage import manual_collection
from ostinato.world.simulated.tasks import NumberedFuture, NumberedTask
from ostinato.world.simulated.trace import Trace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_STEPS_BETWEEN_COLLECTIONS = 20_000
_STEPS_TO_WIND_DOWN = 100_000
_TASKS = 1_000
_MAX_NESTING = 80  # each level uses some frames of Python's stack


class Limits(NamedTuple):
    """Limits of one run."""

    time: float = 86_400.0  # virtual seconds
    steps: int = 5_000_000


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, agenda: Agenda, trace: Trace, limits: Limits) -> None:
        self.failures: list[Exception] = []
        self.blocking: Callable[..., Coroutine[Any, Any, Any]] | None = None  # used by run_in_executor
        self._agenda = agenda
        self._trace = trace
        self._limits = limits
        self._time_limit, self._step_limit = math.inf, sys.maxsize  # of the current run
        self._steps = 0
        self._steps_when_time_moved = 0
        self._nested = 0  # number of run_nested calls on the stack
        self._task_numbers = itertools.count(1)
        self._generator_numbers = itertools.count(1)
        self._future_numbers = itertools.count(1)
        self.hashes = itertools.count(1)  # of tasks
        self._tasks: list[weakref.ref[asyncio.Task[Any]]] = []  # in the order of their creation
        self._tasks_limit = _TASKS  # length of this list at which those that are gone are removed from it
        self._generators: weakref.WeakValueDictionary[int, AsyncGenerator[Any, Any]] = weakref.WeakValueDictionary()
        self._task_factory: Any = None  # Any: asyncio's types of these two are private
        self._exception_handler: Any = None
        self._thread: int | None = None  # that runs the loop, while it runs
        self._stopping = False
        self._closed = False

    def time(self) -> float:
        return self._agenda.time

    # Scheduling

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self._closed:
            self._check_open()
        handle = asyncio.Handle(callback, args, self, context)
        self._agenda.add(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self._thread is not None and threading.get_ident() != self._thread:
            raise SimulationError(
                f"{name_of(callback)} was scheduled by another thread; a simulation is single-threaded"
            )
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._agenda.time + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed:
            self._check_open()
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._agenda.add_timer(timer)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._agenda.timer_was_cancelled(handle)

    def create_future(self) -> asyncio.Future[Any]:
        future: NumberedFuture[Any] = NumberedFuture(loop=self)
        future.number = next(self._future_numbers)
        return future

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        if self._closed:
            self._check_open()
        number = next(self._task_numbers)
        if self._task_factory is not None:
            if context is not None:
                options["context"] = context
            task: asyncio.Task[Any] = self._task_factory(self, coro, **options)
            if name is not None:
                task.set_name(name)
        else:
            # asyncio numbers tasks per process, so its default names differ between runs.
            label = f"{getattr(coro, '__name__', 'task')}-{number}" if name is None else str(name)
            task = NumberedTask(coro, loop=self, name=label, context=context, **options)
        self._tasks.append(weakref.ref(task))
        if len(self._tasks) > self._tasks_limit:
            self._tasks = [each for each in self._tasks if each() is not None]
            self._tasks_limit = 2 * len(self._tasks) + _TASKS
        return task

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        if executor is not None or self.blocking is None:
            raise SimulationError("run_in_executor() with an executor in a simulation; pass None for the simulated one")
        return self.create_task(self.blocking(func, *args), name=name_of(func))

    # Running

    def run_forever(self) -> None:
        self.check_idle()
        self._set_limits(self._limits.steps)
        self._stopping = False
        self._run_until(None)

    def run_until_complete(self, future: Any) -> Any:
        task = future if asyncio.isfuture(future) else self.create_task(future)
        if self.run_task(task):
            return task.result()
        if self.failures:
            raise BackgroundError("a callback failed", self.take_failures())
        raise RuntimeError("Event loop stopped before Future completed.")

    def run_task(self, task: asyncio.Future[Any], until: float | None = None) -> bool:
        """Run until `task` is done, for `until` virtual seconds, or until a callback fails; return if it is done."""
        task.add_done_callback(self._stop_when_done)
        timer = None if until is None else self.call_later(until, self.stop)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._stop_when_done)
            if timer is not None:
                timer.cancel()
        return task.done()

    def run_nested(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Within a simulated worker: run the loop until the coroutine is done, and return its result.

        - The coroutine is cancelled if the run ends first.
        - Nested calls end in reverse order, as they share one stack: one that waits for an earlier one never ends.
        """
        if self._nested == _MAX_NESTING:
            coroutine.close()
            raise SimulationError(f"more than {_MAX_NESTING} workers wait in block_on(); use fewer workers")
        task: asyncio.Task[T] = self.create_task(coroutine)
        self._nested += 1
        try:
            while not task.done():
                if self._stopping:  # as when a real loop ends before its workers
                    task.cancel()
                self._step()
        finally:
            self._nested -= 1
        return task.result()

    def wind_down(self) -> None:
        """Cancel all tasks and wait for them, close generators, drop timers. Errors are added to `failures`."""
        self._set_limits(_STEPS_TO_WIND_DOWN)
        self._stopping = True
        try:
            while remaining := self.pending_tasks():
                for task in remaining:
                    task.cancel()
                self._run_until(_AllDone(remaining))
            closing = self.create_task(self.shutdown_asyncgens())
            self._run_until(closing.done)
        except SimulationError as error:
            self._fail(error, "tasks did not end after cancellation")
        self._agenda.clear()
        self.collect_failures()
        self.forget_tasks()

    def forget_tasks(self) -> None:
        """Remove all tasks from asyncio's set of tasks, in which those of later simulations have the same hashes."""
        for task in self._living_tasks():
            asyncio._unregister_task(task)

    def collect_failures(self) -> None:
        """Add the errors of tasks whose result was not retrieved to `failures`."""
        for task in self._living_tasks():
            if task.done() and not task.cancelled() and getattr(task, "_log_traceback", False):
                self._fail(task.exception(), f"{task.get_name()} failed, and its result was not retrieved")

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that are not done, in the order of their creation."""
        return [task for task in self._living_tasks() if not task.done()]

    def _living_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for each in self._tasks if (task := each()) is not None]

    def take_failures(self) -> list[Exception]:
        failures, self.failures = self.failures, []
        return failures

    def stop(self) -> None:
        self._stopping = True

    def is_running(self) -> bool:
        return self._thread is not None

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        self._closed = True

    async def shutdown_asyncgens(self) -> None:
        for generator in list(self._generators.values()):
            await generator.aclose()

    async def shutdown_default_executor(self, *_: Any) -> None:
        """Do nothing: simulated workers end with the loop."""

    # What asyncio asks a loop for

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """Debug mode measures real time: it stays off."""

    def get_task_factory(self) -> Any:
        return self._task_factory

    def set_task_factory(self, factory: Any) -> None:
        self._task_factory = factory

    def get_exception_handler(self) -> Any:
        return self._exception_handler

    def set_exception_handler(self, handler: Any) -> None:
        self._exception_handler = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._exception_handler is not None:
            self._exception_handler(self, context)
        else:
            self.default_exception_handler(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        source = context.get("task") or context.get("future")
        name = f" ({source.get_name()})" if isinstance(source, asyncio.Task) else ""
        self._fail(context.get("exception"), f"{context.get('message', 'something failed')}{name}")
        if "handle" in context:
            self.stop()

    def _fail(self, error: BaseException | None, what: str) -> None:
        if not isinstance(error, Exception):
            cause, error = error, SimulationError(what)
            error.__cause__ = cause
        error.add_note(f"at {self.time():.6f} s of the simulation: {what}")
        self.failures.append(error)

    def check_idle(self) -> None:
        """Raise RuntimeError if the loop cannot be run now."""
        self._check_open()
        if self.is_running() or asyncio._get_running_loop() is not None:
            raise RuntimeError("a simulation cannot be run inside of a running event loop; await the coroutine instead")

    # Steps

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Event loop is closed")

    def _set_limits(self, steps: int) -> None:
        self._time_limit = self.time() + self._limits.time
        self._step_limit = self._steps + steps

    def _run_until(self, done: Callable[[], bool] | None) -> None:
        """`done`: called after every step. Defaults to whether the loop was stopped."""
        self._thread = threading.get_ident()
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generator_begins, finalizer=self._generator_is_dropped)
        asyncio._set_running_loop(self)
        try:
            with manual_collection():
                while not (self._stopping if done is None else done()):
                    self._step()
        finally:
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            self._thread = None

    def _step(self) -> None:
        handle = self._agenda.next()
        while handle is None:
            self._move_time()
            handle = self._agenda.next()
        if handle._cancelled:
            return
        self._steps += 1
        if self._steps > self._step_limit:
            raise LivelockError(f"not done after {self._limits.steps} steps{self._situation()}")
        if self._steps % _STEPS_BETWEEN_COLLECTIONS == 0:
            gc.collect()
        callback = handle._callback  # type: ignore[attr-defined]
        owner = getattr(callback, "__self__", None)
        self._trace.add(self._agenda.time, owner.get_name() if type(owner) is NumberedTask else name_of(callback))
        handle._run()

    def _move_time(self) -> None:
        when = self._agenda.next_time()
        if when == math.inf:
            raise DeadlockError(f"deadlock: no callback is ready and no timer is set{self._situation()}")
        if when > self._time_limit:
            raise LivelockError(f"not done after {self._limits.time:g} virtual seconds{self._situation()}")
        self._agenda.move_to(when)
        self._steps_when_time_moved = self._steps

    def _situation(self) -> str:
        lines = [f", at {self.time():.6f} s of the simulation"]
        still = self._steps - self._steps_when_time_moved
        if still > 10_000:
            lines.append(f"time has not advanced for {still} steps; a task yields without sleeping")
        lines += [f"failed before: {error!r}" for error in self.failures]
        lines += ["ran last: " + ", ".join(self._trace.last_names()), "not done:"]
        return "\n".join([*lines, waiting.describe(self.pending_tasks())])

    def _stop_when_done(self, _: asyncio.Future[Any]) -> None:
        self.stop()

    def _generator_begins(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators[next(self._generator_numbers)] = generator

    def _generator_is_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._closed:
            self.create_task(generator.aclose(), name="aclose")


class _AllDone:
    """Whether all tasks are done; called after every step, so finished tasks are not checked again."""

    def __init__(self, tasks: list[asyncio.Task[Any]]) -> None:
        self._tasks = tasks

    def __call__(self) -> bool:
        while self._tasks and self._tasks[-1].done():
            self._tasks.pop()
        return not self._tasks


def _unavailable(name: str) -> Callable[..., object]:
    def unavailable(*_args: object, **_options: object) -> object:
        raise SimulationError(f"loop.{name}() is not available in a simulation: no sockets, processes or signals")

    return unavailable


# Every method of an event loop that is not defined above is I/O, in this and later versions of Python.
for _name in vars(asyncio.AbstractEventLoop):
    if not _name.startswith("_") and _name not in vars(SimulatedLoop):
        setattr(SimulatedLoop, _name, _unavailable(_name))
