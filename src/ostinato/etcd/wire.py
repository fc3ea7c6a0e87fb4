"""Protobuf fields of etcd's messages: written and read without descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ostinato.api.protobuf.varint import BYTES, FIXED32, FIXED64, VARINT

_WRAP: Final = 1 << 64
_SMALL: Final = tuple(bytes((number,)) for number in range(128))


class WireError(ValueError):
    """Bytes that are not a protobuf message."""


def varint(number: int) -> bytes:
    """Encode a number; negative ones in two's complement of 64 bits."""
    if 0 <= number < 128:
        return _SMALL[number]
    number %= _WRAP
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def data(field: int, value: bytes) -> bytes:
    """Encode a field of bytes or a message, empty ones too."""
    return varint(field << 3 | BYTES) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """Encode a string."""
    return data(field, value.encode("utf-8"))


def number(field: int, value: int) -> bytes:
    """Encode a number; nothing if it is zero."""
    return varint(field << 3) + varint(value) if value else b""


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: an int that is not negative, or bytes."""
    at, end = 0, len(message)
    try:
        while at < end:
            key = message[at]
            at += 1
            if key > 127:
                key, at = _more(message, at, key & 127)
            wire = key & 7
            if wire == VARINT:
                value = message[at]
                at += 1
                if value > 127:
                    value, at = _more(message, at, value & 127)
                yield key >> 3, value
            elif wire == BYTES:
                size = message[at]
                at += 1
                if size > 127:
                    size, at = _more(message, at, size & 127)
                stop = at + size
                if stop > end:
                    raise WireError("truncated message")
                yield key >> 3, message[at:stop]
                at = stop
            elif wire in (FIXED32, FIXED64):
                size = 4 if wire == FIXED32 else 8
                if at + size > end:
                    raise WireError("truncated message")
                yield key >> 3, int.from_bytes(message[at : at + size], "little")
                at += size
            else:
                raise WireError(f"field of type {wire}")
    except IndexError:
        raise WireError("truncated message") from None


def signed(value: int) -> int:
    """Interpret a number of `fields` as an int64."""
    return value - _WRAP if value >> 63 else value


def _more(message: bytes, at: int, value: int) -> tuple[int, int]:
    shift = 7
    while True:
        octet = message[at]
        at += 1
        value |= (octet & 127) << shift
        if octet < 128:
            return value % _WRAP, at
        shift += 7
        if shift > 63:
            raise WireError("number of more than 64 bits")
