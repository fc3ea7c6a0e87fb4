"""Validation that a schema is structural: each field has one type, declared outside of junctors.

The structural part declares which fields exist (for pruning and defaulting); `allOf`, `anyOf`, `oneOf` and `not` only
restrict their values (for validation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.text.patterns import pattern_problem
from ostinato.api.validation.field_errors import FieldError, Path

Schema = Mapping[str, Any]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_PLACES = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
_INSIDE_JUNCTORS = (  # keywords that are forbidden there, and how they must be written
    ("title", "must be empty"),
    ("description", "must be empty"),
    ("nullable", "must be false"),
    ("x-kubernetes-preserve-unknown-fields", "must be false"),
    ("x-kubernetes-embedded-resource", "must be false"),
    ("x-kubernetes-int-or-string", "must be false"),
    ("x-kubernetes-list-map-keys", "must be empty"),
    ("x-kubernetes-list-type", "must be undefined"),
    ("x-kubernetes-map-type", "must be undefined"),
    ("x-kubernetes-validations", "must be empty"),
)


def structural_faults(schema: Schema, path: Path) -> list[FieldError]:
    """Why a schema is not structural, in the order of kube-apiserver's messages."""
    return sorted([*_invariants(schema, "root", path), *_incomplete(schema, schema, path, path)], key=str)


