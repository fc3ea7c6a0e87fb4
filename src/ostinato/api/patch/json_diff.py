"""JSON patch (RFC 6902) from one document to another.

- Maps are compared by key. In lists, equal items at both ends are kept; in between, items are compared by index, and
  missing or additional ones are removed or added. This takes one pass, and a single inserted, removed or changed item
  is one operation, but the patch is not always the shortest.
- Values are equal if they have the same type: 1 and 1.0 need a `replace`.
- Operations are `add`, `remove` and `replace`; equal documents need none.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.equality import identical


def create_json_patch(original: Any, modified: Any) -> list[dict[str, Any]]:
    """Return the operations; they share values with `modified`."""
    operations: list[dict[str, Any]] = []
    _compare(original, modified, "", operations)
    return operations


def _compare(original: Any, modified: Any, path: str, operations: list[dict[str, Any]]) -> None:
    if type(original) is dict and type(modified) is dict:
        _compare_maps(original, modified, path, operations)
    elif type(original) is list and type(modified) is list:
        _compare_lists(original, modified, path, operations)
    elif not identical(original, modified):
        operations.append({"op": "replace", "path": path, "value": modified})


def _compare_maps(
    original: dict[str, Any], modified: dict[str, Any], path: str, operations: list[dict[str, Any]]
) -> None:
    for key, value in original.items():
        below = f"{path}/{_escaped(key)}"
        if key in modified:
            _compare(value, modified[key], below, operations)
        else:
            operations.append({"op": "remove", "path": below})
    for key, value in modified.items():
        if key not in original:
            operations.append({"op": "add", "path": f"{path}/{_escaped(key)}", "value": value})


def _compare_lists(original: list[Any], modified: list[Any], path: str, operations: list[dict[str, Any]]) -> None:
    shorter = min(len(original), len(modified))
    first = 0
    while first < shorter and identical(original[first], modified[first]):
        first += 1
    last = 0  # index from the end
    while last < shorter - first and identical(original[-1 - last], modified[-1 - last]):
        last += 1
    before, after = len(original) - last, len(modified) - last
    for index in range(first, min(before, after)):
        _compare(original[index], modified[index], f"{path}/{index}", operations)
    # From the end, so that the remaining indexes stay valid.
    operations += ({"op": "remove", "path": f"{path}/{index}"} for index in range(before - 1, after - 1, -1))
    operations += ({"op": "add", "path": f"{path}/{index}", "value": modified[index]} for index in range(before, after))


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
