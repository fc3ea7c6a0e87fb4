"""The graph: who owns whom, by uid, among all objects of all kinds.

It says of which objects something has to be found out, to whoever listens (`on_look`), and nothing else happens here:

- whose owner is unknown, or is not what the reference says of it;
- whose owner has gone, or has begun to wait for its dependents;
- who waits for dependents, and has lost one that it waited for; who is to leave orphans.

An owner that only references tell of is not in the graph; its dependents are all the same known under its uid.
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
_MAX_ABSENT: Final = 10_000  # owners that are known to be gone


class Reference(NamedTuple):
    """What an object says of an owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool  # the deletion of the owner, if it waits for its dependents


class KindStore(Protocol):
    """Where the objects of a kind are found."""

    info: KindInfo

    def entry(self, key: NamespacedName) -> Entry | None: ...


class Node:
    """An object."""

    __slots__ = ("is_terminating", "key", "kind_store", "orphans_dependents", "owners", "uid", "waits_for_dependents")

    def __init__(self, kind_store: KindStore, key: NamespacedName, uid: str) -> None:
        self.kind_store = kind_store
        self.key = key
        self.uid = uid
        self.owners: tuple[Reference, ...] = ()
        self.is_terminating = False
        self.waits_for_dependents = False  # it is dying, and waits until its dependents have gone
        self.orphans_dependents = False  # it is dying, and waits until its dependents are without it

    def __str__(self) -> str:
        return f"{self.kind_store.info.gvk.kind} {self.key}"

    def entry(self) -> Entry | None:
        """The object as the cache has it; None if it is gone, or another has its name."""
        found = self.kind_store.entry(self.key)
        return found if found is not None and found.uid == self.uid else None

    def matches_reference(self, reference: Reference, namespace: str) -> bool:
        """Whether a reference in a namespace gives kind, name and place of this object."""
        gvk = self.kind_store.info.gvk
        referenced = (reference.kind, reference.api_version, reference.name)
        return referenced == (gvk.kind, gvk.api_version, self.key.name) and not self.is_in_other_namespace(namespace)

    def is_in_other_namespace(self, namespace: str) -> bool:
        """Whether it is in a namespace, and not in this one."""
        return bool(self.key.namespace) and self.key.namespace != namespace


class Graph:
    def __init__(self) -> None:
        self.enqueue: Callable[[str], object] = lambda _: None
        self.on_invalid_namespace: Callable[[Node, Reference], object] = lambda _, __: None
        self.absent = AbsentOwnerCache()
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # by the uid of the owner, which may not be a node
        self._complete = False  # until then nobody is missed

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        return [self._nodes[each] for each in self._dependents.get(uid, ())]

    def complete(self) -> None:
        """All that was there at the beginning is here: what refers to anything else is doubtful."""
        self._complete = True
        for node in self._nodes.values():
            if any(self._needs_check(node, each) for each in node.owners):
                self.enqueue(node.uid)

    def put(self, kind_store: KindStore, entry: Entry) -> None:
        """There is an object, or it has changed."""
        node = self._nodes.get(entry.uid)
        if node is None:
            node = self._nodes[entry.uid] = Node(kind_store, entry.key, entry.uid)
            self._verify_dependents(node)
        else:
            node.kind_store, node.key = kind_store, entry.key  # the same object may come in another version
        owners = references_from(entry.owners_json)
        if owners != node.owners:
            before, node.owners = node.owners, owners
            self._remove_references(node, before)
            self._connect(node, before)
        if entry.is_being_deleted:
            self._mark_terminating(node, entry.header.finalizers or [])

    def remove(self, uid: str) -> None:
        """An object has gone."""
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
        """Nothing is heard of a kind any more: whether its objects are there is unknown."""
        for node in [each for each in self._nodes.values() if each.kind_store is kind_store]:
            del self._nodes[node.uid]
            for reference in node.owners:
                self._disconnect(node, reference.uid)
            self._enqueue_dependents(node.uid)

    def _verify_dependents(self, owner: Node) -> None:
        """An owner is seen for the first time: its dependents may have had a wrong idea of it."""
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
                self.enqueue(reference.uid)  # which may have waited for this

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
    """Owners that are known to be gone: by uid, or only where a reference says that they are. The last few thousand."""

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
    """References from their JSON; decoded once for all objects that have the same."""
    found = msgspec.json.decode(data, type=list[_OwnerReference] | None) if data else None
    return tuple(
        Reference(each.api_version, each.kind, each.name, each.uid, bool(each.block_owner_deletion))
        for each in found or ()
    )
