"""Declarations from schemas: the CEL type of each field, the maximum size of its value, and its conversion.

- Schemas that expressions cannot access have no declaration.
- Field names are escaped if they are not CEL identifiers (`__namespace__`, `a__dash__b`).
- Values are JSON, converted on access: strings with the formats date-time, date, duration and byte become timestamps,
  durations and bytes; numbers become doubles.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ostinato.cel.identifiers import KEYWORDS, escape
from ostinato.cel.libraries.timestamps import duration, timestamp
from ostinato.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
)
from ostinato.cel.values import CelError, equal

Convert = Callable[[Any], Any]

MOST_REQUEST_BYTES: Final = 3 * 1024 * 1024


class Declaration:
    """The declaration of a value."""

    __slots__ = (
        "computed",
        "convert",
        "fields",
        "items",
        "key",
        "keys",
        "list_type",
        "min_size",
        "most",
        "names",
        "nested",
        "type",
    )

    def __init__(self, kind: Type, most: int, min_size: int, convert: Convert | None = None) -> None:
        self.type = kind
        self.most = most  # maximum size: characters, items or entries
        self.min_size = min_size  # minimum size as JSON, in bytes
        self.convert = convert  # from JSON to the CEL value, if they differ
        self.items: Declaration | None = None
        self.key: Declaration | None = None
        self.fields: dict[str, Declaration] = {}  # by CEL name
        self.names: dict[str, str] = {}  # from CEL names to field names
        self.list_type = "atomic"
        self.keys: tuple[str, ...] = ()
        self.computed = False  # the value computes its fields
        self.nested = False  # equality depends on the schema: there are set or map lists here or below

    def field(self, name: str) -> Type | None:
        found = self.fields.get(name)
        return found.type if found is not None else None

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two values are equal; the order of items in set and map lists is ignored."""
        if not self.nested or type(a) is not type(b):
            return equal(a, b)
        if type(a) is list:
            return self._equal_lists(a, b)
        if type(a) is dict and len(a) == len(b):
            return all(name in b and self._below(name).equal(value, b[name]) for name, value in a.items())
        return False

    def _below(self, name: str) -> Declaration:
        if self.items is not None:
            return self.items
        key = escape(name)
        return self.fields.get(key, _UNKNOWN) if key is not None else _UNKNOWN

    def _equal_lists(self, a: list[Any], b: list[Any]) -> bool:
        items = self.items or _UNKNOWN
        if len(a) != len(b):
            return False
        if self.list_type == "set":
            return all(any(equal(item, other) for other in a) for item in b)
        if self.list_type == "map":
            by_key = {self.key_of(item): item for item in a}
            return all(self.key_of(item) in by_key and items.equal(by_key[self.key_of(item)], item) for item in b)
        return all(map(items.equal, a, b))

    def key_of(self, item: Any) -> Any:
        """Return the key of an item of a map list."""
        found = tuple(item.get(key) if type(item) is dict else None for key in self.keys)
        return tuple(str(part) if isinstance(part, (dict, list)) else part for part in found)

    def joined(self, a: list[Any], b: list[Any]) -> list[Any]:
        """Concatenate lists: sets have no duplicates, and items of map lists replace those with the same key."""
        if self.list_type == "set":
            return [*a, *(item for i, item in enumerate(b) if not any(equal(item, x) for x in (*a, *b[:i])))]
        if self.list_type == "map":
            merged = {self.key_of(item): item for item in a}
            merged.update((self.key_of(item), item) for item in b)
            return list(merged.values())
        return [*a, *b]


_UNKNOWN: Final = Declaration(DYN, 0, 0)
_TYPE_FIELDS: Final = {"kind": {"type": "string"}, "apiVersion": {"type": "string"}}
_NAMES: Final = {"name": {"type": "string"}, "generateName": {"type": "string"}}


def declared(schema: Mapping[str, Any], *, root: bool = False, name: str = "object") -> Declaration | None:
    """Return the declaration of a schema; None if expressions cannot access it. `name` is the type name."""
    if schema.get("x-kubernetes-int-or-string"):
        most = schema.get("maxLength")
        return Declaration(DYN, MOST_REQUEST_BYTES - 2 if most is None else max(most, 0) * 4, 1)
    kind = schema.get("type")
    if root:
        return _object(_with_metadata(schema), name)
    if kind == "array":
        return _array(schema, name)
    if kind == "object":
        additional = schema.get("additionalProperties")
        return _map(schema, additional, name) if isinstance(additional, Mapping) else _object(schema, name)
    if kind == "string":
        return _text(schema)
    if kind == "boolean":
        return Declaration(BOOL, 0, 4)
    if kind == "number":
        return Declaration(DOUBLE, 0, 1, float)
    if kind == "integer":
        return Declaration(INT, 0, 1)
    return None


