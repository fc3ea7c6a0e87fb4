"""Parameters of a StorageClass that Kubernetes reads itself: file system type, and Secrets with placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from ostinato.kinds.core_v1 import PersistentVolumeClaim, SecretReference
from ostinato.kinds.storage_v1 import StorageClass
from ostinato.plane.csi import CsiError
from ostinato.plane.csi.volumes import INFO_PREFIX

SecretPurpose = Literal[
    "provisioner", "controller-publish", "node-stage", "node-publish", "controller-expand", "node-expand"
]
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
_ANNOTATION: Final = re.compile(r"pvc\.annotations\['([^']*)'\]")


def of_driver(storage_class: StorageClass) -> dict[str, str]:
    """Return the parameters that the driver gets."""
    return {name: value for name, value in storage_class.parameters.items() if not name.startswith(INFO_PREFIX)}


def fs_type(storage_class: StorageClass) -> str:
    return storage_class.parameters.get(f"{INFO_PREFIX}fstype", "")


def secret(
    storage_class: StorageClass, purpose: SecretPurpose, claim: PersistentVolumeClaim, volume: str
) -> SecretReference | None:
    """Return the Secret for a purpose; None if the class names none. `volume`: name of the PersistentVolume."""
    name = storage_class.parameters.get(f"{INFO_PREFIX}{purpose}-secret-name", "")
    namespace = storage_class.parameters.get(f"{INFO_PREFIX}{purpose}-secret-namespace", "")
    if not name and not namespace:
        return None
    if not name or not namespace:
        what = f"parameters {INFO_PREFIX}{purpose}-secret-name and -namespace"
        raise CsiError(f"StorageClass {storage_class.metadata.name}: {what}: one is missing; set both")
    known = {"pv.name": volume, "pvc.namespace": claim.metadata.namespace}
    return SecretReference(
        namespace=_resolved(namespace, known, {}),
        name=_resolved(name, known | {"pvc.name": claim.metadata.name}, claim.metadata.annotations),
    )


def _resolved(template: str, known: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        annotation = _ANNOTATION.fullmatch(found[1])
        if annotation is not None and annotation[1] in annotations:
            return annotations[annotation[1]]
        if found[1] not in known:
            raise CsiError(f"invalid tokens: {found[1]!r} in {template!r}; use {', '.join(sorted(known))}")
        return known[found[1]]

    return _PLACEHOLDER.sub(value, template)
