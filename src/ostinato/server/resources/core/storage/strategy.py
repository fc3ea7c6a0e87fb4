"""Strategies of PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING, Any

from ostinato.api.quantity import Quantity
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.defaults import default_claim_spec, default_volume_source, round_up
from ostinato.server.resources.core.pods.spec.scheduling import validate_node_selector
from ostinato.server.resources.core.pods.spec.volumes import validate_host_path, validate_nfs
from ostinato.server.resources.core.pods.spec.warnings import claim_warnings, term_warnings, volume_warnings
from ostinato.server.resources.core.storage.claims import (
    validate_access_modes,
    validate_claim_spec,
    validate_volume_mode,
)
from ostinato.server.resources.core.storage.sources import ERROR_PATHS, OF_VOLUMES, SECOND_SOURCE_PATHS, validate_portal
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import (
    checked,
    difference,
    not_negative_quantity,
    positive_quantity,
    unchanged,
)
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.schema.decoding.embedded_structs import VOLUME_FIELDS

if TYPE_CHECKING:
    from ostinato.world import Clock, World

_SPEC = Path("spec")
_POLICIES = ("Delete", "Recycle", "Retain")
_ATTRIBUTES = "volumeAttributesClassName"
_RESIZING = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_CLAIM = "core.v1.PersistentVolumeClaimSpec"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTED = frozenset(
    {
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    }
)


class PersistentVolume(Strategy):
    returns_deleted = True

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def for_server(self, world: World) -> Strategy:
        return PersistentVolume(world.clock)

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        if "capacity" in spec:
            round_up(spec["capacity"])
        default_volume_source(spec)
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Json) -> None:
        since = obj["metadata"]["creationTimestamp"]
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        status, before = new.setdefault("status", {}), old.get("status", {})
        current, since = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if current is None and since is not None:
                status["lastPhaseTransitionTime"] = since
        elif current in (None, since):
            assert self._clock is not None
            status["lastPhaseTransitionTime"] = self._clock.now().isoformat(timespec="seconds")[:19] + "Z"

    def validate(self, obj: Json) -> list[FieldError]:
        return _validate_volume(obj) + _validate_mount_options(obj)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        errors = self.validate(new) + _validate_volume(new)  # reported twice, as in kube-apiserver
        source, previous = _source(spec), _source(before)
        if "controllerExpandSecretRef" not in previous.get("csi", {}) and "csi" in source and "csi" in previous:
            csi = {key: value for key, value in source["csi"].items() if key != "controllerExpandSecretRef"}
            source = {**source, "csi": csi}
        if source != previous:
            changes = difference(_source_shown(previous), _source_shown(source))
            detail = f"spec.persistentvolumesource is immutable after creation\n{changes}"
            errors.append(FieldError.forbidden(_SPEC.child("persistentvolumesource"), detail))
        errors += unchanged(spec.get("volumeMode"), before.get("volumeMode"), Path("volumeMode"))
        if "nodeAffinity" in before:
            errors += _validate_affinity(spec.get("nodeAffinity"), before["nodeAffinity"])
        if "volumeAttributesClassName" in before and "volumeAttributesClassName" not in spec:
            where = _SPEC.child("volumeAttributesClassName")
            errors.append(FieldError.forbidden(where, "update from non-nil value to nil is forbidden"))
        return errors

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return _volume_warnings(new)


_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_OLD_ANNOTATIONS = {
    _CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    _MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}


def _validate_affinity(new: Json | None, old: Json) -> list[FieldError]:
    """Validate that the node affinity is immutable, except for renaming deprecated labels."""
    if new == old or (new is not None and _renamed(new) == _renamed(old)):
        return []
    detail = "field is immutable, except for updating from beta label to GA"
    return [FieldError.invalid(Path("nodeAffinity"), as_internal("core.v1.VolumeNodeAffinity", new), detail)]


def _renamed(affinity: Json) -> Any:
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or []
    return [
        [{**each, "key": _GA_LABELS.get(each.get("key", ""), each.get("key", ""))} for each in term.get(field, ())]
        for term in terms
        for field in ("matchExpressions", "matchFields")
    ]


def _volume_warnings(volume: Json) -> list[str]:
    spec = volume["spec"]
    annotations = volume["metadata"].get("annotations", {})
    path = Path("metadata", "annotations")
    found = [f"{path.key(key)}: {text}" for key, text in _OLD_ANNOTATIONS.items() if key in annotations]
    if spec["persistentVolumeReclaimPolicy"] == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        where = _SPEC.child("persistentVolumeReclaimPolicy")
        found.append(f"{where}: The Recycle reclaim policy is deprecated. {advice}")
    required = spec.get("nodeAffinity", {}).get("required", {})
    where = _SPEC.child("nodeAffinity", "required", "nodeSelectorTerms")
    for i, term in enumerate(required.get("nodeSelectorTerms") or ()):
        found += term_warnings(term, where.index(i))
    return found + volume_warnings(spec, _SPEC)


def _source(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in VOLUME_FIELDS}


def _source_shown(source: Json) -> Json:
    """A volume source as messages show it: all sources, with the one that is set."""
    others = {f"{name[0].upper()}{name[1:]}" for name in VOLUME_FIELDS}
    fields = as_internal("core.v1.PersistentVolumeSpec", source)
    return {name: value for name, value in fields.items() if name not in others}


def _validate_volume(volume: Json) -> list[FieldError]:
    spec = volume["spec"]
    modes, capacity = spec.get("accessModes", []), spec.get("capacity", {})
    errors = [] if modes else [FieldError.required(_SPEC.child("accessModes"))]
    errors += validate_access_modes(modes, _SPEC.child("accessModes"))
    path = _SPEC.child("capacity")
    if not capacity:
        errors.append(FieldError.required(path))
    if set(capacity) != {"storage"}:
        errors.append(FieldError.not_supported(path, spec.get("capacity"), ("storage",)))
    for name, amount in capacity.items():
        if Quantity.parse(amount).value() < 0:
            value = Quantity.parse(amount).value()
            errors.append(FieldError.invalid(path.key(name), value, "must be a valid resource quantity"))
        errors += positive_quantity(amount, path.key(name))
    policy = spec["persistentVolumeReclaimPolicy"]
    if policy not in _POLICIES:
        errors.append(FieldError.not_supported(_SPEC.child("persistentVolumeReclaimPolicy"), policy, _POLICIES))
    required = spec.get("nodeAffinity", {}).get("required")
    if "nodeAffinity" in spec:
        where = _SPEC.child("nodeAffinity").child("required")
        errors += [FieldError.required(where, "must specify required node constraints")] if required is None else []
        errors += [] if required is None else validate_node_selector(required, where)
    errors += _validate_sources(spec, volume["metadata"].get("name", ""))
    if normpath(spec.get("hostPath", {}).get("path") or ".") in ("/", "//") and policy == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(FieldError.forbidden(_SPEC.child("persistentVolumeReclaimPolicy"), detail))
    if spec.get("storageClassName"):
        errors += checked(names.name_is_dns_subdomain, spec["storageClassName"], _SPEC.child("storageClassName"))
    errors += validate_volume_mode(spec, _SPEC)
    name = spec.get("volumeAttributesClassName")
    if name is not None:
        where = _SPEC.child("volumeAttributesClassName")
        errors += checked(names.name_is_dns_subdomain, name, where) if name else _empty(where)
        if "csi" not in spec:
            detail = "has to be specified when using volumeAttributesClassName"
            errors.append(FieldError.required(_SPEC.child("csi"), detail))
    return errors


def _empty(path: Path) -> list[FieldError]:
    return [FieldError.required(path, "an empty string is disallowed")]


def _validate_mount_options(volume: Json) -> list[FieldError]:
    """Validate the mount options annotation, which some volume types do not support."""
    if _MOUNT_OPTIONS not in volume["metadata"].get("annotations", {}) or _MOUNTED & set(volume["spec"]):
        return []
    path = Path("metadata", "annotations", _MOUNT_OPTIONS)
    return [FieldError.forbidden(path, "may not specify mount options for this volume type")]


def _validate_sources(spec: Json, name: str) -> list[FieldError]:
    given = [kind for kind in _SOURCES if kind in spec]
    if not given:
        return [FieldError.required(_SPEC, "must specify a volume type")]
    errors: list[FieldError] = []
    for kind in given:
        if kind != given[0] and kind != "flexVolume":  # flexVolume may be set beside another source
            detail = "may not specify more than 1 volume type"
            errors.append(FieldError.forbidden(_SPEC.child(SECOND_SOURCE_PATHS.get(kind, kind)), detail))
            continue
        errors += _RULES[kind](spec[kind], _SPEC.child(ERROR_PATHS.get(kind, kind)))
        if kind == "iscsi":
            errors += validate_portal(spec[kind], name, _SPEC.child("iscsi", "targetportal"))
        if kind == "local" and "nodeAffinity" not in spec:
            errors.append(FieldError.required(_SPEC.child("nodeAffinity"), "Local volume requires node affinity"))
    return errors


# In the order of the errors.
_RULES = {"hostPath": validate_host_path, "nfs": validate_nfs, **OF_VOLUMES}
_SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)


class PersistentVolumeClaim(Strategy):
    returns_deleted = True

    def default(self, obj: Json) -> None:
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        status.setdefault("phase", "Pending")
        for field in ("capacity", "allocatedResources"):
            if field in status:
                round_up(status[field])

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}
        _link_sources(obj["spec"])

    def prepare_update(self, new: Json, old: Json) -> None:
        _link_sources(new["spec"], old["spec"])

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], _SPEC)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        errors = validate_claim_spec(spec, _SPEC, any_group="dataSource" in before or "dataSourceRef" in before)
        classes = [obj["metadata"].get("annotations", {}).get(_CLASS) for obj in (new, old)]
        masked = dict(spec)
        if _upgrades_class(classes, spec, before):
            masked.pop("storageClassName", None)
        else:
            errors += _validate_class(classes)
            if "storageClassName" not in before and spec.get("storageClassName") in {
                classes[1],
                *_assignable_classes(classes[1], spec),
            }:
                masked.pop("storageClassName", None)
        if not before.get("volumeName") and spec.get("volumeName"):
            del masked["volumeName"]
        bound = new.get("status", {}).get("phase") == "Bound"
        if bound:
            _mask_bound(masked, before)
        if masked != before:
            changes = difference(as_internal(_CLAIM, before), as_internal(_CLAIM, masked))
            detail = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                f"claims\n{changes}"
            )
            errors.append(FieldError.forbidden(_SPEC, detail))
        errors += _validate_size(spec, before, old.get("status", {}))
        errors += unchanged(spec.get("volumeMode"), before.get("volumeMode"), Path("volumeMode"))
        return errors + _validate_attributes_class(spec, before, new.get("status", {}))

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        found = []
        if _CLASS in new["metadata"].get("annotations", {}):
            found.append(f"{Path('metadata', 'annotations').key(_CLASS)}: {_OLD_ANNOTATIONS[_CLASS]}")
        return found + claim_warnings(new["spec"], _SPEC)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        status = new.get("status", {})
        errors = _validate_sizes(status.get("capacity", {}), Path("status", "capacity"))
        path = Path("status", "allocatedResourceStatuses")
        for name, resizing in status.get("allocatedResourceStatuses", {}).items():
            errors += _validate_resource_key(name, path)
            if resizing not in _RESIZING:
                errors.append(FieldError.not_supported(path, name, _RESIZING))
        path = Path("status", "allocatedResources")
        for name, amount in status.get("allocatedResources", {}).items():
            errors += _validate_resource_key(name, path) or _validate_sizes({name: amount}, path)
        return errors


def _validate_sizes(amounts: dict[str, str], path: Path) -> list[FieldError]:
    return [
        FieldError.invalid(path.key(name), Quantity.parse(amount).value(), "must be a valid resource quantity")
        for name, amount in amounts.items()
        if not_negative_quantity(amount, path)
    ]


def _validate_resource_key(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a resource in a claim: storage, or an extended resource."""
    errors = [FieldError.invalid(path, name, text) for text in names.is_qualified_name(name)]
    if errors:
        return errors
    own = "/" not in name or name.split("/", maxsplit=1)[0].endswith("kubernetes.io")
    return [FieldError.not_supported(path, name, ["storage"])] if own and name != "storage" else []


