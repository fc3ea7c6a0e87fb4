"""Blocking view of the asynchronous API, for reconcilers that are plain functions.

A reconciler that is a plain `def` runs in a thread. Its context has the same methods, which block where the originals
are awaited:

    def widgets(widget, ctx):
        deployment = ctx.apply(deployment_for(widget), owner=widget)
        for pod in ctx.client.list(Pod, labels="app=web"): ...
        with ctx.finalizer(widget, "example.dev/cleanup") as deleting: ...

Each call runs on the event loop and blocks the thread until it returns. After the reconcile timeout the next call
raises `TimeoutError` instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any

import msgspec

from ostinato.world import Executor

_VALUES = (str, bytes, int, float, dict, list, tuple, set, frozenset, type, type(None), msgspec.Struct, BaseException)


class Blocking:
    """Blocking view of any object. Attributes are looked up on the original and returned as views, hence `Any`."""

    def __init__(self, original: Any, executor: Executor, check: Callable[[], None]) -> None:
        """`check`: called before each call; raises to prevent it."""
        self._original = original
        self._executor = executor
        self._check = check

    def __getattr__(self, name: str) -> Any:
        return self._view(getattr(self._original, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._check()
        answer = self._original(*[_original(each) for each in args], **{k: _original(v) for k, v in kwargs.items()})
        return self._view(self._wait(answer) if inspect.iscoroutine(answer) else answer)

    def __iter__(self) -> Iterator[Any]:
        if not hasattr(self._original, "__aiter__"):
            yield from self._original
            return
        items = self._original.__aiter__()
        while True:
            try:
                item = self._wait(items.__anext__())
            except StopAsyncIteration:
                return
            yield item

    def __enter__(self) -> Any:
        if not hasattr(self._original, "__aenter__"):
            return self._original.__enter__()
        return self._view(self._wait(self._original.__aenter__()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        if not hasattr(self._original, "__aexit__"):
            return self._original.__exit__(kind, error, traceback)
        return self._executor.block_on(
            _awaited(self._original.__aexit__(kind, error, traceback))
        )  # even after the timeout

    def wait(self) -> Any:
        """Await the original and return its result: `ctx.client.list(Pod).wait()` is a list."""
        return self._view(self._wait(self._original))

    def __repr__(self) -> str:
        return f"<blocking view of {self._original!r}>"

    def _wait(self, awaitable: Awaitable[Any]) -> Any:
        try:
            self._check()
        except BaseException:
            if inspect.iscoroutine(awaitable):
                awaitable.close()  # prevents the warning "coroutine was never awaited"
            raise
        return self._executor.block_on(_awaited(awaitable))

    def _view(self, value: Any) -> Any:
        """Return a view of anything that may have to be awaited; plain values unchanged."""
        return value if isinstance(value, _VALUES) else Blocking(value, self._executor, self._check)


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _original(value: Any) -> Any:
    return value._original if isinstance(value, Blocking) else value
