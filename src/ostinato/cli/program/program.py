"""Programs: the managers, controllers and webhooks of loaded modules, and the kinds that they own.

- If the modules create managers, these are the program; otherwise all controllers and webhooks in one manager.
- The kinds of a program are those that its controllers reconcile and those that its modules define. Kinds marked
  `Foreign()` belong to other programs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from ostinato.api.gvk import GroupKind
from ostinato.api.markers import Foreign, markers_on
from ostinato.api.object import CustomResource, KindInfo, Object
from ostinato.cli.error import CommandError
from ostinato.controllers.builder import Builder
from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.controllers.guards.program import relative
from ostinato.controllers.sources.kind import KindSource
from ostinato.crd import SchemaError, crd_of
from ostinato.crd.schema.models import is_model
from ostinato.manager.hosting import Host, hosting
from ostinato.manager.manager import Manager
from ostinato.webhook.webhooks import Webhooks

Json = dict[str, Any]
T = TypeVar("T")


class Program(NamedTuple):
    modules: Sequence[ModuleType]
    managers: Sequence[Manager]

    @property
    def runnables(self) -> list[Any]:
        return [each for manager in self.managers for each in manager.runnables]

    @property
    def controllers(self) -> list[ControllerFunction | Controller]:
        return [each for manager in self.managers for each in controllers_of(manager)]

    @property
    def webhooks(self) -> list[Webhooks]:
        return [each for each in self.runnables if isinstance(each, Webhooks)]


def controllers_of(manager: Manager) -> list[ControllerFunction | Controller]:
    return [each for each in manager.runnables if isinstance(each, ControllerFunction | Controller)]


def kind_sources(controller: ControllerFunction | Controller) -> list[KindSource]:
    """Return the controller's sources that watch kinds in the manager's cluster."""
    made = controller.make() if isinstance(controller, ControllerFunction) else controller
    return [each for each in made.sources if isinstance(each, KindSource) and each.options.informers is None]


def program_of(modules: Sequence[ModuleType], host: Host, *, empty: bool = False) -> Program:
    """Return the program of the modules; CommandError if it has nothing to run.

    `empty`: accept modules that define only kinds. Defaults to False.
    """
    managers = _unique([*host.managers, *_of_type(modules, Manager)])
    if not managers:
        runnables = _unique(_of_type(modules, ControllerFunction, Controller, Webhooks))
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
    known = _custom_kinds(program)
    wanted = {_group_kind(cls): None for cls in known if all_kinds or _is_own(cls, program)}
    conversions = {name: webhooks.conversion() for webhooks in program.webhooks for name in webhooks.definitions}
    found = []
    for group_kind in wanted:
        versions = {cls.__kind__.gvk.version: cls for cls in reversed(known) if _group_kind(cls) == group_kind}
        info: KindInfo = next(iter(versions.values())).__kind__
        try:
            name = f"{info.plural}.{info.gvk.group}"
            found.append(crd_of(*versions.values(), conversion=conversions.get(name)))
        except SchemaError as error:
            raise CommandError(f"cannot generate a CustomResourceDefinition for {group_kind}: {error}") from None
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def is_custom(kind: Any) -> bool:
    """Whether the kind is a custom resource: served only with a CustomResourceDefinition."""
    if not isinstance(kind, type) or not isinstance(getattr(kind, "__kind__", None), KindInfo):
        return False
    return issubclass(kind, CustomResource) or (is_model(kind) and not issubclass(kind, Object))


def _custom_kinds(program: Program) -> list[Any]:  # Any: classes with __kind__
    """Return the kinds that controllers name, then their other versions and the kinds that the modules define."""
    named = [kind for each in program.controllers for kind in (*each.reconciles, *each.owns, *each.watches)]
    kinds = [kind for kind in named if is_custom(kind)]
    group_kinds = {_group_kind(kind) for kind in kinds}
    homes = [sys.modules[kind.__module__] for kind in kinds if kind.__module__ in sys.modules]
    beside = [kind for kind in _values(homes) if is_custom(kind) and _group_kind(kind) in group_kinds]
    return _unique([*kinds, *beside, *(kind for kind in _values(program.modules) if is_custom(kind))])


def _is_own(cls: Any, program: Program) -> bool:
    if Foreign() in markers_on(cls):
        return False
    reconciled = {_group_kind(kind) for each in program.controllers for kind in each.reconciles if is_custom(kind)}
    return _group_kind(cls) in reconciled or cls.__module__ in {module.__name__ for module in program.modules}


def _group_kind(cls: Any) -> GroupKind:
    found: GroupKind = cls.__kind__.gvk.group_kind
    return found


def _values(modules: Iterable[ModuleType]) -> Iterator[Any]:
    for module in modules:
        yield from vars(module).values()


def _of_type(modules: Iterable[ModuleType], *classes: type[Any]) -> list[Any]:
    return [value for value in _values(modules) if isinstance(value, classes)]


def _unique(values: Iterable[T]) -> list[T]:
    return list({id(value): value for value in values}.values())


def _nothing_to_run(modules: Sequence[ModuleType]) -> str:
    files = ", ".join(relative(module.__file__) if module.__file__ else module.__name__ for module in modules)
    text = f"{files}: nothing to run; add a @controller, or a manager with runnables"
    builders = [name for module in modules for name, value in vars(module).items() if isinstance(value, Builder)]
    if builders:
        text += f"; {builders[0]} is a Builder: assign the result of its complete(...) to a name"
    return text
