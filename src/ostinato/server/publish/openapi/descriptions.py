"""Descriptions of the fields that every object has; `client_models` has those of the other definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

API_VERSION: Final = "APIVersion defines the group and version of this object's schema."
KIND: Final = "Kind is the type of this object, as it is named in its API group."
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
METADATA: Final = "Standard object's metadata: its names, labels, owners and the state of its deletion."
_FIELDS: Final = {
    "annotations": "Annotations are values that tools store with the object; they cannot be selected by.",
    "creationTimestamp": "CreationTimestamp is a timestamp of the object's creation, set by the server.",
    "deletionGracePeriodSeconds": "Seconds that a graceful deletion may take. Set with deletionTimestamp.",
    "deletionTimestamp": "Time at which the object is to be deleted; set by the server when a deletion is requested.",
    "finalizers": "Finalizers keep the object until their owners have removed them; it can then be deleted.",
    "generateName": "Prefix of a name that the server completes, if name is empty.",
    "generation": "Number of the desired state, increased by the server when that changes.",
    "labels": "Labels are values by which objects are organized and selected.",
    "managedFields": "The fields that each manager has set, and how. Maintained by the server.",
    "name": "Name of the object, unique among those of its kind in the namespace. Cannot be changed.",
    "namespace": "Namespace of the object; empty for cluster-scoped objects. Cannot be changed.",
    "ownerReferences": "Objects that this one depends on: it is deleted when all of them are.",
    "resourceVersion": "Version of the stored object, for comparisons and watches. Set by the server.",
    "selfLink": "Not used.",
    "uid": "Identity of the object, unique over time. Set by the server.",
}


def described(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a definition with its descriptions, if it has any."""
    if name != _OBJECT_META:
        return schema
    properties = {
        field: {**node, "description": _FIELDS[field]} if field in _FIELDS else node
        for field, node in schema["properties"].items()
    }
    return {**schema, "description": METADATA, "properties": properties}
