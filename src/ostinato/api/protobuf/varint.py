"""The alphabet of protobuf: varints, and how far a field reaches."""

from __future__ import annotations

from typing import Final

from ostinato.api.wire.json import DecodeError

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2  # a length, then that many bytes: strings, messages, packed numbers
FIXED32: Final = 5

_WRAP: Final = 2**64


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at this place, and the place after it."""
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
    """Append a number; a negative one as its two's complement in 64 bits."""
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
    """A field of the type `BYTES`."""
    return key + varint(len(data)) + data


def signed(number: int, bits: int) -> int:
    """A number as the two's complement that its lowest bits are."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def truncated() -> DecodeError:
    return DecodeError("unexpected EOF")


def skip(data: bytes, at: int, end: int, key: int) -> int:
    """The place after a field that nobody knows, of which the key has been read."""
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
