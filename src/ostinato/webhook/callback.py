"""Callbacks: user functions, called as their signatures request.

    def check(widget: Widget) -> None
    async def check(widget: Widget, old: Widget | None, request: AdmissionRequest) -> list[str]
    def check(widget: dict) -> Iterator[FieldError | str]

- The first parameter is the object: typed, or as a dict if it is annotated as one.
- An optional parameter `old` is the object before an update, otherwise None; `request` is the admission request.
- An `async def` runs on the event loop. A plain `def` runs in a worker thread, so it may block; after a timeout its
  result is ignored, but it cannot be stopped.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api.object import Object
from ostinato.webhook.request import AdmissionRequest
from ostinato.world import Executor

_KNOWN: Final = ("old", "request")


class Callback:
    """A user function with the parameters that it requests."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__qualname__", None) or type(function).__name__
        self.name = self.name.rpartition("<locals>.")[2]
        parameters = list(inspect.signature(function).parameters.values())
        first = parameters[0] if parameters else None
        if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"{self.name}() the first parameter must be the object")
        self.parameters = frozenset(parameter.name for parameter in parameters[1:]).intersection(_KNOWN)
        for parameter in parameters[1:]:
            optional = parameter.default is not parameter.empty or parameter.kind in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            )
            if parameter.name not in _KNOWN and not optional:
                raise TypeError(
                    f"{self.name}() unknown parameter {parameter.name!r}; use old or request after the object"
                )
        self.hint = _hint(function, first)
        self._kind = _kind_of_function(function)

    @property
    def untyped(self) -> bool:
        """Whether the function takes the object as a dict."""
        hint = self.hint
        if isinstance(hint, str):
            return hint.startswith(("dict", "Dict", "Mapping"))
        origin = typing.get_origin(hint) or hint
        return isinstance(origin, type) and issubclass(origin, Mapping)

    @property
    def object_class(self) -> type[Object] | None:
        """The annotated class of the object, if there is one."""
        return self.hint if isinstance(self.hint, type) and issubclass(self.hint, Object) else None

    async def __call__(self, executor: Executor, instance: Any, old: Any, request: AdmissionRequest) -> Any:
        """Call the function; return its result, or the list of what it yields."""
        values = {"old": old, "request": request}
        named = {name: values[name] for name in self.parameters}
        match self._kind:
            case "coroutine":
                return await self.function(instance, **named)
            case "stream":
                return [item async for item in self.function(instance, **named)]
        result = await executor.run(_call, self.function, instance, named)
        return await result if inspect.isawaitable(result) else result


def _call(function: Callable[..., Any], instance: Any, named: dict[str, Any]) -> Any:
    try:
        result = function(instance, **named)
        return list(result) if isinstance(result, types.GeneratorType) else result  # runs the generator in the worker
    except SystemExit as error:  # would end the worker thread
        raise RuntimeError(f"the hook called sys.exit({error.code})") from error


def _hint(function: Callable[..., Any], first: inspect.Parameter) -> Any:
    """Return the evaluated annotation of the object, or its text if it cannot be evaluated."""
    if first.annotation is first.empty:
        return None
    try:
        return typing.get_type_hints(_annotated(function))[first.name]
    except NameError:  # a local class, or one imported under TYPE_CHECKING
        return first.annotation


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if inspect.isroutine(function):
        return function
    method: Callable[..., Any] = type(function).__call__  # a callable object
    return method


def _kind_of_function(function: Callable[..., Any]) -> str:
    called = _annotated(function)
    if inspect.iscoroutinefunction(called):
        return "coroutine"
    return "stream" if inspect.isasyncgenfunction(called) else "plain"
