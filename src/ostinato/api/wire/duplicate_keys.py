"""Duplicate keys in JSON objects, decoded as Go decodes them into structs.

The second value is decoded into the first: members of structs and maps are merged, lists are merged by index, other
values are replaced.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.schema import Schema
from ostinato.api.wire.json import encode_json
from ostinato.api.wire.strict import Members, count_colons, count_keys, with_repeated_keys


def repeats_keys(data: bytes, value: Any) -> bool:
    """Whether the JSON that was decoded to `value` can have duplicate keys. False positives are possible."""
    written = encode_json(value)
    if written == data:
        return False  # as most encoders write it
    if b"\\u" not in data and data.count(b":") == written.count(b":"):
        return False  # as many colons as keys
    return count_keys(value) != count_colons(data)


def decode_repeated(data: bytes, schema: Schema) -> Any:
    """Decode well-formed JSON of a built-in kind."""
    return _over(None, with_repeated_keys(data), schema)


def _over(first: Any, second: Any, schema: Schema | None) -> Any:
    if type(second) is Members:
        return _object_over(first, second, schema)
    if type(second) is list:
        items = schema.items if schema is not None else None
        elements = first if type(first) is list and items is not None else []
        return [_over(elements[i] if i < len(elements) else None, element, items) for i, element in enumerate(second)]
    return second


def _object_over(first: Any, second: Members, schema: Schema | None) -> dict[str, Any]:
    known = schema is not None and (schema.values is not None or bool(schema.field_names))
    merged: dict[str, Any] = dict(first) if known and type(first) is dict else {}
    for key, value in second:
        below = schema.field(key) if schema is not None else None
        is_map = schema is not None and schema.values is not None
        merged[key] = _over(None if is_map or not known else merged.get(key), value, below)
    return merged
