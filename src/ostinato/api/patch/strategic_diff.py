"""Strategic merge patch from one object to another.

- A removed field becomes null; a removed item of a merged list becomes `$patch: delete`, or an entry of
  `$deleteFromPrimitiveList`.
- A changed merged list has its new order in `$setElementOrder`.
- Fields with the strategy retainKeys have `$retainKeys`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.equality import identical
from ostinato.api.patch.directives import (
    DELETE,
    DELETE_FROM_PRIMITIVE_LIST,
    MERGE,
    PATCH,
    REPLACE,
    RETAIN,
    RETAIN_KEYS,
    SET_ELEMENT_ORDER,
)
from ostinato.api.patch.errors import UnmergeablePatch
from ostinato.api.patch.go_values import go_value
from ostinato.api.patch.merge_order import (
    element_type,
    in_order,
    item_identity,
    merge_value,
)
from ostinato.api.schema import Schema


class Wanted(msgspec.Struct, frozen=True):
    """The parts of a difference to return."""

    changes: bool = True  # additions and changes
    deletions: bool = True
    order: bool = True  # `$setElementOrder`


def create_two_way_strategic(
    original: dict[str, Any], modified: dict[str, Any], schema: Schema | None
) -> dict[str, Any]:
    """Return the patch from `original` to `modified`; it shares values with `modified`.

    The patch of equal objects is {}, except for fields that kubectl repeats too: a field that is replaced as a whole,
    and a merged list of scalars that is not sorted.
    """
    return difference(original, modified, schema, Wanted())


def difference(
    original: dict[str, Any],
    modified: dict[str, Any],
    schema: Schema | None,
    wanted: Wanted,
    *,
    retaining: bool = False,
) -> dict[str, Any]:
    """Return the wanted parts of the patch from one map to another; `retaining`: with `$retainKeys`."""
    patch: dict[str, Any] = {}
    for key, value in modified.items():
        if key not in original:
            if wanted.changes:
                patch[key] = value
            continue
        current = original[key]
        if key == PATCH:
            _check_directive(current, value)
        field = None if schema is None else schema.field(key)
        strategies: frozenset[str] = frozenset() if field is None else field.patch_strategies
        if isinstance(value, dict) and isinstance(current, dict):
            if REPLACE in strategies:
                if wanted.changes:
                    patch[key] = value
            elif below := difference(current, value, field, wanted, retaining=RETAIN in strategies):
                patch[key] = below
        elif isinstance(value, list) and isinstance(current, list) and MERGE in strategies:
            patch |= _list_difference(key, current, value, field, wanted)
        elif wanted.changes and not identical(current, value):
            patch[key] = value
    gone = [key for key in original if key not in modified]
    if wanted.deletions:
        patch.update(dict.fromkeys(gone))
    if retaining and (patch or any(original[key] is not None for key in gone)):
        retained = sorted(key for key, value in modified.items() if value is not None)
        if retained:
            patch[RETAIN_KEYS] = retained
    return patch


def _check_directive(*directives: Any) -> None:
    if not all(isinstance(directive, str) for directive in directives):
        raise UnmergeablePatch(f"invalid value for special key: {PATCH}")


def _list_difference(
    key: str, original: list[Any], modified: list[Any], field: Schema | None, wanted: Wanted
) -> dict[str, Any]:
    """Return the patch of a merged list: items, deletions and order."""
    if not original:
        return {key: modified} if modified and wanted.changes else {}
    patch: dict[str, Any] = {}
    merge_key = "" if field is None else field.patch_merge_key or ""
    kind = element_type(original, modified)
    if kind is dict:
        items, deletions = _map_items(original, modified, field, merge_key, wanted)
        items = in_order(items, modified, merge_key, kind) + deletions
        changed = bool(items) or (wanted.changes and _reordered(original, modified, merge_key))
        order: list[Any] = [{merge_key: item[merge_key]} for item in modified]
    else:
        items, deletions = _scalar_items(original, modified, wanted)
        items = in_order(items, modified, merge_key, kind)
        if deletions:
            patch[f"{DELETE_FROM_PRIMITIVE_LIST}/{key}"] = deletions
        # kubectl compares with the sorted original, and so sends the order of every unsorted list
        changed = bool(deletions) or (wanted.changes and not identical(sorted(original, key=go_value), modified))
        order = modified
    if items:
        patch[key] = items
    if wanted.order and changed and order:
        patch[f"{SET_ELEMENT_ORDER}/{key}"] = order
    return patch


def _reordered(original: list[Any], modified: list[Any], merge_key: str) -> bool:
    before = [item_identity(item, merge_key) for item in original]
    return before != [item_identity(item, merge_key) for item in modified]


def _map_items(
    original: list[Any], modified: list[Any], field: Schema | None, merge_key: str, wanted: Wanted
) -> tuple[list[Any], list[Any]]:
    """Return the changed items of a list of maps, and the deletions.

    Items are matched in the order of their merge keys, so that items with equal keys are paired.
    """
    schema = None if field is None else field.items
    retaining = field is not None and RETAIN in field.patch_strategies
    items: list[Any] = []
    deletions: list[Any] = []
    before = _keyed(original, merge_key)
    after = _keyed(modified, merge_key)
    old = new = 0
    while old < len(before) or new < len(after):
        if new == len(after) or (old < len(before) and before[old][0] < after[new][0]):
            if wanted.deletions:
                deletions.append({merge_key: before[old][1][merge_key], PATCH: DELETE})
            old += 1
        elif old == len(before) or before[old][0] > after[new][0]:
            if wanted.changes:
                items.append(after[new][1])
            new += 1
        else:
            item = after[new][1]
            changes = difference(before[old][1], item, schema, wanted, retaining=retaining)
            if changes:
                changes[merge_key] = item[merge_key]
                items.append(changes)
            old += 1
            new += 1
    return items, deletions


def _keyed(items: list[Any], merge_key: str) -> list[tuple[str, dict[str, Any]]]:
    keyed = [(go_value(merge_value(item, merge_key)), item) for item in items]
    keyed.reverse()  # kubectl's sort reverses items with the same key, such as a port for TCP and UDP
    keyed.sort(key=lambda entry: entry[0])
    return keyed


def _scalar_items(original: list[Any], modified: list[Any], wanted: Wanted) -> tuple[list[Any], list[Any]]:
    """Return the added items of a list of scalars, with repetitions, and the removed ones."""
    before = sorted(original, key=go_value)
    after = sorted(modified, key=go_value)
    gained: list[Any] = []
    lost: dict[str, Any] = {}
    old = new = 0
    while old < len(before) or new < len(after):
        left = go_value(before[old]) if old < len(before) else None
        right = go_value(after[new]) if new < len(after) else None
        if left == right:
            old += 1
            new += 1
        elif left is None or (right is not None and left > right):
            gained.append(after[new])
            new += 1
        else:
            lost[left] = before[old]
            old += 1
    return gained if wanted.changes else [], list(lost.values()) if wanted.deletions else []
