"""Workers: a bounded number of threads that make calls, in order, and that no process waits for when it ends.

A call that never returns must not keep a process from ending that has nothing left to do, or that has lost its
leadership: the threads of `concurrent.futures` do, since Python joins them at the end. Threads begin when they are
needed, wait for more when they are not, and end when the workers are closed or forgotten.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Call(NamedTuple):
    outcome: Future[Any]
    function: Callable[[], Any]


_Waiting = queue.SimpleQueue[_Call | None]  # None ends the worker that takes it


class Workers:
    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._waiting: _Waiting = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)  # workers that wait for a call, less the calls that were meant for them
        self._lock = threading.Lock()  # guards the two below
        self._threads = 0
        self._closed = False
        weakref.finalize(self, self._waiting.put, None)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Have a worker call it. RuntimeError once they are closed."""
        outcome: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.put(_Call(outcome, function))
            if not self._idle.acquire(blocking=False) and self._threads < self._most:
                self._begin(outcome)
        return outcome

    def _begin(self, outcome: Future[Any]) -> None:
        """One more worker. If the system gives no thread, those that there are will do; an error if there is none."""
        name = f"{self._name}_{self._threads}"
        try:
            threading.Thread(target=_work, args=(self._waiting, self._idle), name=name, daemon=True).start()
        except RuntimeError:
            if self._threads == 0:
                outcome.cancel()  # what is refused is not made later, all the same
                raise
        else:
            self._threads += 1

    def close(self) -> None:
        """Take no more calls and drop those that wait. Those that run are not waited for."""
        with self._lock:
            self._closed = True
            try:
                while True:
                    if (call := self._waiting.get_nowait()) is not None:
                        call.outcome.cancel()
            except queue.Empty:
                self._waiting.put(None)


def _work(waiting: _Waiting, idle: threading.Semaphore) -> None:
    """One worker's life. It knows nothing of the workers, so that they can be forgotten."""
    while (call := waiting.get()) is not None:
        _make(call.outcome, call.function)
        del call  # what it holds is not kept while the worker waits
        idle.release()
    waiting.put(None)  # for the next one


def _make(outcome: Future[T], function: Callable[[], T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - handed to whoever waits for it
        outcome.set_exception(error)
        del outcome  # or it and the error, whose traceback is of here, would keep each other
    else:
        outcome.set_result(result)
