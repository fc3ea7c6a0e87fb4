"""Validation of volume sources that Pods and PersistentVolumes share.

Most sources have required fields only; others have a rule of their own. Sources of PersistentVolumes refer to Secrets
with a namespace, those of Pods without.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.storage.strategy import validate_driver_name
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, descending_path, listed, no_backsteps

Rule = Callable[[Json, Path], list[FieldError]]

_UNIT: Final = "must be between 0 and 255, inclusive"
_NAMES: Final = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\t\n\f\r ]+)\Z"),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}
_REGISTRY: Final = "must be a host:port pair or multiple pairs separated by commas"
_LONGEST_TENANT: Final = 64
_LONGEST_PORTAL: Final = 64
_DISK_KINDS: Final = ["Dedicated", "Managed", "Shared"]
_CACHING: Final = ["None", "ReadOnly", "ReadWrite"]
_MANAGED: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def required_fields(*fields: str) -> Rule:
    """A rule: these fields are required."""

    def rule(source: Json, path: Path) -> list[FieldError]:
        return [FieldError.required(path.child(field)) for field in fields if not source.get(field)]

    return rule


def git_repository(source: Json, path: Path) -> list[FieldError]:
    errors = required_fields("repository")(source, path)
    return errors + descending_path(source.get("directory", ""), path.child("directory"))


def disk(field: str) -> Rule:
    """A rule: the name of a disk, and an optional partition."""

    def rule(source: Json, path: Path) -> list[FieldError]:
        errors, partition = required_fields(field)(source, path), source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.append(
                FieldError.invalid(path.child("partition"), partition, "must be between 1 and 255, inclusive")
            )
        return errors

    return rule


def _secret(source: Json, path: Path, *fields: str) -> list[FieldError]:
    secret = source.get("secretRef")
    return [] if secret is None else required_fields(*fields)(secret, path.child("secretRef"))


def with_secret(rule: Rule, *fields: str) -> Rule:
    return lambda source, path: rule(source, path) + _secret(source, path, *fields)


def iscsi(source: Json, path: Path) -> list[FieldError]:
    return _iscsi(source, path, " starting with iqn, eui, or naa")


def iscsi_volume(source: Json, path: Path) -> list[FieldError]:
    return _iscsi(source, path, "") + _secret(source, path, "name")


def _iscsi(source: Json, path: Path, known: str) -> list[FieldError]:
    errors = required_fields("targetPortal", "iqn")(source, path)
    if source.get("iqn"):
        errors += _iscsi_name(source["iqn"], path.child("iqn"), known)
    unit = source.get("lun", 0)
    if not 0 <= unit <= 255:
        errors.append(FieldError.invalid(path.child("lun"), unit, _UNIT))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(FieldError.required(path.child("secretRef")))
    if source.get("initiatorName") is not None:
        errors += _iscsi_name(source["initiatorName"], path.child("initiatorname"), known)
    return errors


def _iscsi_name(name: str, path: Path, known: str) -> list[FieldError]:
    pattern = _NAMES.get(name[:3])
    if pattern is None:
        return [FieldError.invalid(path, name, f"must be valid format{known}")]
    return [] if pattern.search(name) else [FieldError.invalid(path, name, "must be valid format")]


def validate_portal(source: Json, volume: str, path: Path) -> list[FieldError]:
    """Validate the length of the generated initiator name: the volume name and the portal."""
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is None or names.byte_length(f"{volume}:{portal}") <= _LONGEST_PORTAL:
        return []
    what = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
    return [FieldError.invalid(path, portal, f"{what} if iscsi.initiatorName is specified.")]


def fibre_channel(source: Json, path: Path) -> list[FieldError]:
    targets, errors, at = source.get("targetWWNs"), [], path.child("targetWWNs")
    if not targets and not source.get("wwids"):
        errors.append(FieldError.required(at, "must specify either targetWWNs or wwids, but not both"))
    if targets and source.get("wwids"):
        errors.append(FieldError.invalid(at, targets, "targetWWNs and wwids can not be specified simultaneously"))
    unit = source.get("lun")
    if targets and unit is None:
        errors.append(FieldError.required(path.child("lun"), "lun is required if targetWWNs is specified"))
    elif targets and unit is not None and not 0 <= unit <= 255:
        errors.append(FieldError.invalid(path.child("lun"), unit, _UNIT))
    return errors


def gluster_volume(source: Json, path: Path) -> list[FieldError]:
    errors, namespace = required_fields("endpoints", "path")(source, path), source.get("endpointsNamespace")
    at = path.child("endpointsNamespace")
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(FieldError.invalid(at, namespace, detail))
    elif namespace is not None:
        errors += checked(names.name_is_dns_label, namespace, at)
    return errors


def flocker(source: Json, path: Path) -> list[FieldError]:
    name, uid, errors = source.get("datasetName", ""), source.get("datasetUUID", ""), []
    if not name and not uid:
        errors.append(FieldError.required(path, "one of datasetName and datasetUUID is required"))
    if name and uid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(FieldError.invalid(path, "resource", detail))
    if "/" in name:
        errors.append(FieldError.invalid(path.child("datasetName"), name, "must not contain '/'"))
    return errors


def quobyte(source: Json, path: Path) -> list[FieldError]:
    registry, errors = source.get("registry", ""), []
    if not registry:
        errors.append(FieldError.required(path.child("registry"), _REGISTRY))
    elif names.byte_length(source.get("tenant", "")) > _LONGEST_TENANT:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(FieldError.required(path.child("tenant"), detail))
    else:
        wrong = [pair for pair in registry.split(",") if not _is_host_and_port(pair)]
        errors += [FieldError.invalid(path.child("registry"), registry, _REGISTRY) for _ in wrong]
    return errors + required_fields("volume")(source, path)


def _is_host_and_port(text: str) -> bool:
    if text.startswith("["):
        host, closed, port = text.rpartition("]:")
        return bool(closed) and "[" not in host[1:] and ":" not in port and "]" not in host
    return text.count(":") == 1 and "[" not in text and "]" not in text


def flex_volume(source: Json, path: Path) -> list[FieldError]:
    errors = required_fields("driver")(source, path)
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(FieldError.invalid(path.child("options").key(key), key, detail))
    return errors


def azure_file_volume(source: Json, path: Path) -> list[FieldError]:
    errors = required_fields("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        errors.append(FieldError.required(path.child("secretNamespace")))
    return errors


def azure_disk(source: Json, path: Path) -> list[FieldError]:
    errors = required_fields("diskName", "diskURI")(source, path)
    kind, address = source.get("kind"), source.get("diskURI", "")
    if source.get("cachingMode") is not None:
        errors += listed(source["cachingMode"], _CACHING, path.child("cachingMode"))
    if kind is None:
        return errors
    errors += listed(kind, _DISK_KINDS, path.child("kind"))
    begins, shown = ("/subscriptions/", _MANAGED) if kind == "Managed" else ("https://", _BLOB)
    if not address.startswith(begins):
        errors.append(FieldError.not_supported(path.child("diskURI"), address, [shown]))
    return errors


def storage_os(*fields: str) -> Rule:
    """A rule: a StorageOS volume, whose Secret reference has these fields."""

    def rule(source: Json, path: Path) -> list[FieldError]:
        errors = required_fields("volumeName")(source, path)
        for field in ("volumeName", "volumeNamespace"):
            if source.get(field):
                errors += checked(names.is_dns1123_label, source[field], path.child(field))
        return errors + _secret(source, path, *fields)

    return rule


def csi(source: Json, path: Path) -> list[FieldError]:
    errors = validate_driver_name(source.get("driver", ""), path.child("driver"))
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        errors.append(FieldError.required(path.child("nodePublishSecretRef", "name")))
    elif secret is not None:
        errors += checked(names.name_is_dns_subdomain, secret["name"], path.child("name"))
    return errors


def csi_volume(source: Json, path: Path) -> list[FieldError]:
    errors = validate_driver_name(source.get("driver", ""), path.child("driver"))
    errors += required_fields("volumeHandle")(source, path)
    steps = ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand")
    for field in (f"{step}SecretRef" for step in steps):
        secret, at = source.get(field), path.child(field)
        if secret is not None:
            for part, rule in (("name", names.is_dns1123_subdomain), ("namespace", names.is_dns1123_label)):
                value = secret.get(part, "")
                errors += checked(rule, value, at.child(part)) if value else [FieldError.required(at.child(part))]
    return errors


def local(source: Json, path: Path) -> list[FieldError]:
    return required_fields("path")(source, path) + no_backsteps(source.get("path", ""), path.child("path"))


# Sources with the same rule in Pods and PersistentVolumes.
SHARED: Final[dict[str, Rule]] = {
    "gcePersistentDisk": disk("pdName"),
    "awsElasticBlockStore": disk("volumeID"),
    "flocker": flocker,
    "rbd": required_fields("monitors", "image"),
    "cephfs": required_fields("monitors"),
    "quobyte": quobyte,
    "fc": fibre_channel,
    "flexVolume": flex_volume,
    "vsphereVolume": required_fields("volumePath"),
    "photonPersistentDisk": required_fields("pdID"),
    "portworxVolume": required_fields("volumeID"),
    "azureDisk": azure_disk,
    "scaleIO": required_fields("gateway", "system", "volumeName"),
}
OF_PODS: Final[dict[str, Rule]] = {
    **SHARED,
    "gitRepo": git_repository,
    "iscsi": iscsi,
    "glusterfs": required_fields("endpoints", "path"),
    "cinder": with_secret(required_fields("volumeID"), "name"),
    "azureFile": required_fields("secretName", "shareName"),
    "storageos": storage_os("name"),
    "csi": csi,
}
OF_VOLUMES: Final[dict[str, Rule]] = {
    **SHARED,
    "iscsi": iscsi_volume,
    "glusterfs": gluster_volume,
    "cinder": with_secret(required_fields("volumeID"), "name", "namespace"),
    "azureFile": azure_file_volume,
    "storageos": storage_os("name", "namespace"),
    "csi": csi_volume,
    "local": local,
}
# Paths of the errors of a rule and of a second source, if not the source's own name.
ERROR_PATHS: Final = {"gcePersistentDisk": "persistentDisk"}
SECOND_SOURCE_PATHS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
