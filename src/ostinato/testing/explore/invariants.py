"""Invariants of users, as decorators that mark a function for `explore`.

    @always
    def never_two_primaries(state):
        return sum(pod.metadata.labels.get("role") == "primary" for pod in state.list(Pod)) <= 1

    explore(operator, scenario=[...], always=[never_two_primaries])

`ostinato explore` finds the marked functions of a module by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., object])
_MARK = "__ostinato_invariant__"


def always(function: F) -> F:
    """Mark a function that must return true after every write."""
    setattr(function, _MARK, "always")
    return function


def eventually(function: F) -> F:
    """Mark a function that must return true whenever a step has settled."""
    setattr(function, _MARK, "eventually")
    return function


def invariants_of(modules: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the marked functions of modules: always, and eventually."""
    functions = [value for module in modules for value in vars(module).values()]
    marks = [(getattr(each, _MARK, ""), each) for each in functions if callable(each)]
    return [each for mark, each in marks if mark == "always"], [each for mark, each in marks if mark == "eventually"]