def _validate_attributes_class(spec: Json, old: Json, status: Json) -> list[FieldError]:
    """Validate a change of volumeAttributesClassName: it can be removed only while no class is in use."""
    name, before, path = (*(s.get(_ATTRIBUTES) for s in (spec, old)), _SPEC.child(_ATTRIBUTES))
    if name == before or name or "currentVolumeAttributesClassName" not in status:
        return []
    what = "nil" if name is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [FieldError.forbidden(path, detail)]


def _link_sources(spec: Json, old: Json | None = None) -> None:
    """Link dataSource and dataSourceRef. The former supports claims and snapshots only."""
    if spec.get("dataSourceRef", {}).get("namespace") and "dataSourceRef" not in (old or {}):
        del spec["dataSourceRef"]  # feature gate off
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    in_use = old is not None and ("dataSource" in old or "dataSourceRef" in old)
    if source is not None and reference is None and not in_use and _kind(source) not in _FILLED_FROM:
        del spec["dataSource"]
    elif source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


_FILLED_FROM = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


def _kind(source: Json) -> tuple[str, str]:
    return source.get("apiGroup") or "", source.get("kind", "")


def _upgrades_class(classes: list[str | None], spec: Json, old: Json) -> bool:
    """Whether the storage class annotation is replaced by the field."""
    new, before = classes
    return (
        before is not None
        and "storageClassName" not in old
        and spec.get("storageClassName") == before
        and new in (None, before)
    )


