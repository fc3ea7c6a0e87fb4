"""The task: each Gadget gets a ConfigMap with its text, and a status with the ConfigMap's name."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct

GROUP = "bench.example.dev"


class GadgetSpec(Struct):
    text: str = ""


class GadgetStatus(Struct):
    config_map: str = ""
    observed_generation: int | None = None


class Gadget(CustomResource, group=GROUP, version="v1"):
    spec: GadgetSpec = msgspec.field(default_factory=GadgetSpec)
    status: GadgetStatus | None = None


def definition() -> dict[str, Any]:
    text, number = {"type": "string"}, {"type": "integer", "format": "int64"}
    spec = {"type": "object", "properties": {"text": text}}
    progress = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}  # of handlers
    status = {"type": "object", "properties": {"configMap": text, "observedGeneration": number, "handlers": progress}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [version],
        },
    }
