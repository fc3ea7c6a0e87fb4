"""Strategies of the storage.k8s.io group: StorageClasses, CSIDrivers, CSINodes, VolumeAttachments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from ostinato.api.selectors.labels import validate_label_selector
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import byte_length, is_dns1123_subdomain, is_qualified_name, name_is_dns_subdomain
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import (
    checked,
    listed,
    not_negative,
    not_negative_quantity,
    one_of,
    unchanged,
)

_GROUP = "storage.k8s.io"
_LONGEST_DRIVER: Final = 63
_LONGEST_NODE_ID: Final = 256
_MOST_PARAMETERS: Final = 512
_LARGEST_PARAMETERS: Final = 256 * 1024
_SHORTEST_TOKEN: Final = 600  # seconds
_LONGEST_TOKEN: Final = 1 << 32
_SHORTEST_UPDATE: Final = 10
_IN_SECRETS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def validate_driver_name(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [FieldError.required(path)]
    errors = [FieldError.too_long(path, _LONGEST_DRIVER)] if byte_length(name) > _LONGEST_DRIVER else []
    return errors + [FieldError.invalid(path, name, text) for text in is_dns1123_subdomain(name.lower())]


class StorageClass(Strategy):
    returns_deleted = True

    def default(self, obj: Json) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Json) -> list[FieldError]:
        provisioner, path = obj.get("provisioner", ""), Path("provisioner")
        errors = checked(is_qualified_name, provisioner.lower(), path) if provisioner else [FieldError.required(path)]
        errors += _parameters(obj)
        if obj.get("reclaimPolicy"):
            errors += one_of(obj["reclaimPolicy"], ["Delete", "Retain"], Path("reclaimPolicy"))
        modes = ["Immediate", "WaitForFirstConsumer"]
        errors += listed(obj.get("volumeBindingMode", ""), modes, Path("volumeBindingMode"))
        return errors + _topologies(obj.get("allowedTopologies") or ())

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + [
            error
            for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
            for error in unchanged(new.get(field), old.get(field), Path(field))
        ]


def _parameters(obj: Json) -> list[FieldError]:
    parameters, path = obj.get("parameters") or {}, Path("parameters")
    if len(parameters) > _MOST_PARAMETERS:
        return [FieldError.too_long(path, _MOST_PARAMETERS)]
    errors = [FieldError.invalid(path, "", "field can not be empty.")] if "" in parameters else []
    if sum(byte_length(key) + byte_length(value) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        errors.append(FieldError.too_long(path, _LARGEST_PARAMETERS))
    return errors


def _topologies(terms: Iterable[Json]) -> list[FieldError]:
    """Validate allowedTopologies: terms are not empty and unique."""
    errors: list[FieldError] = []
    seen: list[dict[str, set[str]]] = [{}]
    for i, term in enumerate(terms):
        path, expressions = Path("allowedTopologies").index(i).child("matchLabelExpressions"), {}
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values, at = expression.get("key", ""), expression.get("values") or (), path.index(j)
            if not values:
                errors.append(FieldError.required(at.child("values")))
            chosen: set[str] = set()
            for k, value in enumerate(values):
                if value in chosen:
                    errors.append(FieldError.duplicate(at.child("values").index(k), value))
                chosen.add(value)
            errors += checked(is_qualified_name, key, at.child("key"))
            if key in expressions:
                errors.append(FieldError.duplicate(at.child("key"), key))
            expressions[key] = chosen
        if expressions in seen:
            errors.append(FieldError.duplicate(path, ""))
        seen.append(expressions)
    return errors


class VolumeAttributesClass(Strategy):
    returns_deleted = True

    def validate(self, obj: Json) -> list[FieldError]:
        driver, path = obj.get("driverName", ""), Path("driverName")
        errors = checked(is_qualified_name, driver.lower(), path) if driver else [FieldError.required(path)]
        errors += _parameters(obj)
        if not obj.get("parameters"):
            errors.append(FieldError.required(Path("parameters"), "must contain at least one key/value pair"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        changed = [field for field in ("driverName", "parameters") if new.get(field) != old.get(field)]
        errors = [FieldError.forbidden(Path(field), f"updates to {field} are forbidden.") for field in changed]
        return errors + self.validate(new)


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
        obj["spec"].pop("preventPodSchedulingIfMissing", None)  # feature gate off

    def prepare_update(self, new: Json, old: Json) -> None:
        if "preventPodSchedulingIfMissing" not in old["spec"]:
            new["spec"].pop("preventPodSchedulingIfMissing", None)

    def validate(self, obj: Json) -> list[FieldError]:
        spec, path = obj["spec"], Path("spec")
        policies = ["File", "None", "ReadWriteOnceWithFSType"]
        errors = listed(spec["fsGroupPolicy"], policies, path.child("fsGroupPolicy"))
        errors += _token_requests(spec.get("tokenRequests") or (), path.child("tokenRequests"))
        for mode in spec["volumeLifecycleModes"]:
            errors += listed(mode, ["Persistent", "Ephemeral"], path.child("volumeLifecycleModes"))
        period, at = spec.get("nodeAllocatableUpdatePeriodSeconds"), path.child("nodeAllocatableUpdatePeriodSeconds")
        if period is not None and period < _SHORTEST_UPDATE:
            errors.append(
                FieldError.invalid(at, period, f"must be greater than or equal to {_SHORTEST_UPDATE} seconds")
            )
        secret = spec.get("serviceAccountTokenInSecrets")
        if secret is not None and not spec.get("tokenRequests"):
            detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            errors.append(FieldError.invalid(path.child("serviceAccountTokenInSecrets"), secret, detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        path, errors = Path("spec"), self.validate(new)
        for field, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
            errors += unchanged(new["spec"].get(field), old["spec"].get(field), path.child(shown))
        return errors

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        spec, before = new["spec"], old["spec"] if old else {}
        tokens = spec.get("tokenRequests")
        if tokens and tokens != before.get("tokenRequests") and "serviceAccountTokenInSecrets" not in spec:
            return [_IN_SECRETS]
        return []


def _token_requests(requests: Iterable[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    audiences: set[str] = set()
    for i, request in enumerate(requests):
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in audiences:
            errors.append(FieldError.duplicate(path.index(i).child("audience"), audience))
            continue
        audiences.add(audience)
        at = path.index(i).child("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            errors.append(FieldError.invalid(at, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > _LONGEST_TOKEN:
            errors.append(FieldError.invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


class CSINode(Strategy):
    returns_deleted = True
    allow_unconditional_update = False

    def validate(self, obj: Json) -> list[FieldError]:
        path, seen, errors = Path("spec", "drivers"), set[str](), []
        for i, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
            errors += _driver(driver, path.index(i), seen)
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = self.validate(new)
        after, before = (
            {
                driver["name"]: {k: v for k, v in driver.items() if k != "allocatable"}
                for driver in (obj.get("spec") or {}).get("drivers") or ()
            }
            for obj in (new, old)
        )
        for name in before:
            driver = after.get(name, before[name])
            errors += unchanged(driver, before[name], Path("spec", "drivers"), "storage.v1.CSINodeDriver")
        return errors


def _driver(driver: Json, path: Path, seen: set[str]) -> list[FieldError]:
    name, node = driver.get("name", ""), driver.get("nodeID", "")
    errors = validate_driver_name(name, path.child("name"))
    if not node:
        errors.append(FieldError.required(path.child("nodeID")))
    if byte_length(node) > _LONGEST_NODE_ID:
        errors.append(FieldError.invalid(path.child("nodeID"), node, f"must be {_LONGEST_NODE_ID} characters or less"))
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None:
        errors += not_negative(count, path.child("allocatable", "count"))
    if name in seen:
        errors.append(FieldError.duplicate(path.child("name"), name))
    seen.add(name)
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        if not key:
            errors.append(FieldError.required(path))
        if key in keys:
            errors.append(FieldError.duplicate(path, key))
        keys.add(key)
        errors += checked(is_qualified_name, key, path)
    return errors


class CSIStorageCapacity(Strategy):
    allow_unconditional_update = False

    def validate(self, obj: Json) -> list[FieldError]:
        errors = validate_label_selector(obj.get("nodeTopology") or {}, Path("nodeTopology"))
        errors += checked(name_is_dns_subdomain, obj.get("storageClassName", ""), Path("storageClassName"))
        if obj.get("capacity") is not None:
            errors += not_negative_quantity(obj["capacity"], Path("capacity"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        where = Path("nodeTopology")
        errors = self.validate(new)
        errors += unchanged(new.get("nodeTopology"), old.get("nodeTopology"), where, "meta.v1.LabelSelector")
        path = Path("storageClassName")
        return errors + unchanged(new.get("storageClassName", ""), old.get("storageClassName", ""), path)


class VolumeAttachment(Strategy):
    returns_deleted = True
    allow_unconditional_update = False
    empty_status: ClassVar[Json] = {"attached": False}
    status_keeps_metadata = True

    def validate(self, obj: Json) -> list[FieldError]:
        spec, path = obj.get("spec") or {}, Path("spec")
        errors = validate_driver_name(spec.get("attacher", ""), path.child("attacher"))
        source, at = spec.get("source") or {}, path.child("source")
        volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        if volume is None and inline is None:
            errors.append(FieldError.required(at, detail))
        elif volume is not None and inline is not None:
            errors.append(FieldError.forbidden(at, detail))
        elif volume == "":
            detail = "must specify non empty persistentVolumeName"
            errors.append(FieldError.required(at.child("persistentVolumeName"), detail))
        errors += checked(name_is_dns_subdomain, spec.get("nodeName", ""), path.child("nodeName"))
        if volume is not None:
            errors += checked(name_is_dns_subdomain, volume, at.child("persistentVolumeName"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + unchanged(
            new.get("spec"), old.get("spec"), Path("spec"), "storage.v1.VolumeAttachmentSpec"
        )


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "storageclasses"): StorageClass(),
    (_GROUP, "volumeattributesclasses"): VolumeAttributesClass(),
    (_GROUP, "csidrivers"): CSIDriver(),
    (_GROUP, "csinodes"): CSINode(),
    (_GROUP, "csistoragecapacities"): CSIStorageCapacity(),
    (_GROUP, "volumeattachments"): VolumeAttachment(),
}
