"""Defaulting of Pod specs, in Pods and in Pod templates.

All functions change their argument in place. They expect decoded bodies: fields have the types of the schema, and empty
optional fields are absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ostinato.api.quantity import Quantity
from ostinato.server.resources.core.pods.spec.images import pull_policy
from ostinato.server.resources.strategy import Json

_MODE = 0o644
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_UNSERVED_PROJECTIONS = ("clusterTrustBundle", "podCertificate")
_OLD_ANNOTATIONS = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}" for stage in ("alpha", "beta") for what in ("s", "-statuses")
)


def default_pod_template(template: Json) -> None:
    """Default a PodTemplateSpec."""
    drop_old_annotations(template.get("metadata") or {})
    default_pod_spec(template.setdefault("spec", {}))


def drop_old_annotations(metadata: Json) -> None:
    """Drop the annotations that once carried init containers, as kube-apiserver does."""
    annotations = metadata.get("annotations")
    if annotations:
        for key in _OLD_ANNOTATIONS:
            annotations.pop(key, None)
        if not annotations:
            del metadata["annotations"]


def default_pod_spec(spec: Json) -> None:
    """Default a PodSpec."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.pop("schedulingGroup", None)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # serviceAccount and serviceAccountName hold the same value
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes", ()):
        default_volume(volume)
    for container in containers_of(spec):
        default_container(container)
    if "overhead" in spec:
        round_up(spec["overhead"])
    if "resources" in spec:
        default_resources(spec["resources"])


def containers_of(spec: Json, *kinds: str) -> Iterable[Json]:
    """The containers of a spec, of all or of the given types."""
    for kind in kinds or _CONTAINERS:
        yield from spec.get(kind) or ()


def default_container(container: Json) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        source = variable.get("valueFrom")
        if source:
            default_field_reference(source)
            if "fileKeyRef" in source:
                source["fileKeyRef"].setdefault("optional", False)
    if container.get("resources"):
        default_resources(container["resources"])
    for name in _PROBES:
        if name in container:
            default_probe(container[name])
    lifecycle = container.get("lifecycle")
    if lifecycle:
        if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
            del container["lifecycle"]  # it held only a field whose feature gate is off
        for hook in ("postStart", "preStop"):
            _default_http_get(lifecycle.get(hook))


def default_resources(resources: Json) -> None:
    for name in ("limits", "requests"):
        if name in resources:
            round_up(resources[name])


def round_up(amounts: dict[str, Any]) -> None:
    """Round quantities up to a thousandth."""
    for name, text in amounts.items():
        if text[-1:] in ("n", "u") or "e-" in text:
            amounts[name] = str(Quantity.parse(text).round_up(-3))


def default_probe(probe: Json) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _default_http_get(probe)
    if "grpc" in probe:
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""


def _default_http_get(handler: Json | None) -> None:
    if handler and "httpGet" in handler:
        request = handler["httpGet"]
        request.setdefault("path", "/")
        request.setdefault("scheme", "HTTP")


def default_field_reference(source: Json) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")


def default_volume(volume: Json) -> None:
    """Default a volume of a Pod; one without a source is an emptyDir."""
    if len(volume) == 1 or not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
        return
    default_volume_source(volume)
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if name in volume:
            volume[name].setdefault("defaultMode", _MODE)
    if "downwardAPI" in volume:
        _default_items(volume["downwardAPI"])
    for source in volume.get("projected", {}).get("sources") or ():
        for name in _UNSERVED_PROJECTIONS:
            source.pop(name, None)
        if "downwardAPI" in source:
            _default_items(source["downwardAPI"])
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    if "image" in volume:
        image = volume["image"]
        if "pullPolicy" not in image:
            image["pullPolicy"] = pull_policy(image.get("reference", ""))
    template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if template is not None:
        default_claim_spec(template.setdefault("spec", {}))


def _default_items(source: Json) -> None:
    for item in source.get("items", ()):
        default_field_reference(item)


_SOURCE_DEFAULTS: dict[str, Json] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_volume_source(volume: Json) -> None:
    """Default the volume sources that Pods and PersistentVolumes share."""
    for name, values in _SOURCE_DEFAULTS.items():
        if name in volume:
            source = volume[name]
            for key, value in values.items():
                source.setdefault(key, value)


def default_claim_spec(spec: Json) -> None:
    """Default a PersistentVolumeClaimSpec."""
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("resources"):
        default_resources(spec["resources"])
