"""Table rows of the storage.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, UNSET, Cells, age, joined, name_of

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _storage_class(obj: Json, now: datetime) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    name = name_of(obj)
    if any(annotations.get(key) == "true" for key in _DEFAULT):
        name += " (default)"
    return [
        name,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj, now),
    ]


def _attributes_class(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("driverName", ""), age(obj, now)]


def _attachment(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name_of(obj),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        (obj.get("status") or {}).get("attached", False),
        age(obj, now),
    ]


def _csi_node(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), len((obj.get("spec") or {}).get("drivers") or ()), age(obj, now)]


def _csi_driver(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    tokens = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else joined(token.get("audience", "") for token in tokens),
        spec.get("requiresRepublish", False),
        joined(spec.get("volumeLifecycleModes")) or NONE,
        age(obj, now),
    ]


CELLS: dict[tuple[str, str], Cells] = {
    ("storage.k8s.io", "storageclasses"): _storage_class,
    ("storage.k8s.io", "volumeattributesclasses"): _attributes_class,
    ("storage.k8s.io", "volumeattachments"): _attachment,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("storage.k8s.io", "csidrivers"): _csi_driver,
}
