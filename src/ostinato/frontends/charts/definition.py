"""CustomResourceDefinition of a chart: the schema of its spec is that of the values.

- With `values.schema.json`, from it: types, limits, enumerations and descriptions. What a structural schema cannot
  express (`$ref`, `oneOf`, several types) is left open. Nothing is required: values that are not set have defaults.
- Else from the types in `values.yaml`. An empty or null default says nothing about the type. Numbers may be text.
- Unknown fields are kept, and null is allowed everywhere: it removes a default, as in Helm.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import plural_of

Json = dict[str, Any]

_OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_COPIED: Final = {
    "string": ("minLength", "maxLength", "pattern", "enum", "format"),
    "integer": ("minimum", "maximum", "multipleOf", "enum"),
    "number": ("minimum", "maximum", "multipleOf", "enum"),
    "boolean": ("enum",),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_FORMATS: Final = frozenset({"date-time", "date", "duration", "email", "uri", "ipv4", "ipv6", "uuid", "byte"})
_MAX_DEPTH: Final = 32


def definition_of(gvk: GroupVersionKind, schema: Any, values: Any, *, description: str = "") -> Json:
    """Return the definition of a namespaced kind.

    - `schema`: the parsed values.schema.json; None without one.
    - `values`: the parsed values.yaml.
    """
    spec = _from_schema(schema, 0) if isinstance(schema, dict) else _from_value(values or {}, 0)
    if spec.get("type") != "object":
        spec = {"type": "object", **_OPEN}
    spec.pop("nullable", None)
    spec["description"] = "Values of the chart."
    condition = {"type": "object", **_OPEN}
    status = {
        "type": "object",
        "properties": {
            "conditions": {"type": "array", "items": condition},
            "deployedRelease": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "manifest": {"type": "string"}},
            },
        },
        **_OPEN,
    }
    whole: Json = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    if description:
        whole["description"] = description
    plural = plural_of(gvk.kind)
    deployed = '.status.conditions[?(@.type=="Deployed")].'
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{gvk.group}"},
        "spec": {
            "group": gvk.group,
            "names": {
                "kind": gvk.kind,
                "listKind": f"{gvk.kind}List",
                "plural": plural,
                "singular": gvk.kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": gvk.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": whole},
                    "additionalPrinterColumns": [
                        {"name": "Deployed", "type": "string", "jsonPath": f"{deployed}status"},
                        {"name": "Reason", "type": "string", "jsonPath": f"{deployed}reason"},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                }
            ],
        },
    }


def _from_value(value: Any, depth: int) -> Json:
    """Return the schema of a default."""
    if isinstance(value, dict) and value and depth < _MAX_DEPTH:
        properties = {str(name): _from_value(each, depth + 1) for name, each in value.items()}
        return {"type": "object", "nullable": True, "properties": properties, **_OPEN}
    if isinstance(value, dict):
        return {"type": "object", "nullable": True, **_OPEN}
    if isinstance(value, list):
        return {"type": "array", "nullable": True, "items": dict(_OPEN)}
    if isinstance(value, bool):
        return {"type": "boolean", "nullable": True}
    if isinstance(value, int):
        return {"x-kubernetes-int-or-string": True, "nullable": True}
    if isinstance(value, float):
        return {"type": "number", "nullable": True}
    return {"type": "string", "nullable": True} if value else dict(_OPEN)


def _from_schema(schema: Any, depth: int) -> Json:
    """Return the structural part of a JSON schema."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or "$ref" in schema:
        return dict(_OPEN)
    kind = schema.get("type")
    if kind is None and "properties" in schema:
        kind = "object"
    if isinstance(kind, list):
        plain = [each for each in kind if each != "null"]
        kind = plain[0] if len(plain) == 1 else None
    if kind not in _COPIED:
        return dict(_OPEN)
    found: Json = {"type": kind, "nullable": True}
    if isinstance(schema.get("description"), str):
        found["description"] = schema["description"]
    for name in _COPIED[kind]:
        if name in schema and (name != "format" or schema[name] in _FORMATS):
            found[name] = schema[name]
    if None in (found.get("enum") or ()):
        found["enum"] = [each for each in found["enum"] if each is not None]
    if kind == "array":
        found["items"] = _from_schema(schema.get("items"), depth + 1)
    if kind == "object":
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            found["properties"] = {str(name): _from_schema(each, depth + 1) for name, each in properties.items()}
        found |= _OPEN
    return found