def _assignable_classes(before: str | None, spec: Json) -> set[str]:
    """The classes that a claim without a class may get: any, unless an annotation names one."""
    return {spec["storageClassName"]} if before is None and "storageClassName" in spec else set()


def _validate_class(classes: list[str | None]) -> list[FieldError]:
    if classes[0] == classes[1]:
        return []
    path = Path("metadata", "annotations", _CLASS)
    return [FieldError.invalid(path, classes[0] or "", "field is immutable")]


def _mask_bound(masked: Json, old: Json) -> None:
    resources = dict(masked.get("resources", {}))
    if "requests" in resources:
        requests = dict(resources["requests"])
        requests.pop("storage", None)
        if "storage" in old.get("resources", {}).get("requests", {}):
            requests["storage"] = old["resources"]["requests"]["storage"]
        resources["requests"] = requests
        masked["resources"] = resources
    masked.pop("volumeAttributesClassName", None)
    if "volumeAttributesClassName" in old:
        masked["volumeAttributesClassName"] = old["volumeAttributesClassName"]


def _validate_size(spec: Json, old: Json, status: Json) -> list[FieldError]:
    sizes = [Quantity.parse(s.get("resources", {}).get("requests", {}).get("storage", "0")) for s in (spec, old)]
    if sizes[0] >= sizes[1]:
        return []
    if sizes[0] > Quantity.parse(status.get("capacity", {}).get("storage", "0")):
        return []
    path = _SPEC.child("resources", "requests", "storage")
    return [FieldError.forbidden(path, "field can not be less than status.capacity")]
