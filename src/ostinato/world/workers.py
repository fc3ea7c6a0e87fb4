"""Workers: a bounded pool of daemon threads, which the exit of the process does not wait for.

Python joins the threads of `concurrent.futures` at exit: a call that never returns would keep a process alive that has
finished, or has lost its lease. Threads are started on demand, and end when the pool is closed or garbage-collected.
"""

from __future__ import annotations

import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Call(ABC):
    """A queued call. `make` and `cancel` must not raise."""

    @abstractmethod
    def make(self) -> None:
        """Make the call and deliver its outcome; in a worker."""

    @abstractmethod
    def cancel(self) -> None:
        """Tell the caller that the call will not be made; in any thread."""


_Waiting = queue.SimpleQueue[Call | None]  # None ends the worker that takes it
_Idle = deque[None]  # an item for each idle worker that no queued call is intended for; appended and popped atomically


class Workers:
    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._waiting: _Waiting = queue.SimpleQueue()
        self._idle: _Idle = deque()
        self._lock = threading.Lock()  # guards the two below
        self._threads = 0
        self._closed = False
        weakref.finalize(self, self._waiting.put, None)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a worker. Raises RuntimeError after `close`."""
        outcome: Future[T] = Future()
        self.put(_FutureCall(outcome, function))
        return outcome

    def put(self, call: Call) -> None:
        """Make a call in a worker. Raises RuntimeError after `close`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.put(call)
            try:
                self._idle.pop()
            except IndexError:
                if self._threads < self._most:
                    self._begin(call)

    def _begin(self, call: Call) -> None:
        """Start a worker. If no thread can be started, the existing ones are used; raises if there are none."""
        name = f"{self._name}_{self._threads}"
        try:
            threading.Thread(target=_work, args=(self._waiting, self._idle), name=name, daemon=True).start()
        except RuntimeError:
            if self._threads == 0:
                call.cancel()  # the queued call must not be made later
                raise
        else:
            self._threads += 1

    def close(self) -> None:
        """Reject further calls and drop queued ones; does not wait for running ones."""
        with self._lock:
            self._closed = True
            try:
                while True:
                    if (call := self._waiting.get_nowait()) is not None:
                        call.cancel()
            except queue.Empty:
                self._waiting.put(None)


def _work(waiting: _Waiting, idle: _Idle) -> None:
    """Body of a worker. Holds no reference to the pool, so that it can be garbage-collected."""
    while (call := waiting.get()) is not None:
        call.make()
        del call  # releases its references while the worker waits
        idle.append(None)
    waiting.put(None)  # for the next one


class _FutureCall(Call):
    __slots__ = ("_function", "_outcome")

    def __init__(self, outcome: Future[Any], function: Callable[[], Any]) -> None:
        self._outcome = outcome
        self._function = function

    def make(self) -> None:
        if not self._outcome.set_running_or_notify_cancel():
            return
        result, error = outcome_of(self._function)
        if error is not None:
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(result)

    def cancel(self) -> None:
        self._outcome.cancel()


def outcome_of(function: Callable[..., T], *args: object) -> tuple[T | None, BaseException | None]:
    """Call a function; return its result and its error.

    Its frame is in the error's traceback, and holds no future: a future and its error would form a cycle.
    """
    try:
        return function(*args), None
    except BaseException as error:  # noqa: BLE001 - raised by the future
        return None, error
