"""Validation of a version except for its schema: deprecation, subresources, printer columns, selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.text.go_format import json_text
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.apiextensions.validation.internal_form import Shown
from ostinato.server.resources.strategy import Json

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8


def deprecation_faults(version: Json, path: Path) -> list[FieldError]:
    text = version.get("deprecationWarning")
    if text is None:
        return []
    path = path.child("deprecationWarning")
    if not version.get("deprecated"):
        return [FieldError.invalid(path, Shown(json_text(text)), "can only be set for deprecated versions")]
    shown = Shown(json_text(text))
    errors = []
    if len(text.encode()) > 256:
        errors.append(FieldError.invalid(path, shown, "must be <= 256 characters long"))
    if not text:
        errors.append(FieldError.invalid(path, shown, "must not be an empty string"))
    for i, character in enumerate(text):
        if not character.isprintable():
            at = len(text[:i].encode())
            why = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            errors.append(FieldError.invalid(path, shown, why))
            break
    return errors


def subresource_faults(subresources: Json, path: Path) -> list[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return []
    errors: list[FieldError] = []
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        where = path.child(f"scale.{field}")
        text = scale.get(field, "")
        if not text:
            errors.append(FieldError.required(where))
        else:
            errors += _path_faults(text, where) or _root_faults(text, where, (root,), f"under {root}")
    selector = scale.get("labelSelectorPath")
    if selector:
        where = path.child("scale.labelSelectorPath")
        errors += _path_faults(selector, where) or _root_faults(
            selector, where, (".spec", ".status"), "under either .spec or .status"
        )
    return errors


def _path_faults(text: str, path: Path) -> list[FieldError]:
    if not text.startswith("."):
        return [FieldError.invalid(path, text, "must be a simple json path starting with .")]
    return []


def _root_faults(text: str, path: Path, roots: tuple[str, ...], where: str) -> list[FieldError]:
    if any(text.startswith(f"{root}.") for root in roots):
        return []
    return [FieldError.invalid(path, text, f"should be a json path {where}")]


def column_faults(column: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not column.get("name"):
        errors.append(FieldError.required(path.child("name")))
    allowed = f"must be one of {','.join(_COLUMN_TYPES)}"
    kind = column.get("type", "")
    if not kind:
        errors.append(FieldError.required(path.child("type"), allowed))
    elif kind not in _COLUMN_TYPES:
        errors.append(FieldError.invalid(path.child("type"), kind, allowed))
    format_ = column.get("format", "")
    if format_ and format_ not in _COLUMN_FORMATS:
        errors.append(FieldError.invalid(path.child("format"), format_, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    text = column.get("jsonPath", "")
    if not text:
        errors.append(FieldError.required(path.child("JSONPath")))
    else:
        errors += _path_faults(text, path.child("JSONPath"))
    return errors


def selectable_faults(fields: list[Json], schema: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, field in enumerate(fields):
        where = path.index(i).child("jsonPath")
        text = field.get("jsonPath", "")
        if not text:
            errors.append(FieldError.required(where))
            continue
        found, problem = _field_at(text, schema)
        if found is None:
            errors.append(FieldError.invalid(where, text, f"is an invalid path: {problem}"))
            continue
        if text.startswith(".metadata.") or text == ".metadata":
            errors.append(FieldError.invalid(where, text, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            errors.append(FieldError.invalid(where, text, why))
        if text in seen:
            errors.append(FieldError.duplicate(where, text))
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        errors.append(FieldError.too_many(path, len(seen), _MOST_SELECTABLE))
    return errors


def _field_at(text: str, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
    """The schema of the field at a simple path, or the error of the path."""
    if not text.startswith("."):
        return None, f"expected [ or . but got: {text.partition('.')[0]}"
    if "[" in text:
        return None, "array notation is not allowed"
    if text.endswith("."):
        return None, "unexpected end of JSON path"
    for name in text[1:].split("."):
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        if properties is not None:
            if name not in properties:
                return None, "does not refer to a valid field"
            schema = properties[name]
        elif additional is not None:
            schema = additional if isinstance(additional, Mapping) else {}
        else:
            return None, "does not refer to a valid field"
    return schema, ""
