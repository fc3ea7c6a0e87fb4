"""Decoding of protobuf messages to JSON-compatible dicts.

A plan per message is compiled on first use: the step for each key (field number and wire type). Decoding is one loop
over the bytes with a dictionary lookup per field; unknown fields are skipped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache, partial
from struct import unpack_from
from typing import Any, Final

from ostinato.api.protobuf import custom_json as odd
from ostinato.api.protobuf.tables import MAGIC, TYPE_META, Field, fields_of, is_wrapper, message_of
from ostinato.api.protobuf.varint import BYTES, FIXED64, VARINT, read_varint, signed, skip, truncated
from ostinato.api.wire.json import MAX_DEPTH, DecodeError, decode_json

Reader = Callable[[bytes, int, int, int], Any]
"""Reads the value in data[start:end], at a depth of nesting."""

# Steps for a field. The first three decode bytes, the next four a number; plurals are repeated fields.
_STRING, _MESSAGE, _INLINE, _BOOL, _INT32, _INT64, _DOUBLE = range(7)
_STRINGS, _MESSAGES, _MAP, _NUMBERS = range(7, 11)

_FIRST_BYTES: Final = 1 << 3 | BYTES
_SECOND_BYTES: Final = 2 << 3 | BYTES
_MISSING: Final = object()

_SCALARS: Final = {"string": _STRING, "bool": _BOOL, "int32": _INT32, "int64": _INT64, "double": _DOUBLE}
_ZEROS: Final[dict[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}


class _Plan:
    """The steps to decode a message."""

    __slots__ = ("absent", "steps")

    def __init__(self) -> None:
        self.steps: dict[int, tuple[int, str, bool, Any]] = {}  # by key: step, name, keep zeros, reader
        self.absent: list[tuple[str, Callable[[], Any]]] = []  # values of absent fields


def read_message(message: str, data: bytes, depth: int = 0) -> Any:
    """Decode a message."""
    try:
        return _reader(message)(data, 0, len(data), depth)
    except IndexError:
        raise truncated() from None
    except RecursionError:  # called with a deep stack
        raise DecodeError("exceeded max depth") from None


def read_object(data: bytes, depth: int = 0) -> dict[str, Any]:
    """Decode the object in an envelope."""
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version, kind, raw = _read_envelope(data)
    message = message_of(api_version, kind)
    if message is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}" in protobuf')
    value = read_message(message, raw, depth)
    if not isinstance(value, dict):
        raise DecodeError(f"{kind} is not an object")
    return {"kind": kind, "apiVersion": api_version, **value}


def _read_envelope(data: bytes) -> tuple[str, str, bytes]:
    try:
        envelope: dict[str, Any] = {}
        _read_fields(envelope, _envelope_plan(), data, len(MAGIC), len(data), 0)
    except IndexError:
        raise truncated() from None
    meta = envelope.get("typeMeta", {})
    return meta.get("apiVersion", ""), meta.get("kind", ""), envelope.get("raw", b"")


@cache
def _envelope_plan() -> _Plan:
    plan = _Plan()
    plan.steps[_FIRST_BYTES] = (_MESSAGE, "typeMeta", True, _reader(TYPE_META))
    plan.steps[_SECOND_BYTES] = (_MESSAGE, "raw", True, lambda data, start, end, _depth: data[start:end])
    return plan


@cache
def _reader(message: str) -> Reader:
    if message == "bytes":
        return _read_bytes
    if message == "string":
        return _read_string
    if message in odd.RAW:
        return _read_document
    if message in odd.READERS:
        return _odd_reader(message)
    if is_wrapper(message):
        return _wrapper_reader(message)

    plan: _Plan | None = None

    def read(data: bytes, start: int, end: int, depth: int) -> Any:
        nonlocal plan
        if plan is None:  # compiled lazily, as messages can be recursive
            plan = _plan(message)
        if depth > MAX_DEPTH:
            raise DecodeError("exceeded max depth")
        value: dict[str, Any] = {}
        _read_fields(value, plan, data, start, end, depth)
        for name, make in plan.absent:
            if name not in value:
                value[name] = make()
        return value

    return read


def _odd_reader(message: str) -> Reader:
    convert = odd.READERS[message]
    plan: _Plan | None = None

    def read(data: bytes, start: int, end: int, depth: int) -> Any:
        nonlocal plan
        if plan is None:
            plan = _plan(message)
        if depth > MAX_DEPTH:
            raise DecodeError("exceeded max depth")
        value: dict[str, Any] = {}
        _read_fields(value, plan, data, start, end, depth)
        return convert(value)

    return read


def _wrapper_reader(message: str) -> Reader:
    plan = _plan(message)

    def read(data: bytes, start: int, end: int, depth: int) -> Any:
        value: dict[str, Any] = {}
        _read_fields(value, plan, data, start, end, depth)
        return value.get("items", [])

    return read


def _read_bytes(data: bytes, start: int, end: int, _depth: int) -> str:
    return b64encode(data[start:end]).decode()


def _read_string(data: bytes, start: int, end: int, _depth: int) -> str:
    return str(data[start:end], "utf-8", "replace")


def _read_document(data: bytes, start: int, end: int, depth: int) -> Any:
    """Decode a document in the only field of a message: an object in protobuf with its envelope, or JSON."""
    document = b""
    while start < end:
        key, start = read_varint(data, start)
        if key != _FIRST_BYTES:
            start = skip(data, start, end, key)
            continue
        size, start = read_varint(data, start)
        if start + size > end:
            raise truncated()
        document = data[start : start + size]
        start += size
    if not document:
        return None
    return read_object(document, depth + 1) if document.startswith(MAGIC) else decode_json(document)


@cache
def _plan(message: str) -> _Plan:
    plan = _Plan()
    for field in fields_of(message):
        _add_steps(plan, field)
        if message not in odd.READERS:
            plan.absent.extend(_absent(field))
    return plan


def _add_steps(plan: _Plan, field: Field) -> None:
    keep = field.mode != "o"
    key = field.number << 3
    what = _SCALARS.get(field.type, _MESSAGE)
    if field.map:
        plan.steps[key | BYTES] = (_MAP, field.name, True, _map_reader(field.type))
    elif field.mode == "i":
        plan.steps[key | BYTES] = (_INLINE, field.name, True, _plan(field.type))
    elif what == _STRING:
        plan.steps[key | BYTES] = (_STRINGS if field.repeated else _STRING, field.name, keep, None)
    elif what == _MESSAGE:
        plan.steps[key | BYTES] = (_MESSAGES if field.repeated else _MESSAGE, field.name, keep, _reader(field.type))
    elif field.repeated:
        plan.steps[key | VARINT] = plan.steps[key | BYTES] = (_NUMBERS, field.name, True, what)
    else:
        plan.steps[key | (FIXED64 if what == _DOUBLE else VARINT)] = (what, field.name, keep, None)


def _map_reader(kind: str) -> Reader:
    """Return a decoder of map entries: messages with the key as field 1 and the value as field 2."""
    read = _reader(kind)

    def read_entry(data: bytes, at: int, end: int, depth: int) -> tuple[str, Any]:
        key = ""
        value: Any = _MISSING
        while at < end:
            number = data[at]
            at += 1
            if number not in (_FIRST_BYTES, _SECOND_BYTES):
                at = skip(data, at, end, number)
                continue
            size, at = read_varint(data, at)
            stop = at + size
            if stop > end:
                raise truncated()
            if number == _FIRST_BYTES:
                key = str(data[at:stop], "utf-8", "replace")
            else:
                value = read(data, at, stop, depth)
            at = stop
        return key, read(b"", 0, 0, depth) if value is _MISSING else value

    return read_entry


def _absent(field: Field) -> Iterator[tuple[str, Callable[[], Any]]]:
    if field.mode == "i":
        yield from _plan(field.type).absent
    elif field.mode == "n" or (field.mode == "k" and _is_list(field)):
        yield field.name, lambda: None
    elif field.mode == "k" and field.type in _ZEROS:
        yield field.name, partial(_ZEROS.get, field.type)
    elif field.mode == "k":
        yield field.name, partial(_reader(field.type), b"", 0, 0, 0)


def _is_list(field: Field) -> bool:
    """Whether the value can be nil in Go without being a pointer: lists, maps and bytes."""
    return field.repeated or field.map or field.type == "bytes" or (field.type not in _ZEROS and is_wrapper(field.type))


def _read_fields(  # many parameters: an object would take as long as decoding a field
    value: dict[str, Any], plan: _Plan, data: bytes, at: int, end: int, depth: int
) -> None:
    steps = plan.steps
    while at < end:
        key = data[at]
        at += 1
        if key > 127:
            key, at = read_varint(data, at - 1)
        step = steps.get(key)
        if step is None:
            at = skip(data, at, end, key)
            continue
        what, name, keep, how = step
        if key & 7 == BYTES:
            size = data[at]
            at += 1
            if size > 127:
                size, at = read_varint(data, at - 1)
            stop = at + size
            if stop > end:
                raise truncated()
            if what == _STRING:
                if size or keep:
                    value[name] = str(data[at:stop], "utf-8", "replace")
            elif what == _MESSAGE:
                item = how(data, at, stop, depth + 1)
                if keep or not _is_zero(item):
                    value[name] = item
            elif what == _MAP:
                entry_key, item = how(data, at, stop, depth + 1)
                value.setdefault(name, {})[entry_key] = item
            elif what == _INLINE:
                _read_fields(value, how, data, at, stop, depth)
            elif what == _NUMBERS:
                value.setdefault(name, []).extend(_packed(how, data, at, stop))
            else:
                item = str(data[at:stop], "utf-8", "replace") if what == _STRINGS else how(data, at, stop, depth + 1)
                if name in value:
                    value[name].append(item)
                else:
                    value[name] = [item]
            at = stop
        elif what == _DOUBLE:
            if at + 8 > end:
                raise truncated()
            item = _json_number(unpack_from("<d", data, at)[0])
            if item or keep:
                value[name] = item
            at += 8
        else:
            number = data[at]
            at += 1
            if number > 127:
                number, at = read_varint(data, at - 1)
            if what == _NUMBERS:
                value.setdefault(name, []).append(_scalar(how, number))
            elif number or keep:
                value[name] = _scalar(what, number)
    if at != end:
        raise truncated()


def _scalar(what: int, number: int) -> bool | int:
    if what == _BOOL:
        return number != 0
    if number < 2**31:
        return number
    return signed(number, 32 if what == _INT32 else 64)


def _packed(what: int, data: bytes, at: int, end: int) -> Iterator[bool | int]:
    while at < end:
        number, at = read_varint(data, at)
        yield _scalar(what, number)


def _json_number(number: float) -> float | int:
    """Convert integral floats to integers, as in JSON."""
    return int(number) if number.is_integer() else number


def _is_zero(value: Any) -> bool:
    """Whether a struct has only zero values."""
    if type(value) is dict:
        return all(_is_zero(item) for item in value.values())
    return not value
