"""Keywords that controller-gen reads from markers in the Go sources and that the published definitions lack.

By definition and property; "" stands for the struct itself. Compared with definitions that controller-gen 0.17 wrote.
"""

from __future__ import annotations

from typing import Any, Final

Keywords = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
CONDITION: Final = META + "Condition"
_CORE: Final = "io.k8s.api.core.v1."
_EMPTY_NAME: Final[dict[str, Keywords]] = {"name": {"default": ""}}
_ATOMIC_REFERENCE: Final[dict[str, Keywords]] = {"": {"x-kubernetes-map-type": "atomic"}, **_EMPTY_NAME}
_RBD: Final[dict[str, Keywords]] = {
    "keyring": {"default": "/etc/ceph/keyring"},
    "pool": {"default": "rbd"},
    "user": {"default": "admin"},
}

GO_MARKERS: Final[dict[str, dict[str, Keywords]]] = {
    CONDITION: {
        "message": {"maxLength": 32768},
        "observedGeneration": {"minimum": 0},
        "reason": {"maxLength": 1024, "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
        "status": {"enum": ["True", "False", "Unknown"]},
        "type": {
            "maxLength": 316,
            "pattern": (
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        },
    },
    _CORE + "AzureDiskVolumeSource": {"fsType": {"default": "ext4"}, "readOnly": {"default": False}},
    _CORE + "ConfigMapEnvSource": _ATOMIC_REFERENCE,
    _CORE + "ConfigMapKeySelector": _EMPTY_NAME,
    _CORE + "ConfigMapProjection": _ATOMIC_REFERENCE,
    _CORE + "ConfigMapVolumeSource": _ATOMIC_REFERENCE,
    _CORE + "FileKeySelector": {"optional": {"default": False}},
    _CORE + "GRPCAction": {"service": {"default": ""}},
    _CORE + "ISCSIPersistentVolumeSource": {"iscsiInterface": {"default": "default"}},
    _CORE + "ISCSIVolumeSource": {"iscsiInterface": {"default": "default"}},
    _CORE + "RBDPersistentVolumeSource": _RBD,
    _CORE + "RBDVolumeSource": _RBD,
    _CORE + "ScaleIOPersistentVolumeSource": {
        "fsType": {"default": "xfs"},
        "storageMode": {"default": "ThinProvisioned"},
    },
    _CORE + "ScaleIOVolumeSource": {"fsType": {"default": "xfs"}, "storageMode": {"default": "ThinProvisioned"}},
    _CORE + "SecretEnvSource": _ATOMIC_REFERENCE,
    _CORE + "SecretKeySelector": _EMPTY_NAME,
    _CORE + "SecretProjection": _ATOMIC_REFERENCE,
}
