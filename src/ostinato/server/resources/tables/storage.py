"""Rows of volumes, claims, and what provides them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, UNSET, Cells, age, joined, name_of

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class_of(obj: Json, spec: Json) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_OLD_CLASS, spec.get("storageClassName", "")))


def _phase(obj: Json) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str((obj.get("status") or {}).get("phase", ""))


def _volume(obj: Json, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class_of(obj, spec),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", UNSET),
    ]


def _claim(obj: Json, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    volume = spec.get("volumeName", "")
    return [
        name_of(obj),
        _phase(obj),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        _modes(status.get("accessModes")) if volume else "",
        _class_of(obj, spec),
        spec.get("volumeAttributesClassName", UNSET),
        age(obj, now),
        spec.get("volumeMode", UNSET),
    ]


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
    ("", "persistentvolumes"): _volume,
    ("", "persistentvolumeclaims"): _claim,
    ("storage.k8s.io", "storageclasses"): _storage_class,
    ("storage.k8s.io", "volumeattributesclasses"): _attributes_class,
    ("storage.k8s.io", "volumeattachments"): _attachment,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("storage.k8s.io", "csidrivers"): _csi_driver,
}
