"""Encoding of JSON-compatible dicts to protobuf messages.

The bytes equal those of Go: fields in the order of their numbers, values that are not pointers even if zero, maps
sorted by key. Unknown fields are omitted.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from ostinato.api.protobuf import custom_json as odd
from ostinato.api.protobuf.tables import Field, fields_of, is_wrapper
from ostinato.api.protobuf.varint import BYTES, FIXED64, VARINT, delimited, varint, write_varint
from ostinato.api.wire.json import encode_json

Writer = Callable[[Any], bytes]
"""Writes a value as the bytes of a field, without key and length."""

_NUMBERS: Final = frozenset({"int32", "int64", "bool", "double"})

# Steps for a field: bytes or a number, single or repeated, a map, or the fields of an inline message.
_ONE, _MANY, _NUMBER, _MANY_NUMBERS, _MAP, _INLINE = range(6)


def write_message(message: str, value: Any) -> bytes:
    """Encode a message. Raises TypeError or ValueError if the dict does not match it."""
    return _writer(message)(value)


@cache
def _writer(kind: str) -> Writer:
    if kind == "string":
        return str.encode
    if kind == "bytes":
        return _bytes
    if kind in odd.RAW:
        return _document
    if kind in odd.WRITERS:
        fields = odd.WRITERS[kind]
        return lambda value: _write_fields(_steps(kind), fields(value))
    if is_wrapper(kind):
        return lambda value: _write_fields(_steps(kind), {"items": value})
    return lambda value: _write_fields(_steps(kind), {} if value is None else value)


def _bytes(value: str) -> bytes:
    return b64decode(value, validate=True)


def _document(value: Any) -> bytes:
    if value is None:
        return b""
    document = encode_json(value)
    return _FIRST_BYTES + varint(len(document)) + document


_FIRST_BYTES: Final = varint(1 << 3 | BYTES)
_SECOND_BYTES: Final = varint(2 << 3 | BYTES)

_Step = tuple[int, str, bytes, Any, Callable[[], bytes]]  # step, name, key, writer, bytes if absent


@cache
def _steps(message: str) -> tuple[_Step, ...]:
    return tuple(_step(field) for field in fields_of(message))


def _step(field: Field) -> _Step:
    number = field.number << 3
    nothing = _empty if field.repeated or field.mode in "pn" else None  # otherwise Go encodes the zero value
    if field.type in _NUMBERS:
        key = varint(number | (FIXED64 if field.type == "double" else VARINT))
        write: Any = _double if field.type == "double" else _boolean if field.type == "bool" else _integer
        what = _MANY_NUMBERS if field.repeated else _NUMBER
        return what, field.name, key, write, nothing or (lambda: key + write(0))
    key = varint(number | BYTES)
    write = _writer(field.type)
    if field.map:
        return _MAP, field.name, key, write, _empty
    if field.repeated:
        return _MANY, field.name, key, write, _empty
    what = _INLINE if field.mode == "i" else _ONE
    if field.type == "bytes" or (field.type != "string" and is_wrapper(field.type)):
        return what, field.name, key, write, _empty
    if field.type == "string":
        return what, field.name, key, write, nothing or (lambda: key + b"\x00")
    return what, field.name, key, write, nothing or cache(lambda: delimited(key, write(None)))


def _empty() -> bytes:
    return b""


def _integer(value: Any) -> bytes:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError(f"{value!r} is not an integer")
    return varint(value)


def _boolean(value: Any) -> bytes:
    return b"\x01" if value else b"\x00"


def _double(value: Any) -> bytes:
    return struct.pack("<d", value)


def _write_fields(steps: tuple[_Step, ...], value: Any) -> bytes:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} instead of an object")
    out = bytearray()
    for what, name, key, write, absent in steps:
        if what == _INLINE:
            item: Any = value
        else:
            item = value.get(name)
            if item is None:
                out += absent()
                continue
        if what <= _MANY or what == _INLINE:
            for data in map(write, item) if what == _MANY else (write(item),):
                out += key
                size = len(data)
                if size < 128:
                    out.append(size)
                else:
                    write_varint(out, size)
                out += data
        elif what == _NUMBER:
            out += key
            out += write(item)
        elif what == _MANY_NUMBERS:
            for number in item:
                out += key
                out += write(number)
        else:
            for name_in_map in sorted(item):
                out += delimited(key, _entry(name_in_map, item[name_in_map], write))
    return bytes(out)


def _entry(key: str, value: Any, write: Writer) -> bytes:
    out = delimited(_FIRST_BYTES, key.encode())
    return out if value is None else out + delimited(_SECOND_BYTES, write(value))
