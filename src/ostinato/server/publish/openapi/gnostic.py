"""OpenAPI v2 in protobuf (gnostic's messages), which older versions of kubectl request.

Each message is a table from the keys of the JSON document to field numbers and writers. Values without a message of
their own (extensions, defaults, enums) are embedded as YAML, of which JSON is a subset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ostinato.api.protobuf.varint import BYTES, FIXED64, VARINT, varint, write_varint

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

Json = Mapping[str, Any]
Writer = Callable[[bytearray, int, Any], None]  # appends a field to a message: message, number, value
Table = Mapping[str, tuple[int, Writer]]


def document(swagger: Json, paths: bytes, definitions: bytes) -> bytes:
    """Encode a document. Paths and definitions are already encoded: they are most of it, and most of them do not
    change.
    """
    out = bytearray()
    _text(out, 1, swagger["swagger"])
    _bytes(out, 2, _message(_INFO, 0, swagger["info"]))
    _bytes(out, 8, paths)
    _bytes(out, 9, definitions)
    for requirement in swagger["security"]:
        _named(out, 12, requirement, _string_array)
    _named(out, 13, swagger["securityDefinitions"], _api_key)
    return bytes(out)


def encode_paths(paths: Json) -> bytes:
    """Encode paths as a part of all paths of a document; parts are concatenated."""
    return _entries(2, paths, _path_item)


def encode_definitions(definitions: Json) -> bytes:
    """Encode definitions as a part of all definitions of a document; parts are concatenated."""
    return _entries(1, definitions, _schema)


# Field writers.


def _bytes(out: bytearray, number: int, value: bytes) -> None:
    write_varint(out, number << 3 | BYTES)
    write_varint(out, len(value))
    out += value


def _text(out: bytearray, number: int, value: str) -> None:
    _bytes(out, number, value.encode())


def _texts(out: bytearray, number: int, values: Iterable[str]) -> None:
    for value in values:
        _text(out, number, value)


def _boolean(out: bytearray, number: int, value: bool) -> None:
    if value:
        out += varint(number << 3 | VARINT) + b"\x01"


def _integer(out: bytearray, number: int, value: float) -> None:
    out += varint(number << 3 | VARINT) + varint(int(value))


def _double(out: bytearray, number: int, value: float) -> None:
    out += varint(number << 3 | FIXED64) + struct.pack("<d", value)


def _any(out: bytearray, number: int, value: Any) -> None:
    inner = bytearray()
    _bytes(inner, 2, msgspec.json.encode(value))
    _bytes(out, number, bytes(inner))


def _anys(out: bytearray, number: int, values: Iterable[Any]) -> None:
    for value in values:
        _any(out, number, value)


def _in(*numbers: int, message: Callable[[Any], bytes]) -> Writer:
    """Write a message wrapped in others, each with a single field of the given number."""

    def write(out: bytearray, number: int, value: Any) -> None:
        data = message(value)
        for wrapper in reversed(numbers):
            wrapped = bytearray()
            _bytes(wrapped, wrapper, data)
            data = bytes(wrapped)
        _bytes(out, number, data)

    return write


def _entries(number: int, entries: Json, message: Callable[[Any], bytes]) -> bytes:
    """Write a map as a list of named values."""
    out = bytearray()
    for name, value in entries.items():
        entry = bytearray()
        _text(entry, 1, name)
        _bytes(entry, 2, message(value))
        _bytes(out, number, bytes(entry))
    return bytes(out)


def _named(out: bytearray, number: int, entries: Json, message: Callable[[Any], bytes]) -> None:
    """A message that consists of a map."""
    _bytes(out, number, _entries(1, entries, message))


def _message(table: Table, extensions: int, value: Json) -> bytes:
    """A message by its table; `extensions` is the number of the field that holds keys beginning with "x-"."""
    fields = [(*table[key], item) for key, item in value.items() if key in table]
    fields += [(extensions, _extension, (key, item)) for key, item in value.items() if key.startswith("x-")]
    fields.sort(key=_number)
    out = bytearray()
    for number, write, item in fields:
        write(out, number, item)
    return bytes(out)


def _number(field: tuple[int, Writer, Any]) -> int:
    return field[0]


def _extension(out: bytearray, number: int, named: tuple[str, Any]) -> None:
    name, value = named
    entry = bytearray()
    _text(entry, 1, name)
    _any(entry, 2, value)
    _bytes(out, number, bytes(entry))


# Messages.


def _schema(value: Json) -> bytes:
    return _message(_SCHEMA, 31, value)


def _schemas(out: bytearray, number: int, values: Iterable[Json]) -> None:
    for value in values:
        _bytes(out, number, _schema(value))


def _properties(out: bytearray, number: int, value: Json) -> None:
    _named(out, number, value, _schema)


def _additional(out: bytearray, number: int, value: Any) -> None:
    inner = bytearray()
    if isinstance(value, bool):
        _boolean(inner, 2, value)
    else:
        _bytes(inner, 1, _schema(value))
    _bytes(out, number, bytes(inner))


def _external_docs(value: Json) -> bytes:
    return _message({"description": (1, _text), "url": (2, _text)}, 3, value)


_SCHEMA: Table = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _boolean),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _boolean),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _boolean),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _in(1, message=str.encode)),
    "items": (23, _in(1, message=_schema)),
    "allOf": (24, _schemas),
    "properties": (25, _properties),
    "externalDocs": (29, _in(message=_external_docs)),
    "example": (30, _any),
}

_INFO: Table = {"title": (1, _text), "version": (2, _text)}

_BODY: Table = {
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _boolean),
    "schema": (5, _in(message=_schema)),
}
_QUERY: Table = {
    "in": (2, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (20, _boolean),
}
_PATH: Table = {
    "required": (1, _boolean),
    "in": (2, _text),
    "name": (4, _text),
    "type": (5, _text),
    "uniqueItems": (19, _boolean),
}
# A parameter, in the wrappers of its location: parameter, body or not, query or path.
_PLACES: dict[str, Writer] = {
    "body": _in(1, 1, message=lambda value: _message(_BODY, 6, value)),
    "query": _in(1, 2, 3, message=lambda value: _message(_QUERY, 23, value)),
    "path": _in(1, 2, 4, message=lambda value: _message(_PATH, 22, value)),
}


def _parameters(out: bytearray, number: int, values: Iterable[Json]) -> None:
    for value in values:
        _PLACES[value["in"]](out, number, value)


_RESPONSE: Table = {"description": (1, _text), "schema": (2, _in(1, message=_schema))}


def _response(value: Json) -> bytes:
    out = bytearray()
    _bytes(out, 1, _message(_RESPONSE, 5, value))
    return bytes(out)


def _responses(out: bytearray, number: int, value: Json) -> None:
    _named(out, number, value, _response)


_OPERATION: Table = {
    "tags": (1, _texts),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _texts),
}

_operation = _in(message=lambda value: _message(_OPERATION, 13, value))

_PATH_ITEM: Table = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}


def _path_item(value: Json) -> bytes:
    return _message(_PATH_ITEM, 10, value)


def _string_array(values: Iterable[str]) -> bytes:
    out = bytearray()
    _texts(out, 1, values)
    return bytes(out)


def _api_key(value: Json) -> bytes:
    out = bytearray()
    _bytes(out, 2, _message({"type": (1, _text), "name": (2, _text), "in": (3, _text)}, 5, value))
    return bytes(out)
