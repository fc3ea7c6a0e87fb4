"""Embedded Go structs: error messages name them although JSON does not.

Some Go structs hold others whose fields stand among their own in JSON. The decoder's messages name the inner struct:
`Volume.spec.volumes.VolumeSource.emptyDir`.
"""

from __future__ import annotations

from typing import Final

_REFERENCE: Final = "LocalObjectReference"

# Of the spec of a PersistentVolume, beside its source.
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

# By the name of the outer struct: that of the inner one, and the fields that are the outer one's own.
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


def told_as(struct: str, field: str) -> str:
    """How messages name a field of a struct."""
    inner, own = _EMBEDDED.get(struct, ("", frozenset()))
    return field if not inner or field in own else f"{inner}.{told_as(inner, field)}"
