"""The storage group: classes of volumes, and what CSI drivers tell of themselves."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.field_errors import FieldError, Path
from ostinato.api.names import is_qualified_name
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation import checked, one_of, unchanged

_GROUP = "storage.k8s.io"
_IN_SECRETS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class StorageClass(Strategy):
    returns_deleted = True

    def default(self, obj: Json) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Json) -> list[FieldError]:
        provisioner, path = obj.get("provisioner", ""), Path("provisioner")
        errors = checked(is_qualified_name, provisioner.lower(), path) if provisioner else [FieldError.required(path)]
        if obj.get("reclaimPolicy"):
            errors += one_of(obj["reclaimPolicy"], ["Delete", "Retain"], Path("reclaimPolicy"))
        modes = ["Immediate", "WaitForFirstConsumer"]
        return errors + one_of(obj.get("volumeBindingMode", ""), modes, Path("volumeBindingMode"))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return [
            error
            for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
            for error in unchanged(new.get(field), old.get(field), Path(field))
        ]


class VolumeAttributesClass(Strategy):
    returns_deleted = True

    def validate(self, obj: Json) -> list[FieldError]:
        driver, errors = obj.get("driverName", ""), []
        if not driver:
            errors.append(FieldError.required(Path("driverName")))
        if not obj.get("parameters"):
            errors.append(FieldError.required(Path("parameters"), "must contain at least one key/value pair"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = unchanged(new.get("driverName"), old.get("driverName"), Path("driverName"))
        return errors + unchanged(new.get("parameters"), old.get("parameters"), Path("parameters"))


class CSIDriver(Strategy):
    returns_deleted = True
    allow_unconditional_update = False
    generation = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("attachRequired", True)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            spec.setdefault(field, False)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_create(self, obj: Json) -> None:
        obj["metadata"].pop("generation", None)
        obj["spec"].pop("preventPodSchedulingIfMissing", None)  # behind a gate that is closed

    def prepare_update(self, new: Json, old: Json) -> None:
        if "preventPodSchedulingIfMissing" not in old["spec"]:
            new["spec"].pop("preventPodSchedulingIfMissing", None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        path = Path("spec")
        return [
            error
            for field in ("attachRequired", "volumeLifecycleModes")
            for error in unchanged(new["spec"].get(field), old["spec"].get(field), path.child(field))
        ]

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        spec, before = new["spec"], old["spec"] if old else {}
        tokens = spec.get("tokenRequests")
        if tokens and tokens != before.get("tokenRequests") and "serviceAccountTokenInSecrets" not in spec:
            return [_IN_SECRETS]
        return []


class CSINode(Strategy):
    returns_deleted = True
    allow_unconditional_update = False


class CSIStorageCapacity(Strategy):
    allow_unconditional_update = False

    def validate(self, obj: Json) -> list[FieldError]:
        return [] if obj.get("storageClassName") else [FieldError.required(Path("storageClassName"))]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = self.validate(new)
        for field in ("nodeTopology", "storageClassName"):
            errors += unchanged(new.get(field), old.get(field), Path(field))
        return errors


class VolumeAttachment(Strategy):
    returns_deleted = True
    allow_unconditional_update = False
    empty_status: ClassVar[Json] = {"attached": False}
    status_keeps_metadata = True

    def validate(self, obj: Json) -> list[FieldError]:
        spec, path = obj.get("spec") or {}, Path("spec")
        errors = [FieldError.required(path.child(field)) for field in ("attacher", "nodeName") if not spec.get(field)]
        source = spec.get("source") or {}
        given = [field for field in ("inlineVolumeSpec", "persistentVolumeName") if field in source]
        if not given:
            detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            errors.append(FieldError.required(path.child("source"), detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + unchanged(new.get("spec"), old.get("spec"), Path("spec"))


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "storageclasses"): StorageClass(),
    (_GROUP, "volumeattributesclasses"): VolumeAttributesClass(),
    (_GROUP, "csidrivers"): CSIDriver(),
    (_GROUP, "csinodes"): CSINode(),
    (_GROUP, "csistoragecapacities"): CSIStorageCapacity(),
    (_GROUP, "volumeattachments"): VolumeAttachment(),
}
