"""Storage version hash: lets storage migration detect a change of the storage version."""

from __future__ import annotations

import base64
import hashlib

from ostinato.server.resources.resource import Resource

# Kinds that Kubernetes v1.36 stores in a version that it does not serve.
_STORED: dict[tuple[str, str], str] = {
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "v1beta1",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): "v1beta1",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "v1beta1",
}


def storage_version_hash(resource: Resource) -> str:
    """The hash of the group, version and kind in which objects are stored."""
    stored = resource.storage_gvk
    version = _STORED.get((resource.gvr.group, resource.gvr.resource), stored.version)
    digest = hashlib.sha256(f"{stored.group}/{version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
