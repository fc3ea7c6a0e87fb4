"""Embedded Go structs: the decoder's error messages name them, JSON does not.

In JSON the fields of an embedded struct are inlined. Messages include the embedded struct:
`Volume.spec.volumes.VolumeSource.emptyDir`.
"""

from __future__ import annotations

from typing import Final

_REFERENCE: Final = "LocalObjectReference"

# Fields of a PersistentVolumeSpec beside its source.
VOLUME_FIELDS: Final = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)

# By outer struct: the embedded struct, and the outer struct's own fields.
_EMBEDDED: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "ConfigMapEnvSource": (_REFERENCE, frozenset({"optional"})),
    "ConfigMapKeySelector": (_REFERENCE, frozenset({"key", "optional"})),
    "ConfigMapProjection": (_REFERENCE, frozenset({"items", "optional"})),
    "ConfigMapVolumeSource": (_REFERENCE, frozenset({"defaultMode", "items", "optional"})),
    "EphemeralContainer": ("EphemeralContainerCommon", frozenset({"targetContainerName"})),
    "IngressRule": ("IngressRuleValue", frozenset({"host"})),
    "NamedRuleWithOperations": ("RuleWithOperations", frozenset({"resourceNames"})),
    "PersistentVolumeSpec": (
        "PersistentVolumeSource",
        VOLUME_FIELDS,
    ),
    "Probe": (
        "ProbeHandler",
        frozenset(
            {
                "failureThreshold",
                "initialDelaySeconds",
                "periodSeconds",
                "successThreshold",
                "terminationGracePeriodSeconds",
                "timeoutSeconds",
            }
        ),
    ),
    "RuleWithOperations": ("Rule", frozenset({"operations"})),
    "SecretEnvSource": (_REFERENCE, frozenset({"optional"})),
    "SecretKeySelector": (_REFERENCE, frozenset({"key", "optional"})),
    "SecretProjection": (_REFERENCE, frozenset({"items", "optional"})),
    "Volume": ("VolumeSource", frozenset({"name"})),
}


def error_path(struct: str, field: str) -> str:
    """The path of a field in messages."""
    inner, own = _EMBEDDED.get(struct, ("", frozenset()))
    return field if not inner or field in own else f"{inner}.{error_path(inner, field)}"
