"""Objects of many kinds: those that the recorded kube-apiserver has accepted, and some of our own."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.contract import conversations

Json = dict[str, Any]
NAMESPACE = "shared"
_GROUPS = ("builtin", "workloads", "objects", "kinds_odd")
_PER_KIND = 6  # of the recorded objects
# Kinds that change what the servers do with other objects; and kinds with names that cannot be changed.
_NOT = frozenset(
    {
        "APIService",
        "CustomResourceDefinition",
        "FlowSchema",
        "LimitRange",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PriorityLevelConfiguration",
        "ResourceQuota",
        "ServiceCIDR",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)
_DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "n": {"type": "integer", "default": 1},
                                    "text": {"type": "string"},
                                    "parts": {
                                        "type": "array",
                                        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    },
                                },
                            }
                        },
                    }
                },
                "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
            }
        ],
    },
}


def definition(plural: str, kind: str) -> Json:
    """A CustomResourceDefinition."""
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": kind, "listKind": f"{kind}List"}
    found: Json = json.loads(json.dumps(_DEFINITION))
    found["metadata"] = {"name": f"{plural}.example.com"}
    found["spec"]["names"] = names
    return found


def samples(prefix: str) -> list[tuple[str, Json]]:
    """Paths and objects to create, with names that begin with a prefix."""
    found: list[tuple[str, Json]] = []
    kinds: Counter[str] = Counter()
    for group in _GROUPS:
        for scenario, _ in conversations.scenarios(group):
            for step in scenario["steps"]:
                body, path = step.get("body"), step.get("post", "").partition("?")[0]
                if not isinstance(body, dict) or not body.get("kind") or body["kind"] in _NOT or _is_subresource(path):
                    continue
                kinds[body["kind"]] += 1
                if kinds[body["kind"]] > _PER_KIND:
                    continue
                text = json.dumps(body).replace("${ns}", NAMESPACE)
                made = json.loads(text)
                made.setdefault("metadata", {}).pop("generateName", None)
                made["metadata"]["name"] = f"{prefix}-{len(found)}"
                found.append((path.replace("${ns}", NAMESPACE), made))
    return [*found, *_own(prefix)]


def _is_subresource(path: str) -> bool:
    """Whether a path is longer than that of a collection."""
    parts = path.removeprefix("/api/").removeprefix("/apis/").split("/")
    return len(parts) > (5 if "namespaces" in parts else 3)


def _own(prefix: str) -> list[tuple[str, Json]]:
    core = f"/api/v1/namespaces/{NAMESPACE}"
    meta = {"name": f"{prefix}-own", "labels": {"a": "b"}}
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "protocol": "UDP"}]
    event = {"involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "x"}, "reason": "R", "type": "Normal"}
    return [
        (f"{core}/secrets", {"metadata": meta, "stringData": {"password": f"{prefix} and a secret"}}),
        (f"{core}/configmaps", {"metadata": meta, "data": {"k": "ü" * 5000}, "binaryData": {"b": "AAH/"}}),
        (f"{core}/services", {"metadata": meta, "spec": {"type": "NodePort", "ports": ports}}),
        (f"{core}/events", {"metadata": meta, **event}),
    ]
