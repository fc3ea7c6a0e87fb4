"""Dependents: objects that a release or a playbook creates for its primary resource.

- A dependent carries an owner reference where the garbage collector can follow it: the owner is cluster-scoped, or both
  are in the same namespace. Elsewhere it carries operator-sdk's two annotations.
- Kinds are watched from the first dependent on. A change or deletion of a dependent enqueues the primary resource; its
  creation and changes of its status alone do not.
- Operators of operator-sdk set the same references and annotations, so their objects are taken over as they are.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.object import KindInfo
from ostinato.api.owners import owner_references
from ostinato.cache.events import Added, Event, Updated
from ostinato.cache.store.entry import Entry
from ostinato.client.views import Unstructured
from ostinato.controllers.controller import Controller
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.sources.predicates import Predicate

Json = dict[str, Any]

PRIMARY: Final = "operator-sdk/primary-resource"  # namespace/name of the primary resource
PRIMARY_TYPE: Final = "operator-sdk/primary-resource-type"  # its Kind.group


def supports_reference(owner: KindInfo, home: str, dependent: KindInfo, namespace: str) -> bool:
    """Return whether an owner reference of a dependent in `namespace` to an owner in `home` is valid."""
    if not owner.namespaced:
        return True
    return dependent.namespaced and home == namespace


def owner_annotations(owner: Json) -> dict[str, str]:
    """Return the annotations of a dependent that cannot have an owner reference."""
    key, gvk = access.key(owner), access.gvk(owner)
    return {PRIMARY: f"{key.namespace}/{key.name}" if key.namespace else key.name, PRIMARY_TYPE: str(gvk.group_kind)}


def belongs_to(dependent: Json, owner: Json) -> bool:
    """Return whether the dependent carries an owner reference to the owner, or its annotations."""
    if any(each.uid == access.uid(owner) for each in owner_references(dependent)):
        return True
    found = access.annotations(dependent)
    return all(found.get(name) == value for name, value in owner_annotations(owner).items())


class ForPrimary(Handler):
    """Enqueues the primary resource of a dependent."""

    def __init__(self, owner: GroupVersionKind, *, namespaced: bool) -> None:
        self._owner = owner
        self._namespaced = namespaced

    def keys(self, event: Event) -> Keys:
        found = self._of(event.object)
        if isinstance(event, Updated) and event.old is not event.new:
            found += self._of(event.old)
        return found

    def _of(self, entry: Entry) -> list[NamespacedName]:
        home = entry.key.namespace if self._namespaced else ""
        found = [NamespacedName(home, each.name) for each in entry.owner_references if self._is_owner(each)]
        annotations = entry.metadata().metadata.annotations
        if annotations.get(PRIMARY_TYPE) == str(self._owner.group_kind):
            namespace, _, name = annotations.get(PRIMARY, "").rpartition("/")
            if name and bool(namespace) == self._namespaced:
                found.append(NamespacedName(namespace, name))
        return found

    def _is_owner(self, reference: OwnerReference) -> bool:
        group = reference.api_version.rpartition("/")[0]
        return (group, reference.kind) == (self._owner.group, self._owner.kind)


def _has_changed(event: Event) -> bool:
    """Whether a dependent was deleted, or changed in more than its status."""
    if isinstance(event, Added):
        return False
    if not isinstance(event, Updated):
        return True
    return _essence(event.old.dict()) != _essence(event.new.dict())


def _essence(dependent: Json) -> Json:
    metadata = {k: v for k, v in dependent.get("metadata", {}).items() if k not in ("resourceVersion", "managedFields")}
    return {**{k: v for k, v in dependent.items() if k != "status"}, "metadata": metadata}


dependent_changed: Final = Predicate(_has_changed, "dependent changed")


class Dependents:
    """Watches of the kinds that one controller has dependents of."""

    def __init__(self, controller: Controller, owner: GroupVersionKind) -> None:
        self._controller = controller
        self._owner = owner
        self._watched: set[GroupVersionKind] = set()

    def watch(self, kind: KindInfo, *, namespaced_owner: bool) -> bool:
        """Watch a kind, unless it is watched already; return whether the watch is new."""
        if kind.gvk in self._watched or kind.gvk == self._owner:
            return False
        self._watched.add(kind.gvk)
        options = KindOptions(predicates=(dependent_changed,), optional=True)
        handler = ForPrimary(self._owner, namespaced=namespaced_owner)
        self._controller.watch(KindSource(Unstructured(kind.gvk, kind), handler, options))
        return True

    @property
    def watched(self) -> frozenset[GroupVersionKind]:
        return frozenset(self._watched)
