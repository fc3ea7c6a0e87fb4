"""Reconcilers: the supported signatures, and how they are called.

| signature | first argument |
|---|---|
| `async def f(widget, ctx)` | the object, read from the cache; not called for an object that does not exist |
| `async def f(request, ctx)` | the request, if the parameter is named `request` or annotated as `Request` |
| a class with `async def reconcile(self, request)` | the request; an optional second parameter receives the context |

A plain `def` runs in a thread, and its context is a `BlockingContext` (`blocking`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ostinato.api.gvk import NamespacedName
from ostinato.client.views import View
from ostinato.controllers.blocking.calls import ThreadCall
from ostinato.controllers.blocking.context import BlockingContext
from ostinato.controllers.context import Context
from ostinato.controllers.result import BadResult, PermanentError, Result
from ostinato.controllers.signatures import (
    check_context,
    check_kind,
    check_order,
    is_async,
    is_generator,
    is_request,
    parameters_of,
)

if TYPE_CHECKING:
    from ostinato.controllers.sources.sources import Source

Run: TypeAlias = Callable[[Context], Awaitable[Result]]

STARVATION_THRESHOLD: Final = 5.0  # seconds that a call waits for a thread before a warning
_WARNING_INTERVAL: Final = 60.0  # seconds

_DONE: Final = Result()


class Reconciler:
    """A reconciler with a uniform signature. Subclasses decide when the function is called."""

    sources: Sequence[Source] = ()  # of keys, in addition to those of the controller
    count_daemons: Callable[[], int] | None = None  # for metrics, if it runs daemons

    def __init__(self, target: Any, view: View[Any] | None) -> None:
        """
        - `target`: a function, or an object with a `reconcile` method.
        - `view`: the kind of the objects that a function receives; None if the controller has no kind.
        """
        function = getattr(target, "reconcile", None) or target
        if isinstance(target, type):
            raise TypeError(f"reconciler {target.__name__} is a class; pass an instance, {target.__name__}(…)")
        if not callable(function):
            raise TypeError(f"{target!r} is not a reconciler; pass a function, or an object with a method reconcile")
        self.name = _name(target)
        self._function: Callable[..., Any] = function
        self.is_async = is_async(function)
        if is_generator(function):
            raise TypeError(f"reconciler {self.name} is a generator; return a Result instead of yielding")
        parameters = parameters_of(function, self.name)
        check_order(function, parameters, view)
        check_context(function, parameters)
        check_kind(function, parameters, view)
        takes_request = view is None or function is not target or is_request(function, parameters[0])
        self._view = None if takes_request else view
        self._with_context = len(parameters) > 1
        self._starvation_reported: float | None = None  # time of the last warning
        self._calls: set[asyncio.Task[Any]] = set()  # running in threads, or waiting for one

    async def run(self, context: Context) -> Result:
        """Call the reconciler once. Raises its errors, and `BadResult` if it returns something else than a result."""
        first: Any = context.request
        if self._view is not None:
            if not isinstance(first, NamespacedName):
                self._check_key(first)
            first = await context.client.get(self._view, first, missing=None)
            if first is None:
                return _DONE
            context.object = first
        return await self.call(first, context)

    async def call(self, first: Any, context: Context) -> Result:
        """Call the function, in a thread if it is plain."""
        if context.object is not None and context._changes is not None:
            context._changes.begin(context.object)
        if self.is_async:
            answer = await (self._function(first, context) if self._with_context else self._function(first))
        else:
            answer = await self._in_thread(first, context)
        return _DONE if answer is None else self._checked(answer)

    def _check_key(self, key: Any) -> None:
        """Raise unless the key names an object."""
        if not isinstance(key, str) and not (hasattr(key, "namespace") and hasattr(key, "name")):
            raise PermanentError(
                f"reconciler {self.name} takes an object, but the key {key!r} does not name one; enqueue "
                'NamespacedName("namespace", "name"), or name the first parameter request'
            )

    def _checked(self, answer: Any) -> Result:
        if isinstance(answer, Result):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise BadResult(self.name, answer)

    async def release(self, selects: Callable[[Hashable], bool]) -> None:
        """Stop what runs between reconciles of the selected keys, and wait until it has ended."""

    def close(self) -> None:
        """Stop what runs between reconciles: the controller stops."""

    async def closed(self) -> None:
        """Wait until everything that `close` stopped has ended."""

    def abandon(self) -> None:
        """Stop waiting for functions that run in threads. They continue, and their results are dropped."""
        for call in self._calls:
            call.cancel()

    def _thread_call(self) -> ThreadCall:
        return ThreadCall(lambda: TimeoutError(f"reconciler {self.name}: reconcile timeout exceeded"))

    async def _in_thread(self, first: Any, context: Context) -> Any:
        def work(blocking: BlockingContext) -> Any:
            return self._function(first, blocking) if self._with_context else self._function(first)

        return await self.in_thread(work, context)

    async def in_thread(self, function: Callable[[BlockingContext], Any], context: Context) -> Any:
        """Run a function in a thread. Waits for it even after a timeout: a key must not be in two threads."""
        executor, clock = context.world.executor, context.world.clock
        state = self._thread_call()

        def work() -> Any:
            state.begun = True
            state.check()
            return function(BlockingContext(context, state))

        timer = clock.timer(STARVATION_THRESHOLD, self._starved, state, context)
        call = asyncio.get_running_loop().create_task(_awaited(executor.run(state.guarded, work)))
        self._calls.add(call)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            state.stop()
            if not state.begun:
                call.cancel()
            elif not call.done():
                self._waits_for_thread(context)
                await asyncio.wait([call])
            raise
        finally:
            timer.cancel()
            self._calls.discard(call)
            if call.done() and not call.cancelled():
                call.exception()  # marks it as retrieved

    def _waits_for_thread(self, context: Context) -> None:
        context.logger.warning(
            "reconcile cancelled, waiting for its thread controller=%s object=%s", context.name, context.request
        )

    def _starved(self, state: ThreadCall, context: Context) -> None:
        now = context.world.clock.monotonic()
        if state.begun or (
            self._starvation_reported is not None and now - self._starvation_reported < _WARNING_INTERVAL
        ):
            return
        self._starvation_reported = now
        load = context.world.executor.load()
        context.logger.warning(
            "reconcile waits for a thread; create the World with more workers, or make reconcilers async "
            "controller=%s threads=%d waiting=%d longest_wait_seconds=%.0f",
            context.name,
            load.workers,
            load.queued,
            load.longest_wait,
        )


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _name(target: Any) -> str:
    return getattr(target, "__qualname__", "") or type(target).__qualname__
