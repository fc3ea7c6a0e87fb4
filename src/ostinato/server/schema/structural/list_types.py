"""Lists of type set and map: duplicate items and keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ostinato.api.text.go_format import json_text
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.schema.structural.node import Structural


def duplicates(node: Structural, value: dict[str, Any]) -> list[FieldError]:
    """The duplicates in sets and maps of an object."""
    return _duplicates(node, value, Path()) if node.unique_below else []


def _duplicates(node: Structural, value: Any, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if type(value) is dict:
        for name, item in value.items():
            below = node.child(name)
            if below is not None and below.unique_below and (type(item) is dict or type(item) is list):
                errors += _duplicates(below, item, path.child(name) if name in node.properties else path.key(name))
    elif type(value) is list:
        if node.list_type == "set":
            errors += [FieldError.duplicate(path.index(i), value[i]) for i in _duplicate_indexes(value)]
        elif node.list_type == "map":
            errors += _duplicate_keys(node, value, path)
        if node.items is not None and node.items.unique_below:
            for i, item in enumerate(value):
                errors += _duplicates(node.items, item, path.index(i))
    return errors


def _duplicate_indexes(values: list[Any]) -> Iterator[int]:
    """The indexes at which a value occurs for the second time; further duplicates are not reported."""
    times: dict[tuple[type, Any], int] = {}
    for i, value in enumerate(values):
        key = (type(value), json_text(value) if type(value) is dict or type(value) is list else value)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            yield i


def _duplicate_keys(node: Structural, value: list[Any], path: Path) -> list[FieldError]:
    for i, item in enumerate(value):
        if item is not None and type(item) is not dict:
            return [FieldError.invalid(path.index(i), item, "must be an object for an array of list-type map")]
    keys = [{name: item[name] for name in node.keys if name in item} if item else {} for item in value]
    return [FieldError.duplicate(path.index(i), keys[i]) for i in _duplicate_indexes(keys)]
