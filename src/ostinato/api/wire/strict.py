"""Strict decoding: unknown fields and duplicate keys.

`fieldValidation` defaults to Warn, so this runs on every write, and usually finds nothing:

- A fast traversal compares the keys of each object with the schema, and counts them.
- The JSON has no duplicate keys if it has as many colons after keys as the value has keys.
- Only if a key is unknown, or the count differs, a slow traversal finds the errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from ostinato.api.schema import Schema
from ostinato.api.text.go_format import quote
from ostinato.api.wire.json import narrowed_integer, whole_characters

_MOST_ERRORS: Final = 100
_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


class Members(list[tuple[str, Any]]):
    """The members of a JSON object, duplicate keys included."""

    __slots__ = ()


def strict_errors(data: bytes, value: Any, schema: Schema | None) -> list[str]:
    """Return the errors of strict decoding of `data`, which was decoded to `value`, in document order.

    With the schema of a built-in kind: unknown fields and duplicate keys. Without: duplicate keys. At most 100.
    """
    keys = count_keys(value) if schema is None else _count_known_keys(value, _shape(schema))
    if keys == count_colons(data):
        return []
    tree = with_repeated_keys(data)
    problems = _typed_problems(tree, schema, "") if schema is not None else repetitions(tree, "")
    found: dict[str, None] = {}
    for problem in problems:
        found[problem] = None
        if len(found) == _MOST_ERRORS:
            break
    return list(found)


def unknown_fields(value: Any, schema: Schema) -> list[str]:
    """Return the paths of the unknown fields of a custom resource, by its structural schema, sorted."""
    return sorted(_unknown(value, schema, "", resource=True))


def count_colons(data: bytes) -> int:
    """Count the keys of a JSON text; -1 if not reliable: space before a colon, backslash at the end of a key."""
    if b'" :' in data or any(space in data and b'"' + space + b":" in data for space in (b"\n", b"\t", b"\r")):
        return -1
    colons = data.count(b'":')
    if b"\\" not in data:
        return colons
    return -1 if b'\\\\":' in data else colons - data.count(b'\\":')  # escaped quotes are inside strings


def count_keys(value: Any) -> int:
    """Count the keys of all objects in a value."""
    count = 0
    waiting: list[Any] = [value]
    while waiting:
        node = waiting.pop()
        if type(node) is dict:
            count += len(node)
            waiting.extend([child for child in node.values() if type(child) is dict or type(child) is list])
        elif type(node) is list:
            waiting.extend([child for child in node if type(child) is dict or type(child) is list])
    return count


class _Shape:
    """The part of a schema that the fast traversal needs. A value without declared fields may have any."""

    def __init__(self, schema: Schema) -> None:
        self._weak = ref(schema)  # weak, so that the schema of a deleted kind is freed

    @property
    def _schema(self) -> Schema:
        schema = self._weak()
        assert schema is not None  # the caller holds the root schema, which holds the others
        return schema

    @cached_property
    def fields(self) -> dict[str, _Shape]:
        found = ((name, self._schema.field(name)) for name in self._schema.field_names)
        return {name: _shape(schema) for name, schema in found if schema is not None}

    @cached_property
    def values(self) -> _Shape | None:
        return None if self._schema.values is None else _shape(self._schema.values)

    @cached_property
    def items(self) -> _Shape | None:
        return None if self._schema.items is None else _shape(self._schema.items)


_shapes: WeakKeyDictionary[Schema, _Shape] = WeakKeyDictionary()


def _shape(schema: Schema) -> _Shape:
    found = _shapes.get(schema)
    if found is None:
        found = _shapes[schema] = _Shape(schema)
    return found


def _count_known_keys(node: Any, shape: _Shape) -> int:
    """Count the keys of a value of a built-in kind; -2 if one is unknown."""
    count = 0
    waiting: list[tuple[Any, _Shape]] = [(node, shape)]
    while waiting:
        node, shape = waiting.pop()
        if type(node) is dict:
            fields, values = shape.fields, shape.values
            if not fields and values is None:
                count += count_keys(node)
                continue
            count += len(node)
            if values is None and not node.keys() <= fields.keys():
                return -2
            for key, child in node.items():
                if type(child) is dict or type(child) is list:
                    below = fields.get(key) or values
                    assert below is not None
                    waiting.append((child, below))
        elif type(node) is list:
            if shape.items is None:
                count += count_keys(node)
            else:
                items = shape.items
                waiting.extend([(child, items) for child in node if type(child) is dict or type(child) is list])
    return count


def with_repeated_keys(data: bytes) -> Any:
    """Decode a text, with objects as `Members`."""
    import json  # noqa: PLC0415 - few need it

    return json.loads(whole_characters(data), object_pairs_hook=Members, parse_int=narrowed_integer)


def _members(node: Any) -> Any:
    return node.items() if type(node) is dict else node


def _is_object(node: Any) -> bool:
    return type(node) is dict or type(node) is Members


def _typed_problems(node: Any, schema: Schema, path: str) -> Iterator[str]:
    """Return the errors below a value of a built-in kind. Values without declared fields are opaque."""
    if _is_object(node):
        values = schema.values
        seen: set[str] = set()
        names = schema.field_names
        if values is None and not names:
            return
        for key, child in _members(node):
            where = f"{path}.{key}" if path else key
            below = schema.field(key)
            if below is None:
                yield f"unknown field {quote(where)}"
                continue
            if key in seen:
                yield f"duplicate field {quote(where)}"
            seen.add(key)
            if type(child) is not str:
                yield from _typed_problems(child, below, where)
    elif type(node) is list and schema.items is not None:
        for index, child in enumerate(node):
            if type(child) is not str:
                yield from _typed_problems(child, schema.items, f"{path}[{index}]")


def repetitions(node: Any, path: str) -> Iterator[str]:
    """Return the duplicate keys below a value whose objects are `Members`."""
    if type(node) is Members:
        seen: set[str] = set()
        for key, child in node:
            where = f"{path}.{key}" if path else key
            if key in seen:
                yield f"duplicate field {quote(where)}"
            seen.add(key)
            yield from repetitions(child, where)
    elif type(node) is list:
        for index, child in enumerate(node):
            yield from repetitions(child, f"{path}[{index}]")


def _unknown(node: Any, schema: Schema | None, path: str, *, resource: bool) -> Iterator[str]:
    """Return the unknown fields below a value of a custom resource; `resource`: it has kind and metadata itself."""
    preserve = schema is not None and schema.preserve_unknown
    if type(node) is dict:
        for key, child in node.items():
            if resource and key in _META_FIELDS:
                continue
            where = f"{path}.{key}" if path else key
            below = schema.field(key) if schema is not None else None
            if below is not None:
                yield from _unknown(child, below, where, resource=below.embedded_resource)
            elif not preserve:
                yield where
    elif type(node) is list:
        items = schema.items if schema is not None else None
        if items is None and preserve:
            return
        for index, child in enumerate(node):
            embedded = items is not None and items.embedded_resource
            yield from _unknown(child, items, f"{path}[{index}]", resource=embedded)
