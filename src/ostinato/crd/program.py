"""Programs: the controllers, kinds and permissions of managers.

- The kinds of a program are those that its controllers reconcile and those that its modules define. Kinds marked
  `Foreign()` belong to other programs.
- `access_of_managers` is the access of everything that the managers run, in the namespaces that their caches watch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from ostinato.api.gvk import GroupKind, NamespacedName
from ostinato.api.markers import Foreign, markers_on
from ostinato.api.object import CustomResource, KindInfo, Object
from ostinato.client.views import view_of
from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.sources.kind import KindSource
from ostinato.crd.definition import crd_of
from ostinato.crd.rbac import (
    Access,
    access_of,
    certificate_access,
    event_access,
    event_namespaces,
    leader_election_access,
    review_access,
    shard_access,
)
from ostinato.crd.schema.models import is_model
from ostinato.crd.schema.place import SchemaError
from ostinato.manager.manager import Manager
from ostinato.webhook.webhooks import Webhooks

Json = dict[str, Any]
T = TypeVar("T")
AnyController = ControllerFunction | Controller | FrontEnd


def controllers_of(manager: Manager) -> list[AnyController]:
    return [each for each in manager.runnables if isinstance(each, AnyController)]


def webhooks_of(managers: Iterable[Manager]) -> list[Webhooks]:
    return [each for manager in managers for each in manager.runnables if isinstance(each, Webhooks)]


def kind_sources(controller: AnyController) -> list[KindSource]:
    """Return the controller's sources that watch kinds in the manager's cluster."""
    return [each for each in controller.sources if isinstance(each, KindSource) and each.options.informers is None]


def is_custom(kind: Any) -> bool:
    """Whether the kind is a custom resource: served only with a CustomResourceDefinition."""
    if not isinstance(kind, type) or not isinstance(getattr(kind, "__kind__", None), KindInfo):
        return False
    return issubclass(kind, CustomResource) or (is_model(kind) and not issubclass(kind, Object))


def definitions_of_managers(
    managers: Sequence[Manager], modules: Sequence[ModuleType] = (), *, all_kinds: bool = False
) -> list[Json]:
    """Return the CustomResourceDefinitions of the kinds of a program, sorted by name. Raises `SchemaError`.

    - `modules`: of the program; kinds that they define belong to it.
    - `all_kinds`: include the custom kinds of other programs that it watches or owns. Defaults to False.
    """
    controllers = [each for manager in managers for each in controllers_of(manager)]
    converted = [cls for each in webhooks_of(managers) for cls in each.converted]
    known = _custom_kinds(controllers, modules, converted)
    wanted = {_group_kind(cls): None for cls in known if all_kinds or _is_own(cls, controllers, modules)}
    conversions = {name: each.conversion() for each in webhooks_of(managers) for name in each.definitions}
    found = []
    for group_kind in wanted:
        versions = {cls.__kind__.gvk.version: cls for cls in reversed(known) if _group_kind(cls) == group_kind}
        info: KindInfo = next(iter(versions.values())).__kind__
        name = f"{info.plural}.{info.gvk.group}"
        try:
            found.append(crd_of(*versions.values(), conversion=conversions.get(name)))
        except SchemaError as error:
            raise SchemaError(f"cannot generate a CustomResourceDefinition for {group_kind}: {error}") from None
    derived = {each["metadata"]["name"] for each in found}
    bringing = [each for each in controllers if isinstance(each, FrontEnd | Controller)]
    brought = [each for one in bringing for each in one.definitions]
    found += {each["metadata"]["name"]: each for each in brought if each["metadata"]["name"] not in derived}.values()
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def access_of_managers(managers: Iterable[Manager], *, namespace: str) -> list[Access]:
    """Return the access that the managers need: controllers, webhooks, events, leader election.

    `namespace`: of the Lease of a leader election that names none.
    """
    managers = [*managers]
    rules: list[Access] = []
    for webhooks in webhooks_of(managers):
        rules += certificate_access(webhooks)
    for manager in managers:
        about = {*manager.caches.defaults.namespaces}
        for controller in controllers_of(manager):
            where = partial(_namespaces, manager, controller)
            rules += access_of(controller, where=where)
            about |= event_namespaces([controller], where)
        if (sharding := manager.sharding) is not None:
            rules += shard_access(sharding.namespace or namespace)
        if manager.reviews_access:
            rules += review_access()
        if (election := manager.leader_election) is not None:
            lease = election.namespace or namespace  # the same choice as Manager's
            rules += leader_election_access(NamespacedName(lease, election.name))
            about.add(lease)
        for place in {""} if "" in about else about:
            rules += [event_access(place, core=core) for core in {False, manager.reporting.core_events}]
    return rules


def _namespaces(manager: Manager, controller: AnyController, kind: Any) -> Iterable[str]:
    """Return the namespaces in which a controller watches a kind: its own setting, or that of the manager's caches."""
    own = [each.options.settings for each in kind_sources(controller) if each.view.gvk == view_of(kind).gvk]
    watched = [settings or manager.caches.of(kind) for settings in own or (None,)]
    return {namespace for settings in watched for namespace in settings.namespaces}


def _custom_kinds(
    controllers: Sequence[AnyController], modules: Sequence[ModuleType], converted: Sequence[Any]
) -> list[Any]:
    """Return the kinds that controllers name, then their other versions and the kinds that the modules define.

    `converted`: the classes of conversion webhooks; versions may be in modules of their own.
    """
    named = [kind for each in controllers for kind in (*each.reconciles, *each.owns, *each.watches)]
    kinds = [kind for kind in named if is_custom(kind)]
    group_kinds = {_group_kind(kind) for kind in kinds}
    homes = [sys.modules[kind.__module__] for kind in kinds if kind.__module__ in sys.modules]
    candidates = [kind for kind in (*_values(homes), *converted) if is_custom(kind)]
    versions = [kind for kind in candidates if _group_kind(kind) in group_kinds]
    return unique([*kinds, *versions, *(kind for kind in _values(modules) if is_custom(kind))])


def _is_own(cls: Any, controllers: Sequence[AnyController], modules: Sequence[ModuleType]) -> bool:
    if Foreign() in markers_on(cls):
        return False
    reconciled = {_group_kind(kind) for each in controllers for kind in each.reconciles if is_custom(kind)}
    return _group_kind(cls) in reconciled or cls.__module__ in {module.__name__ for module in modules}


def _group_kind(cls: Any) -> GroupKind:
    found: GroupKind = cls.__kind__.gvk.group_kind
    return found


def _values(modules: Iterable[ModuleType]) -> Iterator[Any]:
    for module in modules:
        yield from vars(module).values()


def unique(values: Iterable[T]) -> list[T]:
    """Return the values without repeated objects."""
    return list({id(value): value for value in values}.values())
