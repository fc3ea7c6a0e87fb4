"""Signatures of reconcilers: what a function takes, and which mistakes in it are reported at its definition."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, get_type_hints

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import Object
from ostinato.client.views import Typed, View

_CONTEXT_NAMES: Final = ("ctx", "context")
_CONTEXT_TYPES: Final = ("BlockingContext", "Context")


def is_async(function: Any) -> bool:
    function = _unwrapped(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def is_generator(function: Any) -> bool:
    function = _unwrapped(function)
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def parameters_of(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """Return the required positional parameters, one or two."""
    required = _required(function) if inspect.isfunction(function) else _required.__wrapped__(function)
    if not 1 <= len(required) <= 2:
        raise TypeError(
            f"reconciler {name} takes {len(required)} arguments; it must take the object or request, and the context"
        )
    return list(required)


@functools.lru_cache(maxsize=256)  # of functions: a controller is made each time that a manager runs it
def _required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the positional parameters without defaults."""
    found = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return [each for each in found if each.default is each.empty]


def is_request(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    """Return whether the parameter is a request rather than an object."""
    annotation = _annotation(function, parameter)
    return parameter.name == "request" or annotation is NamespacedName or annotation in ("Request", "NamespacedName")


def check_context(function: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> None:
    """Raise TypeError if a function expects the context of the other kind of functions."""
    names = {_type_name(_annotation(function, each)) for each in parameters}
    if is_async(function) and "BlockingContext" in names:
        raise TypeError(
            f"reconciler {_title(function)} is an async def, and its context a Context: annotate it as Context and "
            "await its methods, or make the reconciler a plain def"
        )
    if not is_async(function) and "Context" in names:
        raise TypeError(
            f"reconciler {_title(function)} is a plain def, and its context a BlockingContext: annotate it as "
            "BlockingContext, or write async def"
        )


def check_kind(function: Callable[..., Any], parameters: Sequence[inspect.Parameter], view: View[Any] | None) -> None:
    """Raise TypeError if the object is annotated as another kind than the one that is reconciled."""
    annotation = _annotation(function, parameters[0])
    if not isinstance(view, Typed) or not isinstance(annotation, type) or not issubclass(annotation, Object):
        return
    if not issubclass(view.cls, annotation):
        raise TypeError(
            f"reconciler {_title(function)} takes a {annotation.__name__}, and its controller reconciles "
            f"{view.cls.__name__}; annotate {parameters[0].name} as {view.cls.__name__}, or write "
            f"@controller({annotation.__name__})"
        )


def check_order(function: Callable[..., Any], parameters: Sequence[inspect.Parameter], view: View[Any] | None) -> None:
    """Raise TypeError if the context is the first parameter, by its annotation or, without one, by its name."""
    kinds = [_role(_annotation(function, each), each.name, view) for each in parameters]
    if kinds == ["context"]:
        first = view.gvk.kind.lower() if view is not None else "request"
        raise TypeError(
            f"reconciler {_title(function)} takes only the context; the object is first: "
            f"{_declaration(function, [first, parameters[0].name])}"
        )
    if kinds in (["context", "object"], ["context", ""], ["", "object"]):
        raise TypeError(
            f"reconciler {_title(function)} takes the context first; swap the parameters: "
            f"{_declaration(function, [each.name for each in reversed(parameters)])}"
        )


def _role(annotation: Any, name: str, view: View[Any] | None) -> str:
    """Return "context" or "object" for a parameter, or "" if neither its annotation nor its name shows it."""
    if annotation not in (inspect.Parameter.empty, Any):
        if _type_name(annotation) in _CONTEXT_TYPES:
            return "context"
        if annotation is NamespacedName or (isinstance(view, Typed) and annotation is view.cls):
            return "object"
        if not isinstance(annotation, str):
            return ""
    return "context" if name in _CONTEXT_NAMES else ""


def _type_name(annotation: Any) -> str:
    """Return the name of a class without its module, also of one that is given as text."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return str(text).rpartition(".")[2]


def _declaration(function: Callable[..., Any], names: Sequence[str]) -> str:
    found = _unwrapped(function)
    own = ["self"] if inspect.ismethod(found) else []
    word = "async def" if is_async(function) else "def"
    return f"{word} {getattr(found, '__name__', '__call__')}({', '.join([*own, *names])})"


def _title(function: Callable[..., Any]) -> str:
    found = _unwrapped(function)
    return getattr(found, "__qualname__", "") or type(found).__qualname__


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the annotation, evaluated where possible."""
    try:
        return _hints(_unwrapped(function)).get(parameter.name, parameter.annotation)
    except (NameError, TypeError, AttributeError):  # unresolvable hints
        return parameter.annotation


@functools.lru_cache(maxsize=64)
def _hints(function: Any) -> dict[str, Any]:
    """Return the evaluated annotations of a function; each of its parameters is looked up several times."""
    return get_type_hints(function)
