"""Schema of a custom resource for server-side apply: with its own metadata and that of embedded resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.schema import Schema, builtin_schemas

_OBJECT = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
}


def apply_schema(raw: Mapping[str, Any]) -> Schema:
    whole = _embedded({**raw, "x-kubernetes-embedded-resource": True})
    return Schema.of(whole, builtin_schemas().definitions)


def _embedded(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    changed = dict(raw)
    if raw.get("properties"):
        changed["properties"] = {name: _embedded(below) for name, below in raw["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(raw.get(name), dict):
            changed[name] = _embedded(raw[name])
    if raw.get("x-kubernetes-embedded-resource"):
        changed["properties"] = {**changed.get("properties", {}), **_OBJECT}
    return changed
