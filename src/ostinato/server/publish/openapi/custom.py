"""Published schemas of custom resources, converted to OpenAPI v2 or v3.

Version 3 publishes the schema as it is defined. Version 2 supports less, and its clients (kubectl among them) less
still: it omits junctors, nullable types, and everything below a node that preserves unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.publish.openapi.descriptions import API_VERSION, KIND, METADATA
from ostinato.server.resources.resource import Resource

Json = dict[str, Any]

V2 = "#/definitions/"
V3 = "#/components/schemas/"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_INT_OR_STRING_TYPES = [{"type": "integer"}, {"type": "string"}]
_API_VERSION = {"type": "string", "description": API_VERSION}
_KIND = {"type": "string", "description": KIND}
_NOT_IN_V2 = ("allOf", "anyOf", "default", "not", "nullable", "oneOf")


def definition_name(gvk: GroupVersionKind) -> str:
    """The name of the definition of a custom kind: reversed group, version, kind."""
    return ".".join((*reversed(gvk.group.split(".")), gvk.version, gvk.kind))


def definitions_of(resource: Resource, prefix: str) -> dict[str, Json]:
    """The definitions of a custom resource and of its list; `prefix` is V2 or V3."""
    gvk = resource.gvk
    listed = GroupVersionKind(gvk.group, gvk.version, resource.list_kind)
    found = {gvk: _object(resource, prefix), listed: _list(resource, prefix)}
    for kind, schema in found.items():
        schema["x-kubernetes-group-version-kind"] = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
        if resource.selectable:
            schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in resource.selectable]
    return {definition_name(kind): schema for kind, schema in found.items()}


def _list(resource: Resource, prefix: str) -> Json:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "items": {"type": "array", "items": {"$ref": prefix + definition_name(resource.gvk)}},
            "kind": _KIND,
            "metadata": {"$ref": f"{prefix}{_META}ListMeta"},
        },
    }


def _object(resource: Resource, prefix: str) -> Json:
    raw = resource.openapi
    if not raw or (prefix == V2 and raw.get(_PRESERVE)):
        schema: Json = {"type": "object"}
    else:
        schema = _v2(raw) if prefix == V2 else _v3(raw)
        schema["properties"] = {**schema.get("properties", {}), **_type_and_metadata(prefix)}
    return schema


def _type_and_metadata(prefix: str) -> Json:
    return {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "metadata": _metadata({"$ref": f"{prefix}{_META}ObjectMeta"}, prefix),
    }


def _metadata(target: Json, prefix: str) -> Json:
    return {
        "description": METADATA,
        **(target if prefix == V2 else {"allOf": [target]}),
    }  # 3 ignores siblings of a $ref


def _embed(schema: Json, prefix: str) -> None:
    """Add the fields that every object has to the schema of an embedded resource."""
    schema["properties"] = {**schema.get("properties", {}), **_type_and_metadata(prefix)}
    required = schema.get("required", [])
    schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _v3(raw: Mapping[str, Any]) -> Json:
    schema = dict(raw)
    _below(schema, _v3)
    if schema.get(_INT_OR_STRING) and not schema.get("anyOf") and not schema.get("allOf"):
        schema["anyOf"] = _INT_OR_STRING_TYPES
    if schema.get(_EMBEDDED):
        _embed(schema, V3)
    return schema


def _v2(raw: Mapping[str, Any]) -> Json:
    schema = {key: value for key, value in raw.items() if key not in _NOT_IN_V2}
    # Clients of version 2 fail on items and properties without a type, and on arrays without items.
    if raw.get("nullable") or raw.get(_PRESERVE):
        schema.pop("items", None)
        schema.pop("properties", None)
    if raw.get("nullable") or (raw.get(_PRESERVE) and raw.get("type") == "object"):
        schema.pop("type", None)
    if "items" not in schema and schema.get("type") == "array":
        del schema["type"]
    _drop_nullable_from_required(schema)
    _below(schema, _v2)
    if raw.get(_EMBEDDED) and not raw.get(_PRESERVE):
        _embed(schema, V2)
    return schema


def _drop_nullable_from_required(schema: Json) -> None:
    required = schema.get("required")
    if not required:
        return
    properties = schema.get("properties") or {}
    required = [name for name in required if not (properties.get(name) or {}).get("nullable")]
    additional = schema.get("additionalProperties")
    if not required or (isinstance(additional, Mapping) and additional.get("nullable")):
        del schema["required"]
    else:
        schema["required"] = required


def _below(schema: Json, convert: Any) -> None:
    """Convert the schemas of properties, items and additional properties."""
    if schema.get("properties"):
        schema["properties"] = {name: convert(node) for name, node in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            schema[key] = convert(schema[key])
