"""Executor: runs blocking code outside of the event loop.

- `run` calls a blocking function in one of a bounded number of workers; further calls are queued in order.
- `block_on`, within such a function, runs a coroutine on the event loop and blocks the worker for the result.
- A call cancelled while queued is not made; one that has started runs to its end, and its result is dropped.
- `thread` runs a coroutine in a thread with its own event loop, which a blocked main loop does not affect.
- `load` reports the utilization. Long waits mean too few workers, or functions that do not return.
- `separate` returns an executor with other workers, for calls that must not wait for each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Generic, NamedTuple, TypeVar, TypeVarTuple

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Ts = TypeVarTuple("Ts")


class Load(NamedTuple):
    """Utilization of an executor."""

    workers: int  # maximum number of concurrent calls
    busy: int  # running calls
    queued: int  # queued calls
    longest_wait: float  # seconds since the oldest of these was queued; 0.0 if there is none


class Thread(ABC, Generic[T_co]):
    """A coroutine in a thread with its own event loop."""

    name: str

    @abstractmethod
    def stop(self) -> None:
        """Cancel the coroutine. Thread-safe; no effect if it has ended."""

    @abstractmethod
    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call `callback(*args)` on the thread's loop. Thread-safe; raises RuntimeError if it has ended."""

    @abstractmethod
    async def join(self) -> T_co | None:
        """Wait for the end, and return the coroutine's result, or None if it was stopped. Raises its error."""


class Executor(ABC):
    @abstractmethod
    async def run(self, func: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call `func(*args)` in a worker, in a copy of the caller's context."""

    @abstractmethod
    def block_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Within a function called by `run`: run a coroutine on the calling loop, and block for its result."""

    @abstractmethod
    def thread(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> Thread[T]:
        """Start a thread that runs `main()` on its own loop. Await `join()`, or its error is lost."""

    @abstractmethod
    def load(self) -> Load: ...

    @abstractmethod
    def separate(self) -> Executor:
        """Return an executor with as many workers of its own, which must be closed separately."""

    @abstractmethod
    def close(self) -> None:
        """Reject further calls and drop queued ones; does not wait for running ones."""


class NotInWorkerError(RuntimeError):
    """`block_on` was called outside of a function called by `run`."""

    def __init__(self) -> None:
        super().__init__("block_on() called outside of Executor.run(); await the coroutine instead")


def call_as_future(func: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call a function for a future, which cannot hold StopIteration: its awaiter would hang."""
    try:
        return func(*args)
    except StopIteration as error:
        raise RuntimeError(f"{getattr(func, '__qualname__', func)} raised StopIteration") from error
