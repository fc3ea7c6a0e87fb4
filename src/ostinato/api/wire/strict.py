"""Strict decoding: which fields of an object nobody knows, and which are given twice.

`fieldValidation` is Warn unless a client says otherwise, so this runs on every write, and mostly finds nothing. That is
settled by a quick walk of the value beside its schema, which compares the keys of each object at once and counts them.
Duplicates are no longer in the value, but a text that has as many colons after keys as the value has keys repeats none.
Only where a key is unknown or the count is not sure, the slow walk follows, which says what and where.
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
    """The members of an object as written, repeated keys included."""

    __slots__ = ()


def strict_errors(data: bytes, value: Any, schema: Schema | None) -> list[str]:
    """What strict decoding of `data`, which reads as `value`, complains of, in the order in which it is written.

    With a schema, that of a built-in kind: fields that the kind does not have, and keys given twice. Without one: keys
    given twice, anywhere. At most 100, each once.
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
    """The paths of the fields of a custom resource that its structural schema does not have, sorted."""
    return sorted(_unknown(value, schema, "", resource=True))


def count_colons(data: bytes) -> int:
    """How many keys the text has; -1 where counting could err: space before a colon, a backslash at a key's end."""
    if b'" :' in data or any(space in data and b'"' + space + b":" in data for space in (b"\n", b"\t", b"\r")):
        return -1
    colons = data.count(b'":')
    if b"\\" not in data:
        return colons
    return -1 if b'\\\\":' in data else colons - data.count(b'\\":')  # an escaped quote is inside a string


def count_keys(value: Any) -> int:
    """How many keys the objects in a value have."""
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
    """What the quick walk needs of a schema, at hand. Where a value has no fields known, anything may stand."""

    def __init__(self, schema: Schema) -> None:
        self._weak = ref(schema)  # weak, so that the schema of a kind that is gone can go

    @property
    def _schema(self) -> Schema:
        schema = self._weak()
        assert schema is not None  # whoever walks holds the schema at the top, and that holds those below
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
    """The number of keys in a value of a built-in kind; -2 if one is unknown."""
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
    """The value of a text, with every object as its members."""
    import json  # noqa: PLC0415 - few need it

    return json.loads(whole_characters(data), object_pairs_hook=Members, parse_int=narrowed_integer)


def _members(node: Any) -> Any:
    return node.items() if type(node) is dict else node


def _is_object(node: Any) -> bool:
    return type(node) is dict or type(node) is Members


def _typed_problems(node: Any, schema: Schema, path: str) -> Iterator[str]:
    """Problems below a value of a built-in kind. What has no fields in the schema is opaque: read by its own rules."""
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
    """What is given twice below a value, whose objects are their members."""
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
    """Unknown fields below a value of a custom resource; `resource` says that it bears kind and metadata of its own."""
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
