"""Operators: what is explored, in the forms in which it can be given, and its memory.

- a controller, or a list of runnables: as for `Manager.add`
- a function that returns them, called for each process: a new process remembers nothing
- with external systems, a function that takes them by name
- a list of `Process`: several processes that run together, each of which is killed alone

The variables of modules outlive a simulated process. Dicts, lists and sets among those of the operator's own modules
are therefore reset for each process; other memory needs the function.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.controllers.front_end import FrontEnd
from ostinato.manager.manager import Manager

_CONTAINERS: Final = (dict, list, set)
_RUNNABLES: Final = (ControllerFunction, Controller, FrontEnd)


class Process(msgspec.Struct, frozen=True):
    """One kind of processes that an operator consists of.

    - `name`: in timelines.
    - `add`: `add(manager, **externals)` fills the manager of a new process.
    - `manager`: further arguments of the manager.
    - `elects`: whether there may be several, of which one leads. Defaults to True.
    """

    name: str
    add: Callable[..., object]
    manager: Mapping[str, Any] = {}
    elects: bool = True


class Operator:
    """The operator of an exploration. `processes`: what it consists of."""

    def __init__(self, given: Any, modules: Iterable[Any] = ()) -> None:  # Any: see the module
        self.name = _name(given)
        self._memory = _Memory([*_modules_of(given), *modules])
        self._make: Callable[..., Sequence[Any]] | None = None
        if isinstance(given, list | tuple) and given and all(isinstance(each, Process) for each in given):
            self.processes: tuple[Process, ...] = tuple(given)
        else:
            self._make = _maker(given)
            self.processes = (Process("operator", self._add),)

    def runnables(self, **externals: Any) -> Sequence[Any]:
        """Return the runnables of a new process; none for an operator of several processes."""
        self._memory.forget()
        return [] if self._make is None else self._make(**externals)

    def _add(self, manager: Manager, **externals: Any) -> None:
        manager.add(*self.runnables(**externals))


class _Memory:
    """Containers in the variables of modules, with their first contents."""

    def __init__(self, modules: Iterable[Any]) -> None:
        self._first: list[tuple[Any, Any]] = []
        for module in {id(each): each for each in modules}.values():
            for name, value in vars(module).items():
                if type(value) in _CONTAINERS and not name.startswith("__"):
                    try:
                        self._first.append((value, copy.deepcopy(value)))
                    except Exception:  # noqa: BLE001, S112 - what cannot be copied is not memory of an operator
                        continue

    def forget(self) -> None:
        for container, first in self._first:
            if container == first:
                continue
            container.clear()
            if isinstance(container, list):
                container.extend(copy.deepcopy(first))
            else:
                container.update(copy.deepcopy(first))


def _maker(given: Any) -> Callable[..., Sequence[Any]]:
    if isinstance(given, list | tuple):
        return lambda: list(given)
    if _is_runnable(given):
        return lambda: [given]
    if not callable(given):
        raise TypeError(f"explore(): {given!r} is not an operator; pass a controller, a list, or a function")

    def make(**externals: Any) -> Sequence[Any]:
        made = given(**externals)
        return list(made) if isinstance(made, list | tuple) else [made]

    return make


def _is_runnable(value: Any) -> bool:
    return isinstance(value, _RUNNABLES) or (hasattr(value, "run") and hasattr(value, "name"))


def _name(given: Any) -> str:
    first = given[0] if isinstance(given, list | tuple) and given else given
    name = getattr(first, "__name__", "") or getattr(first, "name", "") or "operator"
    return str(name).replace("-", "_") if str(name).replace("-", "_").isidentifier() else "operator"


def _modules_of(given: Any) -> list[Any]:
    names = {getattr(each, "__module__", "") for each in (given if isinstance(given, list | tuple) else [given])}
    functions = [getattr(each, "function", None) for each in (given if isinstance(given, list | tuple) else [given])]
    names |= {getattr(each, "__module__", "") for each in functions}
    found = [sys.modules.get(name) for name in names if name and not name.startswith("ostinato.")]
    return [each for each in found if each is not None]
