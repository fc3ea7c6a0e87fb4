"""Matching of claims and volumes, and volume topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from ostinato.api.codec import to_dict
from ostinato.api.selectors.labels import from_label_selector
from ostinato.kinds.core_v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import StorageClass
from ostinato.plane.placement.node_selectors import matcher

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class NodeLabels(Protocol):
    """Name and labels of a node."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...


def class_of(instance: PersistentVolume | PersistentVolumeClaim) -> str:
    return instance.metadata.annotations.get(_OLD_CLASS, instance.spec.storage_class_name or "")


def claim_reference(claim: PersistentVolumeClaim) -> ObjectReference:
    """Return the `claimRef` of a volume that is bound to the claim."""
    metadata = claim.metadata
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim is fully bound."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def matches_node_affinity(volume: PersistentVolume, node: NodeLabels) -> bool:
    """Return whether the node affinity of a volume allows the node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return matcher(affinity.required.node_selector_terms)(node.labels, node.name)


def find_matching_volume(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    node: NodeLabels | None = None,
    taken: Mapping[str, object] = MappingProxyType({}),
) -> PersistentVolume | None:
    """Return the smallest matching volume, optionally on a node; a prebound volume has precedence."""
    best: PersistentVolume | None = None
    for volume in volumes:
        name = volume.metadata.name
        if (
            name in taken
            or not _is_suitable(claim, volume)
            or (node is not None and not matches_node_affinity(volume, node))
        ):
            continue
        reference = volume.spec.claim_ref
        if reference is not None:
            meant = (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
            if meant and reference.uid in (None, "", claim.metadata.uid):
                return volume
            continue
        if volume.status.phase not in (None, "", "Available"):
            continue
        if best is None or _size(volume) < _size(best):
            best = volume
    return best


def can_be_provisioned(storage_class: StorageClass | None, node: NodeLabels) -> bool:
    """Return whether a volume of the class can be provisioned on the node (allowedTopologies)."""
    if storage_class is None or storage_class.provisioner in ("", _NO_PROVISIONER):
        return False
    terms = storage_class.allowed_topologies
    return not terms or any(
        all(node.labels.get(each.key) in each.values for each in term.match_label_expressions) for term in terms
    )


def requested(claim: PersistentVolumeClaim) -> int:
    resources = claim.spec.resources
    quantity = None if resources is None else resources.requests.get("storage")
    return quantity.value() if quantity is not None else 0


def _is_suitable(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    wants, has = claim.spec, volume.spec
    if volume.metadata.deletion_timestamp is not None:
        return False
    if class_of(claim) != class_of(volume) or _size(volume) < requested(claim):
        return False
    if (wants.volume_mode or "Filesystem") != (has.volume_mode or "Filesystem"):
        return False
    if not set(wants.access_modes) <= set(has.access_modes):
        return False
    if wants.selector is None:
        return True
    return from_label_selector(to_dict(wants.selector)).matches(volume.metadata.labels)


def _size(volume: PersistentVolume) -> int:
    quantity = volume.spec.capacity.get("storage")
    return quantity.value() if quantity is not None else 0
