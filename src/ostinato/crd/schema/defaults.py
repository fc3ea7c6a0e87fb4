"""Defaults: which defaults of a class a server is document, and whether they fit.

A default is document where it says something: numbers, booleans, texts and whatever is not empty. None and what is empty
(`""`, `[]`, `{}`) are not: leaving the field out means the same to every reader, and objects stay small.

A struct by default is document as `{}` where fields inside of it have defaults, which would not be set otherwise; with
rules in it, it is document in full, since a server tries the rules on the default as it stands.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ostinato.api.leaves import encode_leaf
from ostinato.api.sparse import sparse
from ostinato.crd.schema.models import MISSING, ModelField, is_pydantic
from ostinato.crd.schema.patterns import matches
from ostinato.crd.schema.place import Place

_ZONE: Final = re.compile("([Zz]|[-+][0-9]{2}:[0-9]{2})$")


def server_default(field: ModelField, schema: dict[str, Any]) -> Any:
    """The default of a field in JSON shape; MISSING where there is none worth telling. Raises TypeError."""
    value = python_default(field)
    if value is MISSING:
        return MISSING
    document = json_of(value)
    if isinstance(document, dict) and "properties" in schema:
        return struct_default(schema, document)
    return MISSING if document is None or document in ("", [], {}) else document


def check_server_default(field: ModelField, document: Any, at: Place) -> None:
    """Refuse a default that nobody could have: it is not written, and the server would fill in its own."""
    own = python_default(field)
    if own is not MISSING and own is not None and json_of(own) != document:
        raise at.error(
            f"{own!r} is the default of the class and so is not written, and the server would fill in {document!r}: "
            "make it None, as in Annotated[int | None, ServerDefault(7)] = None"
        )


def struct_default(schema: dict[str, Any], value: dict[str, Any] | None = None) -> Any:
    """What is document of a struct by default, which holds the value, or nothing that its own fields do not say."""
    document = value or {}
    if _has_rules(schema):
        document = filled(schema, document)
    return document if document or _defaults_below(schema) else MISSING


def python_default(field: ModelField) -> Any:
    """What the attribute is by default. A factory that does not give the same twice gives nothing to tell."""
    if field.factory is None:
        return MISSING if field.default is msgspec.UNSET else field.default
    try:
        first, second = field.factory(), field.factory()
    except TypeError:  # one that wants to see the other fields, as pydantic has them
        return MISSING
    return first if first == second else MISSING


def json_of(value: Any) -> Any:
    """A Python value in JSON shape, sets in order."""
    if is_pydantic(type(value)):
        return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if isinstance(value, msgspec.Struct):
        value = sparse(value)
    document = msgspec.json.decode(msgspec.json.encode(value, enc_hook=encode_leaf, order="deterministic"))
    return _drop_nulls(document) if isinstance(document, dict) else document


def _drop_nulls(value: Any) -> Any:
    """What a struct has not set is not part of a default."""
    if isinstance(value, dict):
        return {name: _drop_nulls(item) for name, item in value.items() if item is not None}
    return value


def filled(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """A value with the defaults inside of it, as a server would set them."""
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
    """Why a value does not fit a schema; "" if it does, as far as is checked here: a server checks all."""
    if value is None:
        return "" if schema.get("nullable") or "type" not in schema else "it is null"
    if not is_of_type(schema, value):
        return f"{value!r} is no {schema.get('type', 'integer or string')}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is none of {', '.join(map(repr, schema['enum']))}"
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
    """Whether a value has the JSON type that a schema names."""
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
        return f"{value!r} is no multiple of {factor}"
    return ""


def _duplicate(schema: dict[str, Any], items: list[Any]) -> str:
    """What a list that merges holds twice."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            document = items
        case "map":
            keys, full = schema["x-kubernetes-list-map-keys"], [filled(schema["items"], item) for item in items]
            document = [{key: item.get(key) for key in keys} for item in full]
        case _:
            return ""
    twice = [item for i, item in enumerate(document) if item in document[:i]]
    return f"it has {twice[0]!r} twice" if twice else ""


def _string_mismatch(schema: dict[str, Any], value: str) -> str:
    if schema.get("format") == "date-time" and not _ZONE.search(value):
        return f"{value!r} names no time zone"
    if "pattern" in schema and not matches(schema["pattern"], value):
        return f"{value!r} does not match {schema['pattern']}"
    return _length_mismatch(schema, len(value), "Length")


def _length_mismatch(schema: dict[str, Any], length: int, word: str) -> str:
    if length < schema.get(f"min{word}", 0):
        return f"it has {length} of at least {schema[f'min{word}']}"
    if length > schema.get(f"max{word}", length):
        return f"it has {length} of at most {schema[f'max{word}']}"
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
