"""gzip of a body whose long middle is compressed once, for any head and tail.

Head and tail are stored uncompressed. The checksum of the whole is combined from the checksums of its parts.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

LEVEL = 1  # of compression: the fastest

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # no time, fastest, unknown system
_MAX_STORED = 65535  # bytes of a stored block
_POLYNOMIAL = 0xEDB88320  # of CRC-32, with the lowest power in the highest bit
_ONE = 1 << 31  # the polynomial 1


class Deflated(NamedTuple):
    """Compressed data that ends at the boundary of a byte and of a block."""

    data: bytes
    size: int  # bytes before compression
    crc: int
    shift: int  # polynomial that moves a checksum past the data


def deflate(pieces: Iterable[bytes]) -> Deflated:
    """Compress pieces of data. Other threads run in between."""
    compressing = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc = size = 0
    out: list[bytes] = []
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
        size += len(piece)
        out.append(compressing.compress(piece))
    out.append(compressing.flush(zlib.Z_FULL_FLUSH))
    return Deflated(b"".join(out), size, crc, _power(8 * size))


def gzip(head: bytes, middle: Deflated, tail: bytes) -> bytes:
    """Return the gzip form of `head`, the compressed data, and `tail`."""
    crc = _times(middle.shift, zlib.crc32(head)) ^ middle.crc
    crc = zlib.crc32(tail, crc)
    size = len(head) + middle.size + len(tail)
    end = struct.pack("<II", crc, size & 0xFFFFFFFF)
    return b"".join([_HEADER, _stored(head, last=False), middle.data, _stored(tail, last=True), end])


def _stored(data: bytes, *, last: bool) -> bytes:
    """Return data as blocks without compression."""
    blocks: list[bytes] = []
    for start in range(0, max(len(data), 1), _MAX_STORED):
        block = data[start : start + _MAX_STORED]
        final = last and start + _MAX_STORED >= len(data)
        blocks.append(struct.pack("<BHH", final, len(block), len(block) ^ 0xFFFF) + block)
    return b"".join(blocks)


def _times(one: int, other: int) -> int:
    """Multiply two polynomials modulo that of CRC-32."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ _POLYNOMIAL if other & 1 else other >> 1
    return product


def _power(exponent: int) -> int:
    """Return x to a power, modulo the polynomial of CRC-32."""
    product, bit = _ONE, 0
    while exponent:
        if exponent & 1:
            product = _times(_square(bit), product)
        exponent >>= 1
        bit += 1
    return product


@cache
def _square(times: int) -> int:
    """Return x, squared a number of times."""
    return _ONE >> 1 if times == 0 else _times(_square(times - 1), _square(times - 1))
