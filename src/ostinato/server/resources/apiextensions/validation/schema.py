"""Validation of a definition's schema: unsupported keywords, list and map types.

Further validation: structural schema (`structural`), defaults (`defaults`), CEL rules (`cel_rules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.apiextensions.validation.cel_rules import expression_faults, text_faults
from ostinato.server.resources.apiextensions.validation.defaults import default_faults
from ostinato.server.resources.apiextensions.validation.internal_form import shown_schema
from ostinato.server.resources.apiextensions.validation.structural import structural_faults
from ostinato.server.schema.rules.evaluation import has_rules
from ostinato.server.schema.structural.node import TYPE_FIELDS

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
# Keywords allowed at the root beside a status subresource, and their names in kube-apiserver.
_AT_ROOT = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
# JSON Schema keywords that structural schemas do not support.
_UNSUPPORTED = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}
_FORBIDDEN = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


def schema_faults(schema: Schema, path: Path, *, status: bool) -> list[FieldError]:
    """Validate the schema of a version; `path` is that of the parent of `openAPIV3Schema`."""
    where = path.child("openAPIV3Schema")
    errors = _root_faults(schema, path) if status else []
    if schema.get("nullable"):
        errors.append(
            FieldError.forbidden(path.child("openAPIV3Schema.nullable"), "nullable cannot be true at the root")
        )
    unreadable = _unreadable(schema)
    faults = [] if unreadable else structural_faults(schema, where) or default_faults(schema, where)
    words = _word_faults(schema, where, _Place(), root=True)
    errors += faults + words
    if not unreadable and not faults and has_rules(schema):
        errors += expression_faults(schema, where, lambda at, path: not words or not _word_faults(at, path, _Place()))
    if not errors and unreadable:
        errors.append(FieldError.invalid(where, "", unreadable))
    return errors


def _root_faults(schema: Schema, path: Path) -> list[FieldError]:
    errors = []
    first = any(schema.get(name) for name in ("id", "$schema", "$ref"))  # forbidden, and reported before the type
    if schema.get("type") and schema["type"] != "object" and not first:
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        errors.append(FieldError.invalid(path.child("openAPIV3Schema.type"), schema["type"], why))
    elif any(name not in _AT_ROOT for name in schema):
        why = (
            f"only [{' '.join(_AT_ROOT.values())}] fields are allowed at the root of the schema if the status "
            "subresource is enabled"
        )
        errors.append(FieldError.invalid(path.child("openAPIV3Schema"), shown_schema(schema), why))
    return errors


def _unreadable(schema: Schema) -> str:
    """Why a schema cannot be parsed as a structural schema; "" if it can."""
    for name, name_in_message in _UNSUPPORTED.items():
        if schema.get(name) not in (None, "", {}):
            return f"OpenAPIV3Schema '{name_in_message}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for below in subschemas(schema):
        why = _unreadable(below)
        if why:
            return why
    return ""


def subschemas(schema: Schema) -> list[Schema]:
    """The direct subschemas of a schema."""
    found = [schema.get(name) for name in ("items", "not", "additionalProperties")]
    found += [item for name in ("allOf", "anyOf", "oneOf") for item in schema.get(name) or ()]
    found += (schema.get("properties") or {}).values()
    return [item for item in found if isinstance(item, Mapping)]


class _Place(NamedTuple):
    """The position of a schema node, and what it forbids."""

    no_defaults: str = ""  # why defaults are forbidden
    in_metadata: bool = False


def _word_faults(schema: Schema, path: Path, place: _Place, *, root: bool = False) -> list[FieldError]:
    errors = _own_faults(schema, path, place)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(FieldError.forbidden(path.child("uniqueItems"), why))
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    if additional is not None and properties and additional is not True:
        errors.append(
            FieldError.forbidden(
                path.child("additionalProperties"), "additionalProperties and properties are mutual exclusive"
            )
        )
    if isinstance(additional, Mapping):
        inside = place
        if place.in_metadata:
            inside = place._replace(no_defaults="inside additionalProperties applying to object metadata")
        errors += _word_faults(additional, path.child("additionalProperties"), inside)
    for name, below in properties.items():
        inside = place
        if (root or schema.get("x-kubernetes-embedded-resource")) and name in TYPE_FIELDS:
            inside = place._replace(in_metadata=True)
            if root:
                inside = inside._replace(no_defaults=f"in top-level {name}")
        errors += _word_faults(below, path.child("properties").key(name), inside)
    if schema.get("not") is not None:
        errors += _word_faults(schema["not"], path.child("not"), place)
    for junctor in ("allOf", "oneOf", "anyOf"):
        for i, below in enumerate(schema.get(junctor) or ()):
            errors += _word_faults(below, path.child(junctor).index(i), place)
    for name, below in (schema.get("definitions") or {}).items():
        errors += _word_faults(below, path.child("definitions").key(name), place)
    items = schema.get("items")
    if isinstance(items, Mapping):
        errors += _word_faults(items, path.child("items"), place)
    for i, below in enumerate(items if isinstance(items, list) else ()):
        errors += _word_faults(below, path.child("items").index(i), place)
    for name, below in (schema.get("dependencies") or {}).items():
        if isinstance(below, Mapping):
            errors += _word_faults(below, path.child("dependencies").key(name), place)
    return errors + _extension_faults(schema, path) + text_faults(schema, path, lambda at: not _unreadable(at))


def _own_faults(schema: Schema, path: Path, place: _Place) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        errors.append(FieldError.not_supported(path.child("type"), kind, _TYPES))
    if schema.get("default") is not None and place.no_defaults:
        errors.append(FieldError.forbidden(path.child("default"), f"must not be set {place.no_defaults}"))
    errors += [
        FieldError.forbidden(path.child(word), f"{word} is not supported")
        for word in _FORBIDDEN
        if schema.get(word) not in (None, "", {})
    ]
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        errors.append(FieldError.forbidden(path.child("type"), why))
    if isinstance(schema.get("items"), list) and schema["items"]:
        why = "items must be a schema object and not an array"
        errors.append(FieldError.forbidden(path.child("items"), why))
    if place.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        where = path.child("x-kubernetes-embedded-resource")
        errors.append(FieldError.forbidden(where, "must not be used inside of resource meta"))
    return errors


def _extension_faults(schema: Schema, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    if preserve is False:
        where = path.child("x-kubernetes-preserve-unknown-fields")
        errors.append(FieldError.invalid(where, preserve, "must be true or undefined"))
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        errors += _type_faults(schema, path, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            where = path.child("x-kubernetes-map-type")
            errors.append(FieldError.not_supported(where, map_type, ("atomic", "granular")))
    return errors + _list_faults(schema, path)


def _type_faults(schema: Schema, path: Path, wanted: str, because: str) -> list[FieldError]:
    kind = schema.get("type")
    why = f"must be {wanted} if {because} is specified"
    if not kind:
        return [FieldError.required(path.child("type"), why)]
    return [] if kind == wanted else [FieldError.invalid(path.child("type"), kind, why)]


def _list_faults(schema: Schema, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), Mapping) else None
    where = path.child("x-kubernetes-list-type")
    if list_type is not None:
        wrong = _type_faults(schema, path, "array", "x-kubernetes-list-type")
        errors += wrong
        if not wrong and list_type == "set" and items is not None:
            errors += _set_faults(items, path.child("items"))
        if list_type not in ("atomic", "set", "map"):
            errors.append(FieldError.not_supported(where, list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        errors.append(
            FieldError.required(where, why) if list_type is None else FieldError.invalid(where, list_type, why)
        )
    if list_type == "map":
        errors += _map_faults(schema, keys, items, path)
    if list_type in ("set", "map") and items is not None:
        errors += _item_faults(items, list_type, keys, path.child("items"))
    return errors


def _set_faults(items: Schema, path: Path) -> list[FieldError]:
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        return [FieldError.invalid(path.child("x-kubernetes-list-type"), list_type, why)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [FieldError.invalid(path.child("x-kubernetes-map-type"), list_type, why)]
    return []


def _map_faults(schema: Schema, keys: list[str], items: Schema | None, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    where = path.child("x-kubernetes-list-map-keys")
    if not keys:
        errors.append(FieldError.required(where, "must not be empty if x-kubernetes-list-type is map"))
    if schema.get("items") is None:
        errors.append(FieldError.required(path.child("items"), "must have a schema if x-kubernetes-list-type is map"))
    if items is None:
        return errors
    at = path.child("items")
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, FieldError.invalid(at.child("type"), items.get("type", ""), why)]
    for i, key in enumerate(keys):
        below = (items.get("properties") or {}).get(key)
        if below is None:
            errors.append(FieldError.invalid(where, keys, "entries must all be names of item properties"))
        elif below.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(FieldError.invalid(at.child("properties").key(key).child("type"), items["type"], why))
        if key in keys[:i]:
            errors.append(FieldError.invalid(where, keys, "must not contain duplicate entries"))
    return errors


def _item_faults(items: Schema, list_type: str, keys: list[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if items.get("nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(FieldError.forbidden(path.child("nullable"), why))
    for key in keys if list_type == "map" else ():
        below = (items.get("properties") or {}).get(key)
        if below is None:
            continue
        at = path.child("properties").key(key)
        because = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and below.get("default") is None:
            errors.append(
                FieldError.required(at.child("default"), f"{because} must have a default or be a required property")
            )
        if below.get("nullable"):
            errors.append(FieldError.forbidden(at.child("nullable"), f"{because} cannot be nullable"))
    return errors
