"""The custom resource of the tests, its definition, and short constructors of objects."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ostinato.api.markers import ListMap
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.kinds.core_v1 import ConfigMap

Json = dict[str, Any]


class WidgetSpec(Struct):
    size: int = 1
    text: str = ""
    replicas: int = 0
    image: str = ""


class WidgetStatus(Struct):
    ready: int = 0
    note: str = ""
    observed_generation: int | None = None
    conditions: Annotated[list[Condition], ListMap("type")] = []


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)
    status: WidgetStatus | None = None


def definition(kind: str = "Widget", plural: str = "widgets", scope: str = "Namespaced") -> Json:
    """Return a CustomResourceDefinition with status and scale and without a schema."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready"},
        },
    }
    names: Json = {"plural": plural, "singular": kind.lower(), "kind": kind}
    if kind == "Widget":
        names["shortNames"] = ["wd"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.dev"},
        "spec": {"group": "example.dev", "scope": scope, "names": names, "versions": [version]},
    }


WIDGETS = definition()


def widget(name: str = "a", **spec: Any) -> Widget:
    return Widget(metadata=ObjectMeta(name=name, namespace="default"), spec=WidgetSpec(**spec))


def config_map(name: str = "a", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)
