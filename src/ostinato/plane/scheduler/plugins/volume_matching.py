"""Which volumes a claim may be bound to on a node, and on which nodes one can be made for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ostinato.api.codec import to_dict
from ostinato.api.labels import from_label_selector
from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import StorageClass
from ostinato.plane.scheduler import node_terms
from ostinato.plane.scheduler.nodes import NodeInfo

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def class_of(instance: PersistentVolume | PersistentVolumeClaim) -> str:
    annotations = instance.metadata.annotations or {}
    if _OLD_CLASS in annotations:
        return annotations[_OLD_CLASS]
    return (instance.spec.storage_class_name if instance.spec is not None else None) or ""


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether it has a volume for good."""
    has_volume = claim.spec is not None and bool(claim.spec.volume_name)
    return has_volume and BIND_COMPLETED in (claim.metadata.annotations or {})


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def is_reachable(volume: PersistentVolume, node: NodeInfo) -> bool:
    """Whether the node affinity of a volume allows a node."""
    affinity = volume.spec.node_affinity if volume.spec is not None else None
    if affinity is None or affinity.required is None:
        return True
    terms = [
        node_terms.NodeTerm(
            match_expressions=[_requirement(to_dict(each)) for each in term.match_expressions or []],
            match_fields=[_requirement(to_dict(each)) for each in term.match_fields or []],
        )
        for term in affinity.required.node_selector_terms or []
    ]
    return node_terms.matcher(terms)(node.labels, node.name)


def best_volume(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    node: NodeInfo | None = None,
    taken: Mapping[str, object] = MappingProxyType({}),
) -> PersistentVolume | None:
    """The smallest volume that a claim may have, on a node or anywhere; one that is meant for it comes first."""
    best: PersistentVolume | None = None
    for volume in volumes:
        name = volume.metadata.name
        if name in taken or not _is_suitable(claim, volume) or (node is not None and not is_reachable(volume, node)):
            continue
        reference = volume.spec.claim_ref if volume.spec is not None else None
        if reference is not None:
            meant = (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
            if meant and reference.uid in (None, "", claim.metadata.uid):
                return volume
            continue
        if volume.status is not None and volume.status.phase not in (None, "", "Available"):
            continue
        if best is None or _size(volume) < _size(best):
            best = volume
    return best


def can_be_made(storage_class: StorageClass | None, node: NodeInfo) -> bool:
    """Whether a volume of a class can be made for a Pod on a node."""
    if storage_class is None or storage_class.provisioner in ("", _NO_PROVISIONER):
        return False
    terms = storage_class.allowed_topologies or []
    if not terms:
        return True
    return any(
        all(node.labels.get(each.key) in (each.values or []) for each in term.match_label_expressions or [])
        for term in terms
    )


def requested(claim: PersistentVolumeClaim) -> int:
    resources = claim.spec.resources if claim.spec is not None else None
    quantity = (resources.requests or {}).get("storage") if resources is not None else None
    return quantity.value() if quantity is not None else 0


def _is_suitable(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    wants, has = claim.spec, volume.spec
    if wants is None or has is None or volume.metadata.deletion_timestamp is not None:
        return False
    if class_of(claim) != class_of(volume) or _size(volume) < requested(claim):
        return False
    if (wants.volume_mode or "Filesystem") != (has.volume_mode or "Filesystem"):
        return False
    if not set(wants.access_modes or []) <= set(has.access_modes or []):
        return False
    if wants.selector is None:
        return True
    return from_label_selector(to_dict(wants.selector)).matches(volume.metadata.labels or {})


def _size(volume: PersistentVolume) -> int:
    quantity = (volume.spec.capacity or {}).get("storage") if volume.spec is not None else None
    return quantity.value() if quantity is not None else 0


def _requirement(raw: Mapping[str, object]) -> node_terms.NodeRequirement:
    values = raw.get("values")
    return node_terms.NodeRequirement(
        key=str(raw.get("key", "")),
        operator=str(raw.get("operator", "")),
        values=[str(value) for value in values] if isinstance(values, list) else [],
    )
