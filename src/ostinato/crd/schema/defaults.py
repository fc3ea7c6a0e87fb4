"""Defaults: which defaults of a class become defaults of the schema, and whether they are valid.

- Non-empty defaults are part of the schema. None and empty values (`""`, `[]`, `{}`) are not: an absent field means the
  same, and objects stay small.
- A struct has the default `{}` if its fields have defaults, which the server would not set otherwise. If it has rules,
  the default is complete, as the server evaluates rules on the default itself.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ostinato.api.serializer.omit_zero import omit_zero_structs
from ostinato.api.serializer.scalars import encode_scalar
from ostinato.crd.schema.models import MISSING, ModelField, is_pydantic
from ostinato.crd.schema.patterns import matches
from ostinato.crd.schema.place import Place

_ZONE: Final = re.compile("([Zz]|[-+][0-9]{2}:[0-9]{2})$")


def server_default(field: ModelField, schema: dict[str, Any]) -> Any:
    """Return the default for the schema; MISSING if there is none. Raises TypeError."""
    value = python_default(field)
    if value is MISSING:
        return MISSING
    document = json_of(value)
    if isinstance(document, dict) and "properties" in schema:
        return struct_default(schema, document)
    return MISSING if document is None or document in ("", [], {}) else document


def check_server_default(field: ModelField, document: Any, at: Place) -> None:
    """Raise SchemaError for a class default that the server would overwrite, as it is not written."""
    own = python_default(field)
    if own is not MISSING and own is not None and json_of(own) != document:
        raise at.error(
            f"{own!r} is the default of the class, not written unless it is set, so the server would set {document!r}: "
            "make it None, as in Annotated[int | None, ServerDefault(7)] = None"
        )


def struct_default(schema: dict[str, Any], value: dict[str, Any] | None = None) -> Any:
    """Return the default of a struct, given its own value beyond the defaults of its fields."""
    document = value or {}
    if _has_rules(schema):
        document = filled(schema, document)
    return document if document or _defaults_below(schema) else MISSING


def python_default(field: ModelField) -> Any:
    """Return the default of the attribute; MISSING for a factory with varying results."""
    if field.factory is None:
        return MISSING if field.default is msgspec.UNSET else field.default
    try:
        first, second = field.factory(), field.factory()
    except TypeError:  # pydantic factories with an argument
        return MISSING
    return first if first == second else MISSING


def json_of(value: Any) -> Any:
    """Return a Python value as JSON types, with sets sorted."""
    if is_pydantic(type(value)):
        return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if isinstance(value, msgspec.Struct):
        value = omit_zero_structs(value)
    document = msgspec.json.decode(msgspec.json.encode(value, enc_hook=encode_scalar, order="deterministic"))
    return _drop_nulls(document) if isinstance(document, dict) else document


def _drop_nulls(value: Any) -> Any:
    """Remove unset fields."""
    if isinstance(value, dict):
        return {name: _drop_nulls(item) for name, item in value.items() if item is not None}
    return value


def filled(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Return a value with nested defaults, as a server sets them."""
    full = dict(value)
    for name, below in schema.get("properties", {}).items():
        if name not in full and "default" in below:
            full[name] = below["default"]
        if isinstance(full.get(name), dict):
            full[name] = filled(below, full[name])
    return full


def _has_rules(schema: dict[str, Any]) -> bool:
    return "x-kubernetes-validations" in schema or any(map(_has_rules, schema.get("properties", {}).values()))


def _defaults_below(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if "default" not in properties.get(name, {})]
    return not missing and any("default" in below for below in properties.values())


def mismatch(schema: dict[str, Any], value: Any) -> str:
    """Return why a value does not match a schema; "" if it does. Not exhaustive: the server checks all."""
    if value is None:
        return "" if schema.get("nullable") or "type" not in schema else "it is null"
    if not is_of_type(schema, value):
        return f"{value!r} is not of type {schema.get('type', 'integer or string')}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is not one of {', '.join(map(repr, schema['enum']))}"
    match value:
        case str():
            return _string_mismatch(schema, value)
        case bool():
            return ""
        case int() | float():
            return _number_mismatch(schema, value)
        case list():
            inside = (mismatch(schema.get("items", {}), item) for item in value)
            return (
                _length_mismatch(schema, len(value), "Items")
                or next(filter(None, inside), "")
                or _duplicate(schema, value)
            )
        case dict():
            return _length_mismatch(schema, len(value), "Properties") or _fields_mismatch(schema, value)
    return ""


def is_of_type(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value has the JSON type of a schema."""
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
    return True


def _number_mismatch(schema: dict[str, Any], value: float) -> str:
    least, most, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        return f"{value!r} is too small"
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        return f"{value!r} is too large"
    if factor is not None and isinstance(value, int) and isinstance(factor, int) and value % factor:
        return f"{value!r} is not a multiple of {factor}"
    return ""


def _duplicate(schema: dict[str, Any], items: list[Any]) -> str:
    """Return the duplicate of a set or map list, if any."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            document = items
        case "map":
            keys, full = schema["x-kubernetes-list-map-keys"], [filled(schema["items"], item) for item in items]
            document = [{key: item.get(key) for key in keys} for item in full]
        case _:
            return ""
    twice = [item for i, item in enumerate(document) if item in document[:i]]
    return f"it contains {twice[0]!r} twice" if twice else ""


def _string_mismatch(schema: dict[str, Any], value: str) -> str:
    if schema.get("format") == "date-time" and not _ZONE.search(value):
        return f"{value!r} names no time zone"
    if "pattern" in schema and not matches(schema["pattern"], value):
        return f"{value!r} does not match {schema['pattern']}"
    return _length_mismatch(schema, len(value), "Length")


def _length_mismatch(schema: dict[str, Any], length: int, word: str) -> str:
    if length < schema.get(f"min{word}", 0):
        return f"its length {length} is below the minimum {schema[f'min{word}']}"
    if length > schema.get(f"max{word}", length):
        return f"its length {length} is above the maximum {schema[f'max{word}']}"
    return ""


def _fields_mismatch(schema: dict[str, Any], value: dict[str, Any]) -> str:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value and "default" not in properties.get(name, {}):
            return f"it has no {name}"
    for name, item in value.items():
        below = properties.get(name, others if isinstance(others, dict) else {})
        if problem := mismatch(below, item):
            return f"{name}: {problem}"
    return ""
