"""Conflicts between two strategic merge patches: fields that are set to different values."""

from __future__ import annotations

from typing import Any

from ostinato.api.equality import identical
from ostinato.api.patch.directives import MERGE, PATCH, REPLACE, RETAIN_KEYS
from ostinato.api.patch.errors import UnmergeablePatch
from ostinato.api.patch.go_values import go_string, go_value
from ostinato.api.patch.merge_order import element_type
from ostinato.api.patch.values import identity
from ostinato.api.schema import Schema


def has_conflicts(left: dict[str, Any], right: dict[str, Any], schema: Schema | None) -> bool:
    """Whether the patches set a field to different values."""
    if _directives_differ(left, right):
        return True
    for key, value in left.items():
        if key in (PATCH, RETAIN_KEYS) or key not in right:
            continue
        other = right[key]
        if type(value) is not type(other):
            return True
        field = None if schema is None else schema.field(key)
        strategies = frozenset() if field is None else field.patch_strategies
        if isinstance(value, dict):
            if REPLACE in strategies:  # replaced as a whole, so that fields cannot conflict
                if _directives_differ(value, other):
                    return True
            elif has_conflicts(value, other, field):
                return True
        elif isinstance(value, list):
            if _lists_conflict(value, other, field, merging=MERGE in strategies):
                return True
        elif not identical(value, other):
            return True
    return False


def _directives_differ(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return (PATCH in left) != (PATCH in right) or not identical(left.get(PATCH), right.get(PATCH))


def _lists_conflict(left: list[Any], right: list[Any], field: Schema | None, *, merging: bool) -> bool:
    kind = element_type(left, right)
    items = None if field is None else field.items
    if merging:
        if kind is not dict:
            return False  # unions of scalars cannot conflict
        merge_key = "" if field is None else field.patch_merge_key or ""
        others = _by_merge_key(right, merge_key)
        return any(
            key in others and has_conflicts(item, others[key], items)
            for key, item in _by_merge_key(left, merge_key).items()
        )
    if len(left) != len(right):
        return True
    if kind is dict:
        return any(has_conflicts(a, b, items) for a, b in zip(left, right, strict=True))
    return not identical(_sorted_set(left), _sorted_set(right))


def _by_merge_key(items: list[Any], merge_key: str) -> dict[str, dict[str, Any]]:
    for item in items:
        if merge_key not in item:
            raise UnmergeablePatch(f"cannot find merge key `{merge_key}` in merging list element:{go_value(item)}")
    return {go_string(item[merge_key]): item for item in items}


def _sorted_set(items: list[Any]) -> list[Any]:
    return sorted({identity(item): item for item in items}.values(), key=go_value)
