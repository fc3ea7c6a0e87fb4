"""Scale fields of a custom resource, resolved by simple JSONPaths.

`subresources.scale` of a definition has the paths of replicas and label selector. Values must have the right type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.text.go_format import plain
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json


def scale_faults(scale: Mapping[str, str] | None, obj: Json) -> list[FieldError]:
    """Validate the fields that a Scale shows."""
    if scale is None:
        return []
    return _replicas_faults(obj, scale["specReplicasPath"]) + scale_status_faults(scale, obj)


def scale_status_faults(scale: Mapping[str, str] | None, obj: Json) -> list[FieldError]:
    """Validate the status fields that a Scale shows."""
    if scale is None:
        return []
    errors = _replicas_faults(obj, scale["statusReplicasPath"])
    if scale.get("labelSelectorPath"):
        errors += _type_faults(obj, scale["labelSelectorPath"], str, "string", "")
    return errors


def nested(obj: Any, path: str) -> tuple[Any, bool, str]:
    """Resolve a simple path: the value, whether it exists, and the error if the path cannot be resolved."""
    steps = path.removeprefix(".").split(".")
    for i, step in enumerate(steps):
        if obj is None:
            return None, False, ""
        if not isinstance(obj, dict):
            return None, False, _accessor_error("." + ".".join(steps[: i + 1]), obj, "map[string]interface{}")
        if step not in obj:
            return None, False, ""
        obj = obj[step]
    return obj, True, ""


def _type_faults(obj: Json, path: str, kind: type, go_type: str, zero: Any) -> list[FieldError]:
    value, found, problem = nested(obj, path)
    if not problem and found and type(value) is not kind:
        problem = _accessor_error(path, value, go_type)
    return [FieldError.invalid(Path(path), zero, problem)] if problem else []


_GO_TYPES = {
    type(None): "<nil>",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _accessor_error(path: str, value: Any, expected: str) -> str:
    return f"{path} accessor error: {_go_text(value)} is of the type {_GO_TYPES[type(value)]}, expected {expected}"


def _go_text(value: Any) -> str:
    """A value as Go prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_text(value[name])}' for name in sorted(value))}]"
    return plain(value)


def _replicas_faults(obj: Json, path: str) -> list[FieldError]:
    faults = _type_faults(obj, path, int, "int64", 0)
    if faults:
        return faults
    replicas = nested(obj, path)[0] or 0
    if replicas < 0:
        return [FieldError.invalid(Path(path), replicas, "should be a non-negative integer")]
    if replicas >= 1 << 31:
        return [FieldError.invalid(Path(path), replicas, f"should be less than or equal to {(1 << 31) - 1}")]
    return []
