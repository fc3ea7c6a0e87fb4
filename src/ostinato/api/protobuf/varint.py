"""Protobuf wire format: varints, lengths of fields, skipping of unknown fields."""

from __future__ import annotations

from typing import Final

from ostinato.api.wire.json import DecodeError

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2  # length-delimited: strings, messages, packed numbers
FIXED32: Final = 5

_WRAP: Final = 2**64


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at this position, and the position after it."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number % _WRAP, at
        shift += 7
        if shift > 63:
            raise DecodeError("proto: integer overflow")


def write_varint(out: bytearray, number: int) -> None:
    """Append a number; negative ones in 64-bit two's complement."""
    number %= _WRAP
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


def delimited(key: bytes, data: bytes) -> bytes:
    """Return a field of wire type `BYTES`."""
    return key + varint(len(data)) + data


def signed(number: int, bits: int) -> int:
    """Interpret the lowest bits of a number as two's complement."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def truncated() -> DecodeError:
    return DecodeError("unexpected EOF")


def skip(data: bytes, at: int, end: int, key: int) -> int:
    """Return the position after an unknown field whose key has been read."""
    wire = key & 7
    if wire == VARINT:
        _, at = read_varint(data, at)
    elif wire == FIXED64:
        at += 8
    elif wire == BYTES:
        size, at = read_varint(data, at)
        at += size
    elif wire == FIXED32:
        at += 4
    else:
        raise DecodeError(f"proto: illegal wireType {wire}")
    if at > end:
        raise truncated()
    return at
