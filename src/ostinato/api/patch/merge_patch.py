"""JSON merge patch (RFC 7386): maps are merged, null deletes, all other values are replaced, lists included.

As in kube-apiserver and kubectl, nulls in a new value are dropped, also in maps that are items of lists.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.equality import equal
from ostinato.api.patch.errors import MalformedPatch
from ostinato.api.patch.go_values import json_name


def merge_patch(original: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a merge patch and return the new object. Arguments are not modified, but shared."""
    if patch is None:
        raise MalformedPatch("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise MalformedPatch(
            f"error decoding patch: json: cannot unmarshal {json_name(patch)} "
            "into Go value of type map[string]interface {}"
        )
    return _merged(original, patch)


def _merged(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = original.copy()
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
            continue
        current = result.get(key)
        if not isinstance(current, dict):
            result[key] = _without_nulls(value)
        elif isinstance(value, dict):
            result[key] = _merged(current, value)
        else:
            result[key] = value
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():  # a comprehension would take a second frame per level
            if item is not None:
                kept[key] = _without_nulls(item)
        return kept
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(_without_nulls(item))  # noqa: PERF401
        return items
    return value


def create_merge_patch(original: dict[str, Any], modified: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch from one object to another; it shares values with `modified`.

    A null in `modified` cannot be expressed, as null in a merge patch deletes.
    """
    patch: dict[str, Any] = {}
    for key, value in modified.items():
        if key not in original:
            patch[key] = value
            continue
        current = original[key]
        if isinstance(current, dict) and isinstance(value, dict):
            below = create_merge_patch(current, value)
            if below:
                patch[key] = below
        elif not equal(current, value):
            patch[key] = value
    for key in original:
        if key not in modified:
            patch[key] = None
    return patch
