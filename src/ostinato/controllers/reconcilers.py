"""Reconcilers: the forms in which they are written, and the one in which they are run.

| form | is given |
|---|---|
| `async def f(widget, ctx)` | the object, read from the cache; not called when there is none any more |
| `async def f(request, ctx)` | the request: a first parameter that is named `request`, or is said to be a `Request` |
| a class with `async def reconcile(self, request)` | the request; with a second parameter, the context too |

Each may be a plain `def` as well: it is then run in a thread, with a blocking view of the context.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, get_type_hints

from ostinato.api.gvk import NamespacedName
from ostinato.client.views import View
from ostinato.controllers.blocking import Blocking
from ostinato.controllers.context import Context
from ostinato.controllers.result import BadResult, Result, TerminalError

Run: TypeAlias = Callable[[Context], Awaitable[Result]]

STARVED: Final = 5.0  # seconds that a call waits for a thread before that is told
_TELL_AGAIN: Final = 60.0

_DONE: Final = Result()


class Reconciler:
    """A function or an object with a `reconcile` method, ready to be run."""

    def __init__(self, target: Any, view: View[Any] | None) -> None:
        """`view` is the kind whose objects the function wants; None if there is none."""
        function = getattr(target, "reconcile", None) or target
        if isinstance(target, type):
            raise TypeError(f"{target.__name__} is a class: give an object of it, {target.__name__}(…)")
        if not callable(function):
            raise TypeError(f"{target!r} is no reconciler: it is no function, and has no method reconcile")
        self.name = _name(target)
        self._function: Callable[..., Any] = function
        self.is_async = _is_async(function)
        if _is_generator(function):
            raise TypeError(f"reconciler {self.name} is a generator: it yields where it should return")
        parameters = _parameters(function, self.name)
        takes_request = view is None or function is not target or _is_request(function, parameters[0])
        self._view = None if takes_request else view
        self._with_context = len(parameters) > 1
        self._starvation_told: float | None = None  # when
        self._calls: set[asyncio.Task[Any]] = set()  # that run in threads, or wait for one

    async def run(self, context: Context) -> Result:
        """One run; whatever the function raises, and `BadResult` for what is no result."""
        first: Any = context.request
        if self._view is not None:
            if not isinstance(first, NamespacedName):
                self._check_key(first)
            first = await context.client.get(self._view, first, missing=None)
            if first is None:
                return _DONE
            context.object = first
        if self.is_async:
            answer = await (self._function(first, context) if self._with_context else self._function(first))
        else:
            answer = await self._in_thread(first, context)
        return _DONE if answer is None else self._checked(answer)

    def _check_key(self, key: Any) -> None:
        """Keys may be anything, but of one that names no object there is none to give."""
        if not isinstance(key, str) and not (hasattr(key, "namespace") and hasattr(key, "name")):
            raise TerminalError(
                f"reconciler {self.name} is given an object, and {key!r} names none; map functions and sources give "
                'NamespacedName("namespace", "name"), or let the first parameter be called request'
            )

    def _checked(self, answer: Any) -> Result:
        if isinstance(answer, Result):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise BadResult(self.name, answer)

    def abandon(self) -> None:
        """Wait no longer for functions that run in threads. They go on, and what comes of them is dropped."""
        for call in self._calls:
            call.cancel()

    async def _in_thread(self, first: Any, context: Context) -> Any:
        """Run it in a thread. One that goes on after its time is waited for: a key is never in two threads."""
        executor, clock = context.world.executor, context.world.clock
        state = _Call(self.name)

        def work() -> Any:
            state.begun = True
            state.check()
            view = Blocking(context, executor, state.check)
            return self._function(first, view) if self._with_context else self._function(first)

        timer = clock.timer(STARVED, self._starved, state, context)
        call = asyncio.get_running_loop().create_task(_awaited(executor.run(work)))
        self._calls.add(call)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            state.over = True
            if not state.begun:
                call.cancel()
            elif not call.done():
                context.logger.warning(
                    "controller %s: %s is told to end, but runs in a thread: it ends at its next use of the client",
                    context.name,
                    context.request,
                )
                await asyncio.wait([call])
            raise
        finally:
            timer.cancel()
            self._calls.discard(call)
            if call.done() and not call.cancelled():
                call.exception()  # looked at, so that nobody reports it as forgotten

    def _starved(self, state: _Call, context: Context) -> None:
        now = context.world.clock.monotonic()
        if state.begun or (self._starvation_told is not None and now - self._starvation_told < _TELL_AGAIN):
            return
        self._starvation_told = now
        load = context.world.executor.load()
        context.logger.warning(
            "controller %s waits for a thread: all %d are busy, %d calls wait, the first for %.0f s; "
            "make the world with more workers, or the reconcilers async",
            context.name,
            load.workers,
            load.queued,
            load.longest_wait,
        )


class _Call:
    """One run of a plain function."""

    __slots__ = ("begun", "name", "over")

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False
        self.over = False

    def check(self) -> None:
        if self.over:
            raise TimeoutError(f"reconciler {self.name}: its time is over")


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _name(target: Any) -> str:
    return getattr(target, "__qualname__", "") or type(target).__qualname__


def _is_async(function: Any) -> bool:
    function = _unwrapped(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _is_generator(function: Any) -> bool:
    function = _unwrapped(function)
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """Those that must be given; one or two."""
    found = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    required = [each for each in found if each.default is each.empty]
    if not 1 <= len(required) <= 2:
        raise TypeError(
            f"reconciler {name} takes {len(required)} arguments; it is given the object or request, and the context"
        )
    return required


def _is_request(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    if parameter.name == "request":
        return True
    try:
        annotation = get_type_hints(_unwrapped(function)).get(parameter.name)
    except (NameError, TypeError, AttributeError):  # hints that cannot be resolved here say nothing
        annotation = parameter.annotation
    return annotation is NamespacedName or annotation in ("Request", "NamespacedName")