def _with_metadata(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Declare the root of a resource: apiVersion, kind, and name and generateName of metadata."""
    properties = schema.get("properties") or {}
    metadata = {"type": "object", "properties": _NAMES}
    return {**schema, "type": "object", "properties": {**properties, **_TYPE_FIELDS, "metadata": metadata}}


def _array(schema: Mapping[str, Any], name: str) -> Declaration | None:
    raw = schema.get("items")
    items = _nested(raw, f"{name}.@idx") if isinstance(raw, Mapping) else None
    if items is None:
        return None
    most = schema.get("maxItems")
    most = (MOST_REQUEST_BYTES - 2) // (items.min_size + 1) if most is None else max(most, 0)
    found = Declaration(DYN, most, 2, _each(items.convert))
    found.type = list_of(items.type, found)
    found.items = items
    found.list_type = schema.get("x-kubernetes-list-type") or "atomic"
    found.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    found.nested = items.nested or found.list_type != "atomic"
    return found


def _map(schema: Mapping[str, Any], additional: Mapping[str, Any], name: str) -> Declaration | None:
    values = _nested(additional, f"{name}.@elem")
    if values is None:
        return None
    most = schema.get("maxProperties")
    most = (MOST_REQUEST_BYTES - 2) // (values.min_size + 6) if most is None else max(most, 0)
    found = Declaration(DYN, most, 2, _each_value(values.convert))
    found.type = map_of(STRING, values.type, found)
    found.items = values
    found.key = Declaration(STRING, 0, 2)  # Kubernetes ignores the size of keys
    found.nested = values.nested
    return found


def _object(schema: Mapping[str, Any], name: str) -> Declaration:
    found = Declaration(DYN, 0, 2)
    found.type = Type("struct", name, (), found)
    required = schema.get("required") or ()
    for field, raw in (schema.get("properties") or {}).items():
        key = escape(field)
        below = _nested(raw, f"{name}.{key}")
        if below is None:
            continue
        if key is not None:
            found.fields[key] = below
            found.names[key] = field
            found.nested = found.nested or below.nested
            if field in KEYWORDS:  # also accessible by its unescaped name
                found.fields[field], found.names[field] = below, field
        if field in required and raw.get("default") is None:
            found.min_size += len(field.encode()) + below.min_size + 4
    return found


def _nested(schema: Mapping[str, Any], name: str) -> Declaration | None:
    return declared(schema, root=bool(schema.get("x-kubernetes-embedded-resource")), name=name)


def _text(schema: Mapping[str, Any]) -> Declaration:
    most, form = schema.get("maxLength"), schema.get("format")
    if form == "byte":
        return Declaration(BYTES, MOST_REQUEST_BYTES - 2 if most is None else max(most, 0), 2, _of_text(_bytes))
    if form == "duration":
        return Declaration(DURATION, 32, 3, _of_text(duration))
    if form == "date":
        return Declaration(TIMESTAMP, 12, 12, _of_text(lambda text: timestamp(f"{text}T00:00:00Z")))
    if form == "date-time":
        return Declaration(TIMESTAMP, 32, 21, _of_text(timestamp))
    if most is not None:
        return Declaration(STRING, max(most, 0) * 4, 2)
    enum = schema.get("enum")
    if enum:
        return Declaration(STRING, max((len(v.encode()) for v in enum if isinstance(v, str)), default=0), 2)
    return Declaration(STRING, MOST_REQUEST_BYTES - 2, 2)


def _of_text(convert: Callable[[str], Any]) -> Convert:
    """Declare a string; with a format, validation accepts lists too, as in kube-apiserver."""

    def converted(value: Any) -> Any:
        if type(value) is not str:
            raise CelError("invalid data, expected string, got []interface {}")
        return convert(value)

    return converted


def _bytes(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except binascii.Error as error:
        raise CelError(f"Invalid byte formatted string {text}: {error}") from None


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda items: [item if item is None else convert(item) for item in items]


def _each_value(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda entries: {key: value if value is None else convert(value) for key, value in entries.items()}


def message(name: str, fields: Iterable[tuple[str, Declaration]]) -> Declaration:
    """Return the declaration of a message with these fields."""
    found = Declaration(DYN, 0, 2)
    found.type = Type("struct", name, (), found)
    for field, below in fields:
        found.fields[field] = below
        found.names[field] = field
    return found


def simple(kind: Type) -> Declaration:
    """Return the declaration of JSON values of any size."""
    found = Declaration(kind, MOST_REQUEST_BYTES, 1)
    if kind.kind in ("list", "map"):
        found.items = simple(kind.params[-1])
    return found
