"""Order of merged lists in strategic merge patches, and requirements for their items.

- Items of the patch keep its order; items that only the object has keep the order of the object. They are interleaved:
  an item of the object is placed before one of the patch only if it was before it in the object. New items are first.
- Merged lists contain scalars, or maps identified by a merge key; `merge_key` is "" for scalars.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ostinato.api.patch.directives import DELETE, PATCH, SET_ELEMENT_ORDER
from ostinato.api.patch.errors import InapplicablePatch, UnmergeablePatch
from ostinato.api.patch.go_values import go_type, go_value
from ostinato.api.patch.values import identity

_INSERTION_SORTED = 20  # Go sorts lists up to this length by insertion, which is visible for items without an order


def wrong_type(expected: type[dict[str, Any] | list[Any]], actual: Any) -> UnmergeablePatch:
    return UnmergeablePatch(f"expected a {go_type(expected())}, but received a {go_type(actual)}")


def no_merge_key(item: dict[str, Any], merge_key: str) -> UnmergeablePatch:
    return UnmergeablePatch(f"map: {go_value(item)} does not contain declared merge key: {merge_key}")


def element_type(*lists: list[Any]) -> type:
    """Return the type of all items. Mixed types, lists of lists and empty lists cannot be merged."""
    found: type | None = None
    for items in lists:
        for item in items:
            kind = type(item)
            if found is None:
                if kind is list:
                    raise InapplicablePatch("lists of lists are not supported")
                found = kind
            if kind is not found or item is None:
                raise UnmergeablePatch(f"list element types are not identical: {go_value(list(lists))}")
    if found is None:
        raise UnmergeablePatch("no elements in any of the given slices")
    return found


def merge_value(item: Any, merge_key: str) -> Any:
    """Return the value of the merge key of an item."""
    if not isinstance(item, dict):
        raise wrong_type(dict, item)
    if merge_key not in item:
        raise no_merge_key(item, merge_key)
    return item[merge_key]


def item_identity(item: Any, merge_key: str) -> Hashable:
    return identity(merge_value(item, merge_key) if merge_key else item)


def is_deletion(item: Any) -> bool:
    """Whether an item of a patch has `$patch: delete`."""
    if not isinstance(item, dict):
        raise wrong_type(dict, item)
    return item.get(PATCH) == DELETE


def positions(items: list[Any], merge_key: str) -> dict[Hashable, int]:
    """Return the index of each item; of equal items, of the first."""
    found: dict[Hashable, int] = {}
    for position, item in enumerate(items):
        found.setdefault(item_identity(item, merge_key), position)
    return found


def partition(items: list[Any], by: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Split a list into the items that are in another list, and the others."""
    named: set[Hashable] = set()
    no_map: int | None = None  # index of an item of the other list that is not a map
    for position, item in enumerate(by):
        if not merge_key:
            named.add(identity(item))
        elif not isinstance(item, dict):
            no_map = position
            break
        elif merge_key in item:
            named.add(identity(item[merge_key]))
    inside: list[Any] = []
    outside: list[Any] = []
    for item in items:
        if item_identity(item, merge_key) in named:
            inside.append(item)
        elif no_map is None:
            outside.append(item)
        else:
            raise UnmergeablePatch(f"value for key {no_map} is not a map")
    return inside, outside


def in_order(items: list[Any], order: list[Any], merge_key: str, kind: type) -> list[Any]:
    """Sort items by their order in another list; items to delete are last."""
    deletions: list[Any] = []
    if kind is dict:
        for item in (*items, *order):
            merge_value(item, merge_key)
        deletions = [item for item in items if is_deletion(item)]
        if deletions:
            items = [item for item in items if not is_deletion(item)]
    if len(items) < 2:
        return items + deletions
    key = merge_key if kind is dict else ""
    place = positions(order, key)
    ranked = [(place.get(item_identity(item, key)), item) for item in items]
    return [item for _, item in _sorted(ranked)] + deletions


def _sorted(ranked: list[tuple[int | None, Any]]) -> list[tuple[int | None, Any]]:
    """Stable sort; an item without a rank compares less than every other, and every other less than it."""
    if len(ranked) > _INSERTION_SORTED or all(rank is not None for rank, _ in ranked):
        return sorted(ranked, key=lambda entry: -1 if entry[0] is None else entry[0])
    result: list[tuple[int | None, Any]] = []
    for entry in ranked:
        place = len(result)
        while place and _less(entry[0], result[place - 1][0]):
            place -= 1
        result.insert(place, entry)
    return result


def _less(left: int | None, right: int | None) -> bool:
    return left is None or right is None or left < right


def interleaved(
    patched: list[Any],
    only_in_object: list[Any],
    patch_order: list[Any],
    object_order: list[Any],
    *,
    merge_key: str,
    kind: type,
) -> list[Any]:
    """Sort the items of the patch, and those of the object only, each by its own order, and interleave them."""
    patched = in_order(patched, patch_order, merge_key, kind)
    only_in_object = in_order(only_in_object, object_order, merge_key, kind)
    if not patched or not only_in_object:
        return patched or only_in_object
    key = merge_key if kind is dict else ""
    place = positions(object_order, key)
    right = [(place.get(item_identity(item, key)), item) for item in patched]
    result: list[Any] = []
    taken = 0
    for item in only_in_object:
        rank = place.get(item_identity(item, key))
        while taken < len(right) and not _precedes(rank, right[taken][0]):
            result.append(right[taken][1])
            taken += 1
        result.append(item)
    result.extend(item for _, item in right[taken:])
    return result


def _precedes(left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and left < right


def check_element_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Check that the items of a patch have the order of its `$setElementOrder`, without additional ones."""
    if not order or not patch:
        return
    items = [item for item in patch if not is_deletion(item)] if merge_key else patch
    position = 0
    for ordered in order:
        while position < len(items) and isinstance(items[position], dict) and PATCH in items[position]:
            position += 1
        if position == len(items):
            return
        if item_identity(items[position], merge_key) == item_identity(ordered, merge_key):
            position += 1
    if position < len(items):
        raise UnmergeablePatch(
            f"The order in patch list:\n{go_value(patch)}\n "
            f"doesn't match {SET_ELEMENT_ORDER} list:\n{go_value(order)}\n"
        )
