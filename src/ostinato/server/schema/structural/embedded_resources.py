"""Validation of embedded resources (`x-kubernetes-embedded-resource`)."""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.gvk import GroupVersion
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.schema.structural.node import Structural

_TOP: Final = Path()


def embedded_faults(node: Structural, value: Any, path: Path = _TOP) -> list[FieldError]:
    """Validate the resources that are embedded in an object, or in the value at a path."""
    return _faults(node, value, path) if node.has_embedded else []


def _faults(node: Structural, value: Any, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if type(value) is dict:
        if node.embedded:
            errors += _resource(value, path)
        for name, item in value.items():
            below = node.child(name)
            if below is not None and below.has_embedded:
                errors += _faults(below, item, path.child(name) if name in node.properties else path.key(name))
    elif type(value) is list and node.items is not None and node.items.has_embedded:
        for i, item in enumerate(value):
            errors += _faults(node.items, item, path.index(i))
    return errors


def _resource(value: dict[str, Any], path: Path) -> list[FieldError]:
    errors = [FieldError.required(path.child(name)) for name in ("apiVersion", "kind") if name not in value]
    if "apiVersion" in value:
        errors += _api_version(value["apiVersion"], path.child("apiVersion"))
    if "kind" in value:
        errors += _kind(value["kind"], path.child("kind"))
    if isinstance(value.get("metadata"), dict):
        errors += _metadata(value["metadata"], path.child("metadata"))
    return errors


def _api_version(value: Any, path: Path) -> list[FieldError]:
    if not isinstance(value, str):
        return [FieldError.invalid(path, value, "must be a string")]
    if not value:
        return [FieldError.invalid(path, value, "must not be empty")]
    try:
        GroupVersion.parse(value)
    except ValueError as error:
        return [FieldError.invalid(path, value, str(error))]
    return []


def _kind(value: Any, path: Path) -> list[FieldError]:
    if not isinstance(value, str):
        return [FieldError.invalid(path, value, "must be a string")]
    if not value:
        return [FieldError.invalid(path, value, "must not be empty")]
    faults = names.is_dns1035_label(value.lower())
    if faults:
        detail = "may have mixed case, but should otherwise match: " + ",".join(faults)
        return [FieldError.invalid(path, value, detail)]
    return []


def _metadata(metadata: dict[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, prefix in (("generateName", True), ("name", False)):
        text = metadata.get(field, "")
        if text:
            errors += [
                FieldError.invalid(path.child(field), text, fault) for fault in names.name_is_path_segment(text, prefix)
            ]
    namespace = metadata.get("namespace", "")
    if namespace:
        errors += [
            FieldError.invalid(path.child("namespace"), namespace, fault) for fault in names.is_dns1123_label(namespace)
        ]
    errors += names.validate_labels(metadata.get("labels", {}), path.child("labels"))
    errors += names.validate_annotations(metadata.get("annotations", {}), path.child("annotations"))
    errors += names.validate_finalizers(metadata.get("finalizers", []), path.child("finalizers"))
    return errors
