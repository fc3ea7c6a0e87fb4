"""Functions of lists, sets, maps and optional values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from ostinato.cel.libraries.arithmetic import unsigned, whole
from ostinato.cel.values import (
    NONE,
    CelError,
    CostExceededError,
    Duration,
    Optional,
    equal,
    type_name,
    zero,
)

_MOST_MADE: Final = 1_000_000  # items of lists.range


def contains(items: list[Any], value: Any) -> bool:
    """Whether a list contains a value."""
    return any(equal(item, value) for item in items)


def _contains_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


def _equivalent(a: list[Any], b: list[Any]) -> bool:
    return _contains_all(a, b) and _contains_all(b, a)


def _intersects(a: list[Any], b: list[Any]) -> bool:
    return any(contains(b, item) for item in a)


def _is_sorted(items: list[Any]) -> bool:
    try:
        return not any(after < before for before, after in pairwise(items))
    except TypeError:  # values that cannot be compared count as sorted
        return True


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def function(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        return choose(items)

    return function


def _index_of(items: list[Any], value: Any) -> int:
    return next((i for i, item in enumerate(items) if equal(item, value)), -1)


def _last_index_of(items: list[Any], value: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if equal(items[i], value)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    why = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise CelError(why + "negative indexes not supported")
    if start > end:
        raise CelError(why + "start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"{why}list is length {len(items)}")
    return items[start:end]


def _flat(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        if type(item) is list and depth > 0:
            found += _flat(item, depth - 1)
        else:
            found.append(item)
    return found


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    seen: set[Any] = set()
    for item in items:
        if type(item) is str:
            if item in seen:
                continue
            seen.add(item)
        elif contains(found, item):
            continue
        found.append(item)
    return found


def _range(count: int) -> list[int]:
    if count > _MOST_MADE:
        raise CostExceededError
    return list(range(max(count, 0)))


def _sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        raise CelError(
            f"@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(items)} and {len(keys)} elements respectively"
        )
    if len({type_name(key) for key in keys}) > 1:
        raise CelError("list elements must have the same type")
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[i] for i in order]


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _inserted(entries: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in entries:
        raise CelError(f"insert failed: key {key} already exists")
    return {**entries, key: value}


def _merged(entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        entries = _inserted(entries, key, value)
    return entries


def _unwrapped(items: list[Any]) -> list[Any]:
    return [item.value for item in items if item.present]


_TYPES: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SORTED: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "in_list": lambda value, items: contains(items, value),
    "in_map": lambda value, entries: value in entries,
    "list_sets_contains_list": _contains_all,
    "list_sets_equivalent_list": _equivalent,
    "list_sets_intersects_list": _intersects,
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _TYPES},
    **{f"list_{name}_max_{name}": _extreme(max, "max") for name in _TYPES},
    **{f"list_{name}_min_{name}": _extreme(min, "min") for name in _TYPES},
    **{f"list_{name}_sort": sorted for name in _SORTED},
    **{f"list_{name}_sortByAssociatedKeys": _sorted_by for name in _SORTED},
    "list_int_sum_int": lambda items: whole(sum(items)),
    "list_uint_sum_uint": lambda items: unsigned(sum(items)),
    "list_double_sum_double": lambda items: float(sum(items)),
    "list_duration_sum_duration": lambda items: Duration(sum(item.ns for item in items)),
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_distinct": _distinct,
    "list_first": lambda items: Optional(items[0]) if items else NONE,
    "list_last": lambda items: Optional(items[-1]) if items else NONE,
    "list_flatten": _flat,
    "list_flatten_int": _flat,
    "list_reverse": lambda items: items[::-1],
    "list_slice": _slice,
    "lists_range": _range,
    "@mapInsert_map_key_value": _inserted,
    "@mapInsert_map_map": _merged,
    "optional_none": lambda: NONE,
    "optional_of": Optional,
    "optional_ofNonZeroValue": lambda value: NONE if zero(value) else Optional(value),
    "optional_hasValue": lambda optional: optional.present,
    "optional_value": _value,
    "optional_or_optional": lambda optional, other: optional if optional.present else other,
    "optional_orValue_value": lambda optional, other: optional.value if optional.present else other,
    "optional_unwrap": _unwrapped,
    "optional_unwrapOpt": _unwrapped,
}
