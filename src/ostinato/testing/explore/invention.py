"""Invented scenarios: from the schema of a custom kind, what users will do with it sooner or later.

Create, edit each field of `spec` that has a simple type, delete the children, delete, create again under the same name.
Values are the defaults and examples of the schema, its bounds, or simple ones that it admits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ostinato.testing.explore.scenario import Step, create, delete, delete_children, patch

Json = dict[str, Any]
_MOST_EDITS: Final = 5
_NAME: Final = "explored"


def invent(definition: Json) -> list[Step]:
    """Return a scenario for a CustomResourceDefinition."""
    spec = definition["spec"]
    version = next(each for each in spec["versions"] if each.get("storage"))
    schema = version["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {})
    value = _value(schema)
    found: Json = {
        "apiVersion": f"{spec['group']}/{version['name']}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": _NAME},
    }
    if isinstance(value, dict):
        found["spec"] = value
    edits = [patch(found, {"spec": {name: other}}) for name, other in _edits(schema, value)]
    again = [delete(found), create(found)]
    return [create(found), *edits[:_MOST_EDITS], delete_children(found), *again, delete(found)]


def _edits(schema: Json, value: Any) -> Sequence[tuple[str, Any]]:
    """Return the fields that can be changed, with another value for each."""
    if not isinstance(value, dict) or "x-kubernetes-validations" in schema:
        return []
    found = []
    for name, field in schema.get("properties", {}).items():
        if "x-kubernetes-validations" in field:  # it may be immutable
            continue
        current = value.get(name, field.get("default"))
        other = _other(field, current)
        if other is not None and other != current:
            found.append((name, other))
    return sorted(found, key=lambda each: each[0] != "replicas")  # scaling is what users do most


def _value(schema: Json) -> Any:
    """Return a value that the schema admits: with the required fields alone."""
    for source in ("example", "default"):
        if source in schema:
            return schema[source]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    if kind == "object":
        return {
            name: _value(field)
            for name, field in schema.get("properties", {}).items()
            if name in schema.get("required", ())
        }
    if kind == "array":
        return [_value(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), min(1, schema.get("maximum", 1)))
    if kind == "boolean":
        return False
    return "x" * max(1, schema.get("minLength", 1)) if "pattern" not in schema else "a"


def _other(schema: Json, current: Any) -> Any:
    """Return another value of a simple field; None if there is none."""
    if schema.get("enum"):
        return next((each for each in schema["enum"] if each != current), None)
    kind = schema.get("type")
    if kind == "integer":
        number = (current or 0) + 1
        return number if number <= schema.get("maximum", number) else (current or 0) - 1
    if kind == "boolean":
        return not current
    if kind == "string" and not {"pattern", "format"} & set(schema):
        text = f"{current or 'x'}y"
        return text[: schema.get("maxLength", len(text))]
    if kind == "object" and (schema.get("additionalProperties") or {}).get("type") == "string":
        return {**(current or {}), "added": "yes"}
    return None
