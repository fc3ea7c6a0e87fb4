"""Programs: the managers, controllers and webhooks of loaded modules.

If the modules create managers, these are the program; otherwise all controllers and webhooks in one manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from ostinato.cli.error import CommandError
from ostinato.controllers.builder import Builder
from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.guards.program import relative
from ostinato.crd import SchemaError
from ostinato.crd.program import controllers_of, definitions_of_managers, unique, webhooks_of
from ostinato.manager.hosting import Host, hosting
from ostinato.manager.manager import Manager
from ostinato.webhook.webhooks import Webhooks

Json = dict[str, Any]


class Program(NamedTuple):
    modules: Sequence[ModuleType]
    managers: Sequence[Manager]

    @property
    def runnables(self) -> list[Any]:
        return [each for manager in self.managers for each in manager.runnables]

    @property
    def controllers(self) -> list[ControllerFunction | Controller | FrontEnd]:
        return [each for manager in self.managers for each in controllers_of(manager)]

    @property
    def webhooks(self) -> list[Webhooks]:
        return webhooks_of(self.managers)


def program_of(modules: Sequence[ModuleType], host: Host, *, empty: bool = False) -> Program:
    """Return the program of the modules; CommandError if it has nothing to run.

    `empty`: accept modules that define only kinds. Defaults to False.
    """
    managers = unique([*host.managers, *_of_type(modules, Manager)])
    if not managers:
        runnables = unique(_of_type(modules, ControllerFunction, Controller, FrontEnd, Webhooks))
        runnables = _with_registered(runnables, host, modules)
        with hosting(host):
            managers = [Manager()]
        try:
            managers[0].add(*runnables)
        except ValueError as error:  # a duplicate name
            raise CommandError(str(error)) from None
    program = Program(modules, managers)
    if not empty and not program.runnables:
        raise CommandError(_nothing_to_run(modules))
    return program


def definitions_of(program: Program, *, all_kinds: bool = False) -> list[Json]:
    """Return the CustomResourceDefinitions of the program's kinds, sorted by name.

    `all_kinds`: include the custom kinds of other programs that it watches or owns. Defaults to False.
    """
    try:
        return definitions_of_managers(program.managers, program.modules, all_kinds=all_kinds)
    except SchemaError as error:
        raise CommandError(str(error)) from None


def _with_registered(runnables: list[Any], host: Host, modules: Sequence[ModuleType]) -> list[Any]:
    """Return the runnables with those that decorators have registered, also in imported modules, joined to one."""
    if not host.registered:
        return runnables
    first, *others = host.registered
    joined = first.merge(others)
    joined.default_name = modules[0].__name__.partition(".")[0].removeprefix("file_")
    try:
        joined.make()
    except (TypeError, ValueError) as error:  # of a handler; the message names its line
        raise CommandError(str(error)) from None
    known = set(map(id, host.registered))
    return [*(each for each in runnables if id(each) not in known), joined]


def _of_type(modules: Iterable[ModuleType], *classes: type[Any]) -> list[Any]:
    return [value for module in modules for value in vars(module).values() if isinstance(value, classes)]


def _nothing_to_run(modules: Sequence[ModuleType]) -> str:
    files = ", ".join(relative(module.__file__) if module.__file__ else module.__name__ for module in modules)
    text = f"{files}: nothing to run; add a @controller, or a manager with runnables"
    builders = [name for module in modules for name, value in vars(module).items() if isinstance(value, Builder)]
    if builders:
        text += f"; {builders[0]} is a Builder: assign the result of its complete(...) to a name"
    return text
