"""Parts of plans in Python: phases, steps, and what a step does.

    yield phase("zookeeper", apply(zookeeper(p)))
    yield phase("brokers", parallel(*(step(f"broker-{n}", apply(broker(p, n))) for n in range(p.brokers))))

A step is done when everything in it is done. What a step does must be safe to repeat, except `call`, whose result is
recorded: it is not called again once it has returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject


class Action(msgspec.Struct, frozen=True):
    """Something that a step does."""

    name: str  # the default name of its step


class Apply(Action, frozen=True):
    objects: tuple[AnyObject, ...]
    wait: bool


class Delete(Action, frozen=True):
    objects: tuple[AnyObject, ...]


class Call(Action, frozen=True):
    function: Callable[..., Any | Awaitable[Any]]
    arguments: tuple[Any, ...]


class Check(Action, frozen=True):
    function: Callable[..., Any | Awaitable[Any]]
    arguments: tuple[Any, ...]


class StepOf(msgspec.Struct, frozen=True):
    name: str
    actions: tuple[Action, ...]


class Group(msgspec.Struct, frozen=True):
    """Steps with a strategy."""

    strategy: str
    steps: tuple[StepOf, ...]


class PhaseOf(msgspec.Struct, frozen=True):
    name: str
    group: Group


def apply(*objects: AnyObject, wait: bool = True) -> Apply:
    """Apply objects, owned by the object that the plan runs on. `wait`: until they are healthy. Defaults to True."""
    return Apply(_title("apply", objects), objects, wait)


def delete(*objects: AnyObject) -> Delete:
    """Delete objects, and wait until they are gone."""
    return Delete(_title("delete", objects), objects)


def call(function: Callable[..., Any], *arguments: Any) -> Call:
    """Call a function once in a run; what it returns, as JSON, is the result of the step.

    - A coroutine function, or a plain one, which runs in a thread.
    - It may be called again if the controller ends before the result is recorded.
    """
    return Call(function.__name__, function, arguments)


def wait_for(condition: Callable[..., Any], *arguments: Any) -> Check:
    """Wait until a function returns something true; False or a text waits, and the text says why.

    It is called at each pass: when an object of the plan changes, and at intervals.
    """
    return Check(condition.__name__, condition, arguments)


def step(name: str, *actions: Action) -> StepOf:
    """A step of a name; without one, a step has the name of its first action."""
    return StepOf(name, actions)


def serial(*steps: Action | StepOf) -> Group:
    """Steps one after the other."""
    return Group("serial", _steps(steps))


def parallel(*steps: Action | StepOf) -> Group:
    """Steps side by side."""
    return Group("parallel", _steps(steps))


def phase(name: str, *parts: Action | StepOf | Group) -> PhaseOf:
    """A phase: steps one after the other, or one `serial(...)` or `parallel(...)`."""
    if len(parts) == 1 and isinstance(parts[0], Group):
        return PhaseOf(name, parts[0])
    if any(isinstance(each, Group) for each in parts):
        raise TypeError(f"phase {name!r}: give either steps, or one serial(...) or parallel(...)")
    return PhaseOf(name, serial(*(each for each in parts if not isinstance(each, Group))))


def _steps(parts: Sequence[Action | StepOf]) -> tuple[StepOf, ...]:
    """Return steps with names that differ: a second one of a name gets a number."""
    found: dict[str, StepOf] = {}
    for part in parts:
        if not isinstance(part, Action | StepOf):
            raise TypeError(
                f"{part!r} is not a step; use apply(...), delete(...), call(...), wait_for(...) or step(...)"
            )
        each = part if isinstance(part, StepOf) else StepOf(part.name, (part,))
        name, number = each.name, 2
        while name in found:
            name, number = f"{each.name}-{number}", number + 1
        found[name] = StepOf(name, each.actions)
    return tuple(found.values())


def _title(verb: str, objects: Sequence[AnyObject]) -> str:
    if not objects:
        return verb
    first = objects[0]
    return f"{verb}-{access.gvk(first).kind.lower()}-{access.name(first)}"
