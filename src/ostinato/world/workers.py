"""Workers: a bounded pool of daemon threads, which the exit of the process does not wait for.

Python joins the threads of `concurrent.futures` at exit: a call that never returns would keep a process alive that has
finished, or has lost its lease. Threads are started on demand, and end when the pool is closed or garbage-collected.
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
        self._idle = threading.Semaphore(0)  # idle workers minus the queued calls intended for them
        self._lock = threading.Lock()  # guards the two below
        self._threads = 0
        self._closed = False
        weakref.finalize(self, self._waiting.put, None)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a worker. Raises RuntimeError after `close`."""
        outcome: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.put(_Call(outcome, function))
            if not self._idle.acquire(blocking=False) and self._threads < self._most:
                self._begin(outcome)
        return outcome

    def _begin(self, outcome: Future[Any]) -> None:
        """Start a worker. If no thread can be started, the existing ones are used; raises if there are none."""
        name = f"{self._name}_{self._threads}"
        try:
            threading.Thread(target=_work, args=(self._waiting, self._idle), name=name, daemon=True).start()
        except RuntimeError:
            if self._threads == 0:
                outcome.cancel()  # the queued call must not be made later
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
                        call.outcome.cancel()
            except queue.Empty:
                self._waiting.put(None)


def _work(waiting: _Waiting, idle: threading.Semaphore) -> None:
    """Body of a worker. Holds no reference to the pool, so that it can be garbage-collected."""
    while (call := waiting.get()) is not None:
        _make(call.outcome, call.function)
        del call  # releases its references while the worker waits
        idle.release()
    waiting.put(None)  # for the next one


def _make(outcome: Future[T], function: Callable[[], T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - raised by the future
        outcome.set_exception(error)
        del outcome  # breaks the cycle of the future and the error's traceback
    else:
        outcome.set_result(result)
