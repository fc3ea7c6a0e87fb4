"""Listers of the manager's informers, for kinds other than Pods and nodes.

Objects are decoded once per resourceVersion. A kind without an informer has no objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import Object
from ostinato.api.selectors.labels import Selector, nothing
from ostinato.cache.informers import Informers
from ostinato.cache.store.entry import Entry
from ostinato.kinds.apps_v1 import ReplicaSet, StatefulSet
from ostinato.kinds.core_v1 import (
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    ReplicationController,
    Service,
)
from ostinato.kinds.policy_v1 import PodDisruptionBudget
from ostinato.kinds.storage_v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.scheduler.cache.affinity_terms import NO_LABELS, Term
from ostinato.plane.scheduler.cache.pod_info import PodInfo

O = TypeVar("O", bound=Object)  # noqa: E741

KINDS: Final[tuple[type[Object], ...]] = (
    Namespace,
    Service,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    PodDisruptionBudget,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)
_MAX_DECODED: Final = 2048


class Listers:
    def __init__(self, informers: Informers | None = None) -> None:
        self._stores = {} if informers is None else {kind: informers.of(kind).store for kind in KINDS}
        self._pods = None if informers is None else informers.of(PodState).store
        self._decoded: dict[tuple[type[Object], str, str], Any] = {}  # by (kind, uid, resourceVersion)
        self.services = 0  # incremented with each Service event, to invalidate derived data

    def get(self, kind: type[O], name: str, namespace: str = "") -> O | None:
        store = self._stores.get(kind)
        entry = None if store is None else store.get(NamespacedName(namespace, name))
        return None if entry is None else self._read(kind, entry)

    def pod(self, kind: type[O], pod: PodInfo) -> O | None:
        """Return the current Pod, decoded as `kind`; None if it was deleted or recreated."""
        entry = None if self._pods is None else self._pods.get(pod.key)
        return None if entry is None or entry.uid != pod.uid else self._read(kind, entry)

    def all(self, kind: type[O], namespace: str = "") -> Iterator[O]:
        """Iterate over all objects, or those of a namespace. They are shared: do not modify them."""
        store = self._stores.get(kind)
        for entry in () if store is None else store.entries(namespace):
            yield self._read(kind, entry)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        store = self._stores.get(Namespace)
        entry = None if store is None else store.get(NamespacedName("", name))
        return NO_LABELS if entry is None else entry.labels

    def namespaces(self, selector: Selector) -> frozenset[str]:
        """Return the names of matching namespaces."""
        store = self._stores.get(Namespace)
        entries = () if store is None else store.entries()
        return frozenset([entry.key.name for entry in entries if selector.matches(entry.labels)])

    def resolved(self, term: Term) -> Term:
        """Return the term with its namespaceSelector resolved to names."""
        selector = term.namespace_selector
        if selector.empty or selector.selects_nothing:
            return term
        return msgspec.structs.replace(
            term, namespaces=term.namespaces | self.namespaces(selector), namespace_selector=nothing()
        )

    def _read(self, kind: type[O], entry: Entry) -> O:
        key = (kind, entry.uid, entry.resource_version)
        found = self._decoded.get(key)
        if found is None:
            if len(self._decoded) >= _MAX_DECODED:
                self._decoded.clear()
            found = self._decoded[key] = entry.read(kind)
        return cast("O", found)
