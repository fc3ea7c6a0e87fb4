"""The JSON patch (RFC 6902) that turns one document into another.

- Maps are compared key by key. In lists, what is equal at both ends stays; in between, items are compared by their
  place, and those that are too many or too few are removed or added. That is not always the shortest patch, but it is
  found in one pass, and an item put in, taken out or changed anywhere is told as just that.
- Values are equal if they are of one type: 1 becomes 1.0 by a `replace`.
- Only `add`, `remove` and `replace` are used, and a document that is equal needs no operation.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.patch.values import same


def create_json_patch(original: Any, modified: Any) -> list[dict[str, Any]]:
    """The operations in order. They share values with `modified`."""
    operations: list[dict[str, Any]] = []
    _compare(original, modified, "", operations)
    return operations


def _compare(original: Any, modified: Any, path: str, operations: list[dict[str, Any]]) -> None:
    if type(original) is dict and type(modified) is dict:
        _compare_maps(original, modified, path, operations)
    elif type(original) is list and type(modified) is list:
        _compare_lists(original, modified, path, operations)
    elif not same(original, modified):
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
    while first < shorter and same(original[first], modified[first]):
        first += 1
    last = 0  # counted from the end
    while last < shorter - first and same(original[-1 - last], modified[-1 - last]):
        last += 1
    before, after = len(original) - last, len(modified) - last
    for index in range(first, min(before, after)):
        _compare(original[index], modified[index], f"{path}/{index}", operations)
    # From the end, so that what is still to go keeps its place.
    operations += ({"op": "remove", "path": f"{path}/{index}"} for index in range(before - 1, after - 1, -1))
    operations += ({"op": "add", "path": f"{path}/{index}", "value": modified[index]} for index in range(before, after))


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
