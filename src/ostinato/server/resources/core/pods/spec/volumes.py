"""Validation of the volumes of a Pod spec, and of how its containers use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ostinato.api.quantity import Quantity
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.environment import (
    ENV_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from ostinato.server.resources.core.storage.claims import validate_claim_template
from ostinato.server.resources.core.storage.sources import ERROR_PATHS, OF_PODS, SECOND_SOURCE_PATHS
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import (
    checked,
    descending_path,
    file_mode,
    file_path,
    listed,
    no_backsteps,
    one_of,
)

_ONE_TYPE = "may not specify more than 1 volume type"
_VOLUME_FIELDS = (*ENV_FIELDS[:3], "metadata.annotations", "metadata.labels")
_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
# Volume sources in the order of the errors.
_SOURCES = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)


def validate_volumes(volumes: list[Json], pod: str | None, path: Path) -> tuple[dict[str, Json], list[FieldError]]:
    """Validate volumes; return the valid ones by name, and the errors. `pod` is the name of the Pod, None in a
    template.
    """
    made = {f"{pod}-{volume.get('name', '')}" for volume in volumes if "ephemeral" in volume} if pod else set()
    good: dict[str, Json] = {}
    errors: list[FieldError] = []
    for i, volume in enumerate(volumes):
        at = path.index(i)
        name = volume.get("name", "")
        wrong = _validate_source(volume, pod, at)
        wrong += checked(names.is_dns1123_label, name, at.child("name")) if name else _required(at.child("name"))
        if name in good:
            wrong.append(FieldError.duplicate(at.child("name"), name))
        if not wrong:
            good[name] = volume
        errors += wrong
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(FieldError.invalid(at.child("persistentVolumeClaim").child("claimName"), claim, detail))
    return good, errors


def _required(path: Path) -> list[FieldError]:
    return [FieldError.required(path)]


def _validate_source(volume: Json, pod: str | None, path: Path) -> list[FieldError]:
    given = [kind for kind in _SOURCES if kind in volume]
    if not given:
        return [FieldError.required(path, "must specify a volume type")]
    kind = given[0]
    rule = _RULES.get(kind)
    errors = rule(volume[kind], path.child(ERROR_PATHS.get(kind, kind))) if rule is not None else []
    if kind == "iscsi":
        errors += _validate_initiator(volume, path)
    if kind == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        errors += [
            FieldError.invalid(path.child("name"), volume["name"], f"PVC name {quote(claim)}: {text}")
            for text in names.name_is_dns_subdomain(claim)
        ]
    if kind == "image" and pod is not None and not volume[kind].get("reference"):
        errors = [*_required(path.child(kind).child("reference")), *errors]
    return errors + [
        FieldError.forbidden(path.child(SECOND_SOURCE_PATHS.get(other, other)), _ONE_TYPE) for other in given[1:]
    ]


def _validate_initiator(volume: Json, path: Path) -> list[FieldError]:
    """Validate the length of the generated initiator name: the volume name and the portal."""
    name, source = volume.get("name", ""), volume["iscsi"]
    if source.get("initiatorName") is None or names.byte_length(f"{name}:{source.get('targetPortal', '')}") <= 64:
        return []
    what = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
    detail = f"{what} if iscsi.initiatorName is specified."
    return [FieldError.invalid(path.child("name"), name, detail)]


def _validate_empty_dir(source: Json, path: Path) -> list[FieldError]:
    if Quantity.parse(source.get("sizeLimit", "0")).sign >= 0:
        return []
    return [FieldError.forbidden(path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity")]


def validate_host_path(source: Json, path: Path) -> list[FieldError]:
    where = source.get("path", "")
    if not where:
        return _required(path.child("path"))
    errors = no_backsteps(where, path.child("path"))
    if source.get("type", "") not in _HOST_PATHS:
        errors.append(FieldError.not_supported(path.child("type"), source["type"], _HOST_PATHS))
    return errors


def _validate_secret(source: Json, path: Path) -> list[FieldError]:
    errors = [] if source.get("secretName") else _required(path.child("secretName"))
    return errors + file_mode(source, "defaultMode", path) + _validate_items(source, path)


def _validate_config_map(source: Json, path: Path) -> list[FieldError]:
    errors = [] if source.get("name") else _required(path.child("name"))
    return errors + file_mode(source, "defaultMode", path) + _validate_items(source, path)


def _validate_items(source: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, item in enumerate(source.get("items", ())):
        at = path.child("items").index(i)
        errors += [] if item.get("key") else _required(at.child("key"))
        errors += [] if item.get("path") else _required(at.child("path"))
        errors += file_path(item.get("path", ""), at.child("path")) + file_mode(item, "mode", at)
    return errors


def validate_nfs(source: Json, path: Path) -> list[FieldError]:
    errors = [error for field in ("server", "path") if not source.get(field) for error in _required(path.child(field))]
    if not source.get("path", "").startswith("/"):
        errors.append(FieldError.invalid(path.child("path"), source.get("path", ""), "must be an absolute path"))
    return errors


def _validate_claim(source: Json, path: Path) -> list[FieldError]:
    return [] if source.get("claimName") else _required(path.child("claimName"))


def _validate_downward(source: Json, path: Path) -> list[FieldError]:
    errors = file_mode(source, "defaultMode", path)
    for item in source.get("items", ()):
        errors += _validate_downward_file(item, path)
    return errors


def _validate_downward_file(item: Json, path: Path) -> list[FieldError]:
    errors = [] if item.get("path") else _required(path.child("path"))
    errors += file_path(item.get("path", ""), path.child("path"))
    if "fieldRef" in item:
        errors += validate_field_reference(item["fieldRef"], _VOLUME_FIELDS, path.child("fieldRef"))
        if "resourceFieldRef" in item:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(FieldError.invalid(path, "resource", detail))
    elif "resourceFieldRef" in item:
        where = path.child("resourceFieldRef")
        errors += validate_resource_reference(item["resourceFieldRef"], where, volume=True)
    else:
        errors.append(FieldError.required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + file_mode(item, "mode", path)


def _validate_projected(source: Json, path: Path) -> list[FieldError]:
    errors = file_mode(source, "defaultMode", path)
    seen: set[str] = set()
    for i, projection in enumerate(source.get("sources") or ()):
        at = path.child("sources").index(i)
        for kind in ("secret", "configMap"):
            if kind in projection:
                errors += [] if projection[kind].get("name") else _required(at.child(kind).child("name"))
                errors += _validate_items(projection[kind], at.child(kind))
                paths = [item.get("path", "") for item in projection[kind].get("items", ())]
                errors += _repeated(paths, seen, path, projection[kind].get("name", ""))
        if "downwardAPI" in projection:
            items = projection["downwardAPI"].get("items", ())
            for item in items:
                errors += _validate_downward_file(item, at.child("downwardAPI"))
                errors += _repeated([item.get("path", "")], seen, path, item.get("path", ""))
        if "serviceAccountToken" in projection:
            token = projection["serviceAccountToken"]
            errors += _validate_token(token, at.child("serviceAccountToken"), path)
        if len(projection) > 1:
            errors.append(FieldError.forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _repeated(paths: list[str], seen: set[str], path: Path, shown: str) -> list[FieldError]:
    errors = []
    for where in paths:
        if where and where in seen:
            errors.append(FieldError.invalid(path, shown, "conflicting duplicate paths"))
        seen.add(where)
    return errors


def _validate_token(token: Json, path: Path, volume: Path) -> list[FieldError]:
    seconds, where = token.get("expirationSeconds", 3600), path.child("expirationSeconds")
    errors = []
    if seconds < 600:
        errors.append(FieldError.invalid(where, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 1 << 32:
        errors.append(FieldError.invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    if not token.get("path"):
        return errors + _required(volume.child("path"))
    return errors + file_path(token["path"], volume.child("path"))


def _validate_ephemeral(source: Json, path: Path) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    where = path.child("volumeClaimTemplate")
    return _required(where) if template is None else validate_claim_template(template, where)


def _validate_image(source: Json, path: Path) -> list[FieldError]:
    return one_of(source.get("pullPolicy", ""), ("Always", "IfNotPresent", "Never"), path.child("pullPolicy"))


_RULES: dict[str, Callable[[Json, Path], list[FieldError]]] = {
    **OF_PODS,
    "emptyDir": _validate_empty_dir,
    "hostPath": validate_host_path,
    "secret": _validate_secret,
    "nfs": validate_nfs,
    "persistentVolumeClaim": _validate_claim,
    "downwardAPI": _validate_downward,
    "configMap": _validate_config_map,
    "projected": _validate_projected,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}


def validate_mounts(container: Json, volumes: Mapping[str, Json], path: Path) -> list[FieldError]:
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices", ())}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, mount in enumerate(container.get("volumeMounts", ())):
        at = path.index(i)
        name, where = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors += _required(at.child("name"))
        if name not in volumes:
            errors.append(FieldError.not_found(at.child("name"), name))
        if not where:
            errors += _required(at.child("mountPath"))
        if where in seen:
            errors.append(FieldError.invalid(at.child("mountPath"), where, "must be unique"))
        seen.add(where)
        if name in devices:
            errors.append(FieldError.invalid(at.child("name"), name, "must not already exist in volumeDevices"))
        if where in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(FieldError.invalid(at.child("mountPath"), where, detail))
        errors += _validate_sub_paths(mount, at, path)
        errors += _validate_propagation(mount, container, path)
    return errors


def _validate_sub_paths(mount: Json, at: Path, path: Path) -> list[FieldError]:
    errors = descending_path(mount["subPath"], path.child("subPath")) if mount.get("subPath") else []
    expression = mount.get("subPathExpr")
    if expression:
        if mount.get("subPath"):
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(FieldError.invalid(at.child("subPathExpr"), expression, detail))
        errors += descending_path(expression, path.child("subPathExpr"))
    return errors


def _validate_propagation(mount: Json, container: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    propagation, where = mount.get("mountPropagation"), path.child("mountPropagation")
    if propagation is not None:
        errors += listed(propagation, ("Bidirectional", "HostToContainer", "None"), where)
        if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(FieldError.forbidden(where, detail))
    recursive, where = mount.get("recursiveReadOnly"), path.child("recursiveReadOnly")
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.append(FieldError.forbidden(where, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.append(FieldError.forbidden(where, detail))
    elif recursive not in (None, "Disabled"):
        errors.append(FieldError.not_supported(where, recursive, ("Disabled", "Enabled", "IfPossible")))
    return errors


def validate_devices(container: Json, volumes: Mapping[str, Json], path: Path) -> list[FieldError]:
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts", ())}
    errors: list[FieldError] = []
    names_seen: set[str] = set()
    paths_seen: set[str] = set()
    for i, device in enumerate(container.get("volumeDevices", ())):
        at = path.index(i)
        name, where = device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        problems = (
            (not name, FieldError.required(at.child("name"))),
            (name in names_seen, FieldError.invalid(at.child("name"), name, "must be unique")),
            (
                volume is not None and not ("persistentVolumeClaim" in volume or "ephemeral" in volume),
                FieldError.invalid(
                    at.child("name"),
                    name,
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                ),
            ),
            (volume is None, FieldError.not_found(at.child("name"), name)),
            (not where, FieldError.required(at.child("devicePath"))),
            (where in paths_seen, FieldError.invalid(at.child("devicePath"), where, "must be unique")),
            (
                ".." in where.split("/"),
                FieldError.invalid(at.child("devicePath"), where, "can not contain backsteps ('..')"),
            ),
            (
                name in mounts,
                FieldError.invalid(at.child("name"), name, "must not already exist in volumeMounts"),
            ),
            (
                where in mounts.values(),
                FieldError.invalid(at.child("devicePath"), where, "must not already exist as a path in volumeMounts"),
            ),
        )
        errors += [error for wrong, error in problems if wrong]
        if name:
            names_seen.add(name)
        paths_seen.add(where)
    return errors
