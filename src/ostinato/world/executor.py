"""Executor: where code runs that must not run on the event loop.

- `run` calls a blocking function in one of a bounded number of workers; more calls wait their turn, in order.
- Such a function may need the loop: `block_on` runs a coroutine there and blocks the worker for the result.
- A call that is cancelled while it waits is never made; one that has begun runs to its end, and its result is dropped.
- `thread` gives a coroutine a thread and an event loop to itself, which a blocked main loop cannot stop.
- `load` says how busy the workers are. Calls that wait long mean too few workers, or functions that never return.
- `separate` gives other workers, for calls that must not wait for these, or that these must not wait for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Generic, NamedTuple, TypeVar, TypeVarTuple

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Ts = TypeVarTuple("Ts")


class Load(NamedTuple):
    """How busy an executor is, at one moment."""

    workers: int  # calls that can run at once
    busy: int  # calls that run
    queued: int  # calls that wait for a worker
    longest_wait: float  # seconds for which the oldest of these has waited; 0.0 if there is none


class Thread(ABC, Generic[T_co]):
    """A coroutine that runs in a thread and an event loop of its own."""

    name: str

    @abstractmethod
    def stop(self) -> None:
        """Cancel the coroutine. May be called from any thread; harmless when it has ended."""

    @abstractmethod
    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call `callback(*args)` on the thread's loop. May be called from any thread; an error when it has ended."""

    @abstractmethod
    async def join(self) -> T_co | None:
        """Wait for the end: the coroutine's result, None if it was stopped; its error is raised here."""


class Executor(ABC):
    @abstractmethod
    async def run(self, func: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call `func(*args)` in a worker, in a copy of the caller's context."""

    @abstractmethod
    def block_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """From a function under `run`: run the coroutine on the loop that made the call, and wait for its result."""

    @abstractmethod
    def thread(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> Thread[T]:
        """Start a thread that runs `main()` on its own loop. Await its `join()` somewhere, or its error is lost."""

    @abstractmethod
    def load(self) -> Load: ...

    @abstractmethod
    def separate(self) -> Executor:
        """An executor with as many workers of its own. It is closed by itself."""

    @abstractmethod
    def close(self) -> None:
        """Take no more calls and drop those that wait; those that run are not waited for."""


class NotInWorkerError(RuntimeError):
    """`block_on` was called outside a function that an executor runs."""

    def __init__(self) -> None:
        super().__init__("block_on blocks its thread: call it in a function under Executor.run; elsewhere, await")


def call_as_future(func: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call a function whose outcome goes into a future, which cannot hold StopIteration: the awaiter would hang."""
    try:
        return func(*args)
    except StopIteration as error:
        raise RuntimeError(f"{getattr(func, '__qualname__', func)} raised StopIteration") from error
