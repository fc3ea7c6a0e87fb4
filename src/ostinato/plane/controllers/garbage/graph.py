"""Ownership graph: owners and dependents by uid, over all kinds.

It enqueues (`enqueue`) the nodes that must be processed, and has no other side effect:

- objects whose owner is unknown or does not match the reference;
- objects whose owner was deleted, or waits for its dependents;
- owners that wait for dependents and lost a blocking one; owners that orphan their dependents.

An owner that is known from references only has no node, but its dependents are indexed under its uid.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import KindInfo
from ostinato.cache import Entry

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_MAX_ABSENT: Final = 10_000  # absent owners to remember


class Reference(NamedTuple):
    """An owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool  # blockOwnerDeletion


class KindStore(Protocol):
    """Lookup of the objects of one kind."""

    info: KindInfo

    def entry(self, key: NamespacedName) -> Entry | None: ...


class Node:
    """A node of the graph: one object."""

    __slots__ = ("is_terminating", "key", "kind_store", "orphans_dependents", "owners", "uid", "waits_for_dependents")

    def __init__(self, kind_store: KindStore, key: NamespacedName, uid: str) -> None:
        self.kind_store = kind_store
        self.key = key
        self.uid = uid
        self.owners: tuple[Reference, ...] = ()
        self.is_terminating = False
        self.waits_for_dependents = False  # foreground deletion
        self.orphans_dependents = False  # orphan deletion

    def __str__(self) -> str:
        return f"{self.kind_store.info.gvk.kind} {self.key}"

    def entry(self) -> Entry | None:
        """Return the cached object; None if it was deleted or recreated."""
        found = self.kind_store.entry(self.key)
        return found if found is not None and found.uid == self.uid else None

    def matches_reference(self, reference: Reference, namespace: str) -> bool:
        """Return whether kind, apiVersion, name and namespace of a reference match this object."""
        gvk = self.kind_store.info.gvk
        referenced = (reference.kind, reference.api_version, reference.name)
        return referenced == (gvk.kind, gvk.api_version, self.key.name) and not self.is_in_other_namespace(namespace)

    def is_in_other_namespace(self, namespace: str) -> bool:
        """Return whether the object is namespaced and in another namespace."""
        return bool(self.key.namespace) and self.key.namespace != namespace


class Graph:
    def __init__(self) -> None:
        self.enqueue: Callable[[str], object] = lambda _: None
        self.on_invalid_namespace: Callable[[Node, Reference], object] = lambda _, __: None
        self.absent = AbsentOwnerCache()
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # by owner uid; the owner may have no node
        self._complete = False  # before that, missing owners are not checked

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        return [self._nodes[each] for each in self._dependents.get(uid, ())]

    def complete(self) -> None:
        """Mark the initial lists as complete, and enqueue objects whose owners are unknown."""
        self._complete = True
        for node in self._nodes.values():
            if any(self._needs_check(node, each) for each in node.owners):
                self.enqueue(node.uid)

    def put(self, kind_store: KindStore, entry: Entry) -> None:
        """Add or update an object."""
        node = self._nodes.get(entry.uid)
        if node is None:
            node = self._nodes[entry.uid] = Node(kind_store, entry.key, entry.uid)
            self._verify_dependents(node)
        else:
            node.kind_store, node.key = kind_store, entry.key  # the kind may be monitored in another API version now
        owners = references_from(entry.owners_json)
        if owners != node.owners:
            before, node.owners = node.owners, owners
            self._remove_references(node, before)
            self._connect(node, before)
        if entry.is_being_deleted:
            self._mark_terminating(node, entry.header.finalizers or [])

    def remove(self, uid: str) -> None:
        """Remove a deleted object."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        for reference in node.owners:
            self._disconnect(node, reference.uid)
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                self.enqueue(owner.uid)
        if uid in self._dependents:
            self.absent.add(uid)
            self._enqueue_dependents(uid)

    def forget(self, kind_store: KindStore) -> None:
        """Remove the objects of a kind that is no longer monitored."""
        for node in [each for each in self._nodes.values() if each.kind_store is kind_store]:
            del self._nodes[node.uid]
            for reference in node.owners:
                self._disconnect(node, reference.uid)
            self._enqueue_dependents(node.uid)

    def _verify_dependents(self, owner: Node) -> None:
        """Check the references of existing dependents against a new owner."""
        for dependent in self.dependents(owner.uid):
            for reference in dependent.owners:
                if reference.uid == owner.uid and not owner.matches_reference(reference, dependent.key.namespace):
                    self._check_owner(dependent, reference, owner)

    def _connect(self, node: Node, before: tuple[Reference, ...]) -> None:
        for reference in node.owners:
            if reference in before:
                continue
            self._dependents.setdefault(reference.uid, {})[node.uid] = None
            if self._needs_check(node, reference):
                self._check_owner(node, reference, self._nodes.get(reference.uid))

    def _remove_references(self, node: Node, before: tuple[Reference, ...]) -> None:
        for reference in before:
            remaining = [each for each in node.owners if each.uid == reference.uid]
            if not remaining:
                self._disconnect(node, reference.uid)
            if reference.blocks and not any(each.blocks for each in remaining) and reference.uid in self._nodes:
                self.enqueue(reference.uid)  # it may have waited for this dependent

    def _disconnect(self, node: Node, owner: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(node.uid, None)
            if not dependents:
                del self._dependents[owner]

    def _needs_check(self, node: Node, reference: Reference) -> bool:
        owner = self._nodes.get(reference.uid)
        return owner is None or not owner.matches_reference(reference, node.key.namespace)

    def _check_owner(self, node: Node, reference: Reference, owner: Node | None) -> None:
        if owner is not None and owner.is_in_other_namespace(node.key.namespace):
            self.on_invalid_namespace(node, reference)
        if self._complete:
            self.enqueue(node.uid)

    def _mark_terminating(self, node: Node, finalizers: list[str]) -> None:
        was_waiting, was_orphaning = node.waits_for_dependents, node.orphans_dependents
        node.is_terminating = True
        node.waits_for_dependents, node.orphans_dependents = FOREGROUND in finalizers, ORPHAN in finalizers
        if node.orphans_dependents and not was_orphaning:
            self.enqueue(node.uid)
        elif node.waits_for_dependents and not was_waiting:
            self._enqueue_dependents(node.uid)
            self.enqueue(node.uid)

    def _enqueue_dependents(self, uid: str) -> None:
        for each in self._dependents.get(uid, ()):
            self.enqueue(each)


class AbsentOwnerCache:
    """Least recently used cache of absent owners: by uid, or by reference and namespace."""

    def __init__(self, most: int = _MAX_ABSENT) -> None:
        self._most = most
        self._known: OrderedDict[object, None] = OrderedDict()

    def add(self, uid: str) -> None:
        self._add(uid)

    def add_at(self, reference: Reference, namespace: str) -> None:
        self._add((*reference[:4], namespace))

    def has(self, reference: Reference, namespace: str) -> bool:
        return reference.uid in self._known or (*reference[:4], namespace) in self._known

    def _add(self, key: object) -> None:
        self._known[key] = None
        if len(self._known) > self._most:
            self._known.popitem(last=False)


class _OwnerReference(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


@lru_cache(maxsize=8192)
def references_from(data: bytes) -> tuple[Reference, ...]:
    """Decode owner references; equal JSON is decoded once."""
    found = msgspec.json.decode(data, type=list[_OwnerReference] | None) if data else None
    return tuple(
        Reference(each.api_version, each.kind, each.name, each.uid, bool(each.block_owner_deletion))
        for each in found or ()
    )
