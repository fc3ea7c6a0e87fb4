"""Manifests in API versions that servers no longer serve, converted to those that they serve.

Packages are older than today's servers: CustomResourceDefinitions of apiextensions.k8s.io/v1beta1, Deployments of
extensions/v1beta1 and others are applied as the version that replaced them. A version that the server serves is never
converted.
"""

from __future__ import annotations

import copy
from typing import Any, Final

Json = dict[str, Any]

_DEFINITION: Final = "CustomResourceDefinition"
_REPLACED: Final = {  # (apiVersion, kind): apiVersion with the same fields
    **{(f"rbac.authorization.k8s.io/{old}", kind): "rbac.authorization.k8s.io/v1"
       for old in ("v1alpha1", "v1beta1") for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")},
    **{(f"apps/{old}", kind): "apps/v1" for old in ("v1beta1", "v1beta2")
       for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision")},
    **{("extensions/v1beta1", kind): "apps/v1" for kind in ("Deployment", "DaemonSet", "ReplicaSet")},
    ("extensions/v1beta1", "NetworkPolicy"): "networking.k8s.io/v1",
    ("policy/v1beta1", "PodDisruptionBudget"): "policy/v1",
    ("batch/v1beta1", "CronJob"): "batch/v1",
    ("storage.k8s.io/v1beta1", "StorageClass"): "storage.k8s.io/v1",
    ("scheduling.k8s.io/v1beta1", "PriorityClass"): "scheduling.k8s.io/v1",
    ("coordination.k8s.io/v1beta1", "Lease"): "coordination.k8s.io/v1",
    ("apiextensions.k8s.io/v1beta1", _DEFINITION): "apiextensions.k8s.io/v1",
}  # fmt: skip


def replacement(instance: Json) -> Json | None:
    """Return the object in the version that replaced its own; None if there is none."""
    kind = str(instance.get("kind"))
    version = _REPLACED.get((str(instance.get("apiVersion")), kind))
    if version is None:
        return None
    converted = copy.deepcopy(instance)
    converted["apiVersion"] = version
    if kind == _DEFINITION:
        _convert_definition(converted)
    elif version == "apps/v1":
        _add_selector(converted)
    return converted


def _add_selector(workload: Json) -> None:
    """Add the selector that used to default to the labels of the Pod template."""
    spec = workload.setdefault("spec", {})
    if kind_has_selector(workload) and isinstance(spec, dict) and not spec.get("selector"):
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        spec["selector"] = {"matchLabels": dict(labels)}


def kind_has_selector(workload: Json) -> bool:
    return workload.get("kind") in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def _convert_definition(definition: Json) -> None:
    """Convert the spec of v1beta1: what was common to all versions is a part of each."""
    spec = definition.setdefault("spec", {})
    prunes = spec.pop("preserveUnknownFields", True) is False
    common = {
        "schema": spec.pop("validation", None),
        "subresources": spec.pop("subresources", None),
        "additionalPrinterColumns": spec.pop("additionalPrinterColumns", None),
    }
    version = spec.pop("version", None)
    versions = spec.get("versions") or [{"name": version or "v1", "served": True, "storage": True}]
    for each in versions:
        for name, value in common.items():
            if value is not None:
                each.setdefault(name, copy.deepcopy(value))
        each["schema"] = {"openAPIV3Schema": _schema((each.get("schema") or {}).get("openAPIV3Schema"), prunes=prunes)}
        for column in each.get("additionalPrinterColumns") or ():
            if "JSONPath" in column:
                column["jsonPath"] = column.pop("JSONPath")
    spec["versions"] = versions
    conversion = spec.get("conversion")
    if isinstance(conversion, dict) and "webhookClientConfig" in conversion:
        conversion["webhook"] = {
            "clientConfig": conversion.pop("webhookClientConfig"),
            "conversionReviewVersions": conversion.pop("conversionReviewVersions", ["v1beta1"]),
        }
    definition.pop("status", None)


def _schema(schema: Json | None, *, prunes: bool) -> Json:
    """Return a schema that v1 accepts: it must be structural. One that is not is replaced by one that keeps all."""
    if schema is None or not _is_structural(schema, is_root=True):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {**schema, "type": "object", **({} if prunes else {"x-kubernetes-preserve-unknown-fields": True})}


def _is_structural(schema: Any, *, is_root: bool = False) -> bool:
    if not isinstance(schema, dict):
        return False
    if not (is_root or "type" in schema or "x-kubernetes-int-or-string" in schema
            or schema.get("x-kubernetes-preserve-unknown-fields")):  # fmt: skip
        return False
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        return False
    parts = [*(schema.get("properties") or {}).values()]
    parts += [each for each in (schema.get("items"), schema.get("additionalProperties")) if isinstance(each, dict)]
    return all(map(_is_structural, parts))
