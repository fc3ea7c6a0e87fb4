"""References of a Pod to other API objects, which a mirror Pod must not have."""

from __future__ import annotations

from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.server.access.authorization.references import secrets_and_maps
from ostinato.server.resources.strategy import Json

_INDEPENDENT: Final = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "cephfs",
        "cinder",
        "downwardAPI",
        "emptyDir",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    }
)
_REFERRING: Final = {  # in the order of kube-apiserver's checks
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


class PodReferenceError(Exception):
    """The references of a Pod cannot be determined."""


def referenced(pod: Json) -> str:
    """The first referenced resource of a Pod, "" if none."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    first = next(secrets_and_maps(pod), None)
    if first is not None:
        return first.resource
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        if found := _of_volume(volume):
            return found
    return ""


def _of_volume(volume: Json) -> str:
    if any(volume.get(kind) is not None for kind in _INDEPENDENT):
        return ""
    for kind, what in _REFERRING.items():
        if volume.get(kind) is not None:
            return what
    if volume.get("projected") is None:
        raise PodReferenceError(f"unknown volume type for volume  {quote(volume.get('name', ''))}")
    for source in volume["projected"].get("sources") or ():
        for kind, what in _PROJECTED.items():
            if source.get(kind) is not None:
                return what
        if source.get("downwardAPI") is None:
            raise PodReferenceError(f"unknown source for projected volume {quote(volume.get('name', ''))}")
    return ""
