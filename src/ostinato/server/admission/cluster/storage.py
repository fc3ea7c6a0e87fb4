"""DefaultStorageClass, PersistentVolumeClaimResize and StorageObjectInUseProtection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.gvk import GroupResource
from ostinato.api.quantity import Quantity
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_FINALIZERS = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class DefaultStorageClass(Plugin):
    covers = resources("persistentvolumeclaims")

    def __init__(self, classes: Lister) -> None:
        self._classes = classes

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not is_of(context, "", "persistentvolumeclaims"):
            return
        assert obj is not None
        if "storageClassName" in obj["spec"] or _OLD_CLASS in obj["metadata"].get("annotations", {}):
            return
        defaults = [each["metadata"] for each in self._classes.all() if _is_default(each)]
        if defaults:  # the newest; equally old ones by name
            newest = max(metadata["creationTimestamp"] for metadata in defaults)
            names = [metadata["name"] for metadata in defaults if metadata["creationTimestamp"] == newest]
            obj["spec"]["storageClassName"] = min(names)


def _is_default(storage_class: Json) -> bool:
    annotations = storage_class["metadata"].get("annotations", {})
    return any(annotations.get(key) == "true" for key in _DEFAULT)


class PersistentVolumeClaimResize(Plugin):
    """Rejects expansion of unbound claims and of claims whose class does not allow it."""

    covers = resources("persistentvolumeclaims")

    def __init__(self, classes: Lister) -> None:
        self._classes = classes

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation != "UPDATE" or not is_of(context, "", "persistentvolumeclaims"):
            return
        assert obj is not None
        assert old is not None
        if _size(obj) <= _size(old):
            return
        if old.get("status", {}).get("phase") != "Bound":
            raise forbidden(context, obj, "Only bound persistent volume claims can be expanded")
        name = _class_of(obj)
        found = self._classes.get(name) if name and name == _class_of(old) else None
        if found is None or not found.get("allowVolumeExpansion"):
            why = "the storageclass that provisions the pvc must support resize"
            raise forbidden(context, obj, f"only dynamically provisioned pvc can be resized and {why}")


def _size(claim: Json) -> Quantity:
    return Quantity.parse(claim["spec"].get("resources", {}).get("requests", {}).get("storage", "0"))


def _class_of(claim: Json) -> str:
    name = claim["metadata"].get("annotations", {}).get(_OLD_CLASS) or claim["spec"].get("storageClassName")
    return name or ""


class StorageObjectInUseProtection(Plugin):
    covers = frozenset(GroupResource(*each) for each in _FINALIZERS)

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        gvr = context.resource.gvr
        finalizer = _FINALIZERS.get((gvr.group, gvr.resource))
        if operation != "CREATE" or finalizer is None or context.route.subresource:
            return
        assert obj is not None
        finalizers = obj["metadata"].get("finalizers", [])
        if finalizer not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, finalizer]
