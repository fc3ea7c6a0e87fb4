"""Calls from a worker thread to the event loop, which block the thread until the result is there; and how they end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from ostinato.world import Clock, Executor

T = TypeVar("T")


class StoppedThread(BaseException):
    """Ends a plain function that must stop, at its next call of the context."""


class ThreadCall:
    """One call of a plain function: whether it has begun, and whether it must stop."""

    def __init__(self, error: Callable[[], BaseException]) -> None:
        """`error`: creates what its calls of the context raise once it must stop."""
        self.begun = False
        self.over = False
        self._error = error
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Make its next call of the context raise, and end its `sleep`."""
        self.over = True
        self._stopped.set()

    def check(self) -> None:
        if self.over:
            raise self._error()

    async def sleep(self, clock: Clock, seconds: float) -> None:
        """Sleep, at most until it must stop; raises then."""
        try:
            async with clock.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            pass
        self.check()

    @staticmethod
    def guarded(work: Callable[[], T]) -> T | None:
        """Call the function; returns None if it was stopped."""
        try:
            return work()
        except StoppedThread:
            return None


class BlockingCalls:
    def __init__(self, executor: Executor, check: Callable[[], None]) -> None:
        """`check`: called before each call; raises to prevent it."""
        self._executor = executor
        self.check = check

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Await on the event loop, and return the result."""
        try:
            self.check()
        except BaseException:
            if inspect.iscoroutine(awaitable):
                awaitable.close()  # prevents the warning "coroutine was never awaited"
            raise
        return self._executor.block_on(_coroutine(awaitable))

    def iterate(self, items: AsyncIterable[T]) -> Iterator[T]:
        """Iterate on the event loop, item by item."""
        iterator = aiter(items)
        while True:
            try:
                item = self.wait(anext(iterator))
            except StopAsyncIteration:
                return
            yield item

    def entering(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return a context manager that enters and exits the given one on the event loop."""
        return _Entered(self, manager)

    def exit(self, exiting: Awaitable[bool | None]) -> bool | None:
        """Await the exit of a context manager, even after the timeout."""
        return self._executor.block_on(_coroutine(exiting))


class _Entered(AbstractContextManager[T]):
    def __init__(self, calls: BlockingCalls, manager: AbstractAsyncContextManager[T]) -> None:
        self._calls = calls
        self._manager = manager

    def __enter__(self) -> T:
        return self._calls.wait(self._manager.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._calls.exit(self._manager.__aexit__(kind, error, traceback))


def _coroutine(awaitable: Awaitable[T]) -> Coroutine[Any, Any, T]:
    """Return a coroutine itself: `block_on` closes the one that it cannot run."""
    return awaitable if inspect.iscoroutine(awaitable) else _awaited(awaitable)


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def unknown_attribute(owner: object, title: str, name: str, advice: Iterable[str] = ()) -> NoReturn:
    """Raise AttributeError with the nearest attribute, advice, or all attributes."""
    from difflib import get_close_matches  # noqa: PLC0415 - for the message only

    public = [each for each in dir(owner) if not each.startswith("_")]
    nearest = get_close_matches(name, public, n=1)
    remedies = [f"did you mean {nearest[0]}?"] if nearest else [*advice]
    remedy = " ".join([*remedies, f"attributes are {', '.join(public)}"])
    raise AttributeError(f"{title} has no attribute {name!r}; {remedy}", name=name, obj=owner)
