"""HPACK (RFC 7541) without a dynamic table.

A client that announces a table of size zero keeps no state between header blocks: a block always has the same meaning,
so both directions can be cached. Requests are literals without indexing; responses may use Huffman codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_STATIC: Final = (
    *((":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html")),
    *((":scheme", "http"), (":scheme", "https")),
    *((":status", status) for status in ("200", "204", "206", "304", "400", "404", "500")),
    *(("accept-charset", ""), ("accept-encoding", "gzip, deflate")),
    *(
        (name, "")
        for name in (
            *("accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age", "allow"),
            *("authorization", "cache-control", "content-disposition", "content-encoding", "content-language"),
            *("content-length", "content-location", "content-range", "content-type", "cookie", "date", "etag"),
            *("expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match", "if-range"),
            *("if-unmodified-since", "last-modified", "link", "location", "max-forwards", "proxy-authenticate"),
            *("proxy-authorization", "range", "referer", "refresh", "retry-after", "server", "set-cookie"),
            *("strict-transport-security", "transfer-encoding", "user-agent", "vary", "via", "www-authenticate"),
        )
    ),
)

# The Huffman code is canonical: the symbols of each length in order, as ranges, determine the codes.
_LENGTHS: Final = (
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b'!"()?'),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\x00$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, bytes.fromhex("5cc3d0")),
    (20, bytes.fromhex("808283a2b8c2e0e2")),
    (21, bytes.fromhex("99a1a7acb0b1b3d1d8d9e3e5e6")),
    (22, bytes.fromhex("8184858688929a9ca0a3a4a9aaadb2b5b9babbbdbec4c6e4e8e9")),
    (23, bytes.fromhex("0187898a8b8c8d8f93959697989b9d9ea5a6a8aeafb4b6b7bcbfc5e7ef")),
    (24, bytes.fromhex("098e9091949fabced7e1eced")),
    (25, bytes.fromhex("c7cfeaeb")),
    (26, bytes.fromhex("c0c1c8c9cacdd2d5dadbeef0f2f3ff")),
    (27, bytes.fromhex("cbccd3d4d6dddedff1f4f5f6f7f8fafbfcfdfe")),
    (28, bytes.fromhex("020304050607080b0c0e0f1011121314151718191a1b1c1d1e1f7fdcf9")),
    (30, bytes.fromhex("0a0d16")),  # and the end of a string, which must not be in one
)
_MAX_VALUE: Final = 1 << 20  # of an integer


class HeaderError(ValueError):
    """A header block that cannot be decoded."""


def _codes() -> dict[tuple[int, int], int]:
    """The symbol of each length and code."""
    found: dict[tuple[int, int], int] = {}
    code, before = 0, 0
    for length, symbols in _LENGTHS:
        code <<= length - before
        before = length
        for symbol in symbols:
            found[length, code] = symbol
            code += 1
    return found


_SYMBOLS: Final = _codes()


def encode_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """Encode headers, whose names are in lower case."""
    block = bytearray()
    for name, value in headers:
        if (name, value) in _STATIC:
            block.append(0x80 | _STATIC.index((name, value)) + 1)
        else:
            block += b"\x10" if name in ("authorization", "token") else b"\x00"  # never indexed, or not
            block += _string(name.encode("ascii")) + _string(value.encode("utf-8"))
    return bytes(block)


def decode_headers(block: bytes) -> dict[str, str]:
    """Decode a header block; of a name that occurs more than once, the last value. HeaderError if it is invalid."""
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 7)
                name, value = _static(index)
            elif first & 0xE0 == 0x20:
                size, at = _integer(block, at, 5)
                if size:
                    raise HeaderError(f"dynamic table of {size} bytes; 0 was announced")
                continue
            else:
                index, at = _integer(block, at, 6 if first & 0x40 else 4)
                if index:
                    name = _static(index)[0]
                else:
                    name, at = _text(block, at)
                value, at = _text(block, at)
            headers[name] = value
    except IndexError:
        raise HeaderError("truncated header block") from None
    return headers


def _string(data: bytes) -> bytes:
    size = len(data)
    if size < 0x7F:
        return bytes((size,)) + data
    prefix, size = bytearray(b"\x7f"), size - 0x7F
    while size > 0x7F:
        prefix.append(0x80 | size & 0x7F)
        size >>= 7
    prefix.append(size)
    return bytes(prefix) + data


def _static(index: int) -> tuple[str, str]:
    if not 0 < index <= len(_STATIC):
        raise HeaderError(f"no header has the index {index}")
    return _STATIC[index - 1]


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    limit = (1 << bits) - 1
    value = block[at] & limit
    at += 1
    if value < limit:
        return value, at
    shift = 0
    while True:
        octet = block[at]
        at += 1
        value += (octet & 0x7F) << shift
        shift += 7
        if value > _MAX_VALUE or shift > 28:
            raise HeaderError("integer too large")
        if not octet & 0x80:
            return value, at


def _text(block: bytes, at: int) -> tuple[str, int]:
    is_huffman = block[at] & 0x80
    size, at = _integer(block, at, 7)
    data = block[at : at + size]
    if len(data) < size:
        raise IndexError
    return (_huffman(data) if is_huffman else data).decode("utf-8", "replace"), at + size


def _huffman(data: bytes) -> bytes:
    found = bytearray()
    code = length = 0
    for octet in data:
        for bit in range(7, -1, -1):
            code = code << 1 | octet >> bit & 1
            length += 1
            symbol = _SYMBOLS.get((length, code))
            if symbol is not None:
                found.append(symbol)
                code = length = 0
            elif length > 30:
                raise HeaderError("invalid Huffman code")
    if length > 7 or code != (1 << length) - 1:
        raise HeaderError("invalid padding of a Huffman code")
    return bytes(found)
