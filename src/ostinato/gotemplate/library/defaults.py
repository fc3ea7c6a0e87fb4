"""Defaults and conditions: which values are empty, and what is used in their place."""

from __future__ import annotations

from typing import Any, Final

from ostinato.gotemplate.library.registry import Registry
from ostinato.gotemplate.values import Object

DEFAULTS: Final = Registry()
_register = DEFAULTS


def is_empty(value: Any) -> bool:
    """Whether a value is nil, false, 0, or has no items; a struct never is."""
    return not isinstance(value, Object) and not value


@_register("default", "interface {}, ...interface {}")
def default(fallback: Any, *given: Any) -> Any:
    return fallback if not given or is_empty(given[0]) else given[0]


@_register("empty", "interface {}")
def empty(value: Any) -> bool:
    return is_empty(value)


@_register("coalesce", "...interface {}")
def coalesce(*values: Any) -> Any:
    return next((each for each in values if not is_empty(each)), None)


@_register("all", "...interface {}")
def all_(*values: Any) -> bool:
    return not any(map(is_empty, values))


@_register("any", "...interface {}")
def any_(*values: Any) -> bool:
    return not all(map(is_empty, values))


@_register("ternary", "interface {}, interface {}, bool")
def ternary(then: Any, otherwise: Any, condition: bool) -> Any:
    return then if condition else otherwise


@_register("hello", "")
def hello() -> str:
    return "Hello!"
