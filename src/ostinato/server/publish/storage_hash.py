"""The storage version hash: tells clients that migrate stored objects whether the stored version has changed."""

from __future__ import annotations

import base64
import hashlib

from ostinato.server.resources.resource import Resource

# Where Kubernetes itself stores another version than the one it serves: (group, resource) -> group and version.
_STORED: dict[tuple[str, str], tuple[str, str]] = {
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): ("admissionregistration.k8s.io", "v1beta1"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): ("admissionregistration.k8s.io", "v1beta1"),
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("apiextensions.k8s.io", "v1beta1"),
    ("autoscaling", "horizontalpodautoscalers"): ("autoscaling", "v2"),
    ("events.k8s.io", "events"): ("", "v1"),
}


def storage_version_hash(resource: Resource) -> str:
    """The hash of the group, version and kind in which objects are stored."""
    stored = resource.storage_gvk
    group, version = (stored.group, stored.version)
    if not resource.custom:
        group, version = _STORED.get((resource.gvr.group, resource.gvr.resource), (group, version))
    digest = hashlib.sha256(f"{group}/{version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