def _invariants(schema: Schema, level: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    items, properties = schema.get("items"), schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        errors.append(FieldError.required(path.child("items"), "must be specified"))
    if isinstance(items, Mapping):
        errors += _invariants(items, "item", path.child("items"))
    for name, below in properties.items():
        errors += _invariants(below, "field", path.child("properties").key(name))
    if additional is not None and level == "root":
        errors.append(FieldError.forbidden(path.child("additionalProperties"), "must not be used at the root"))
    if isinstance(additional, Mapping):
        errors += _invariants(additional, "field", path.child("additionalProperties"))
    errors += _extensions(schema, path)
    first = (schema.get("allOf") or [{}])[0]
    errors += _validations(
        schema, path, skip_any=schema.get("anyOf") == _INT_OR_STRING, skip_first=first.get("anyOf") == _INT_OR_STRING
    )
    return errors + _type_faults(schema, level, path) + _metadata_faults(schema, level, path)


def _extensions(schema: Schema, path: Path) -> list[FieldError]:
    if not schema.get("x-kubernetes-int-or-string"):
        return []
    return [
        FieldError.invalid(path.child(name), schema[name], "must be false if x-kubernetes-int-or-string is true")
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
        if schema.get(name)
    ]


def _type_faults(schema: Schema, level: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    kind: str = schema.get("type", "")
    embedded = schema.get("x-kubernetes-embedded-resource")
    where = path.child("type")
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(FieldError.invalid(where, kind, why) if kind else FieldError.required(where, why))
    elif (
        not kind
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        errors.append(FieldError.required(where, f"must not be empty {_PLACES[level]}"))
    if embedded and schema.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(FieldError.forbidden(path.child("additionalProperties"), why))
    if level == "root" and kind and kind != "object":
        errors.append(FieldError.invalid(where, kind, "must be object at the root"))
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        errors.append(FieldError.required(path.child("properties"), why))
    return errors


def _metadata_faults(schema: Schema, level: str, path: Path) -> list[FieldError]:
    """Validate kind, apiVersion and metadata at the root: of metadata, only names may be restricted."""
    errors: list[FieldError] = []
    properties = schema.get("properties") or {}
    at = path.child("properties")
    resource = level == "root" or schema.get("x-kubernetes-embedded-resource")
    for name in ("kind", "apiVersion"):
        kind = properties.get(name, {}).get("type", "")
        if name in properties and resource and kind != "string":
            errors.append(FieldError.invalid(at.key(name).child("type"), kind, "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return errors
    if resource and metadata.get("type") != "object":
        errors.append(FieldError.invalid(at.key("metadata").child("type"), metadata.get("type", ""), "must be object"))
    if level == "root":
        keywords = {name for name, value in metadata.items() if value not in (None, "", [], {})} - {"type", "default"}
        if keywords - {"properties"} or not set(metadata.get("properties") or ()) <= {"name", "generateName"}:
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(FieldError.forbidden(at.key("metadata"), why))
    return errors


def _validations(schema: Schema, path: Path, *, skip_any: bool = False, skip_first: bool = False) -> list[FieldError]:
    """Validate the junctors of a node; two patterns of int-or-string are allowed."""
    errors: list[FieldError] = []
    if not skip_any:
        for i, below in enumerate(schema.get("anyOf") or ()):
            errors += _nested(below, path.child("anyOf").index(i))
    for i, below in enumerate(schema.get("allOf") or ()):
        errors += _nested(below, path.child("allOf").index(i), skip_any=skip_first and i == 0)
    for i, below in enumerate(schema.get("oneOf") or ()):
        errors += _nested(below, path.child("oneOf").index(i))
    if schema.get("not") is not None:
        errors += _nested(schema["not"], path.child("not"))
    expression = schema.get("pattern")
    problem = pattern_problem(expression) if expression else ""
    if problem:
        why = f"must be a valid regular expression, but isn't: {problem}"
        errors.append(FieldError.invalid(path.child("pattern"), expression, why))
    return errors


def _nested(schema: Schema, path: Path, *, skip_any: bool = False) -> list[FieldError]:
    """Validate a schema inside a junctor: it may only restrict values."""
    errors = _validations(schema, path, skip_any=skip_any)
    if isinstance(schema.get("items"), Mapping):
        errors += _nested(schema["items"], path.child("items"))
    properties = schema.get("properties") or {}
    for name, below in properties.items():
        errors += _nested(below, path.child("properties").key(name))
    if schema.get("type"):
        errors.append(FieldError.forbidden(path.child("type"), "must be empty to be structural"))
    if schema.get("additionalProperties") not in (None, False):
        errors.append(FieldError.forbidden(path.child("additionalProperties"), "must be undefined to be structural"))
    if schema.get("default") is not None:
        errors.append(FieldError.forbidden(path.child("default"), "must be undefined to be structural"))
    errors += [
        FieldError.forbidden(path.child(name), f"{wanted} to be structural")
        for name, wanted in _INSIDE_JUNCTORS
        if schema.get(name)
    ]
    if "metadata" in properties:
        where = path.child("properties").key("metadata")
        errors.append(FieldError.forbidden(where, "must not be specified in a nested context"))
    return errors


def _incomplete(part: Schema, whole: Schema, path: Path, part_path: Path) -> list[FieldError]:
    """Validate that fields in junctors are declared in the structural part, too."""
    errors: list[FieldError] = []
    if part.get("not") is not None:
        errors += _incomplete_nested(part["not"], whole, path, part_path.child("not"))
    for junctor in ("allOf", "anyOf", "oneOf"):
        for i, below in enumerate(part.get(junctor) or ()):
            errors += _incomplete_nested(below, whole, path, part_path.child(junctor).index(i))
    return errors


def _incomplete_nested(part: Schema, whole: Schema | None, path: Path, part_path: Path) -> list[FieldError]:
    if whole is None:
        return [FieldError.required(path, f"because it is defined in {part_path}")]
    errors = _incomplete(part, whole, path, part_path)
    if isinstance(part.get("items"), Mapping):
        items = whole.get("items") if isinstance(whole.get("items"), Mapping) else None
        errors += _incomplete_nested(part["items"], items, path.child("items"), part_path.child("items"))
    for name, below in (part.get("properties") or {}).items():
        known = (whole.get("properties") or {}).get(name)
        at, part_at = path.child("properties").key(name), part_path.child("properties").key(name)
        errors += _incomplete_nested(below, known, at, part_at)
    return errors
