"""SPDY/3.1 frames: encode and decode.

The subset that Kubernetes uses: no flow control, settings or push. The compression context of headers is shared by all
frames of a connection, so frames with headers must be encoded and decoded in order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 1  # flag: the last frame of its sender on the stream
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL = 1, 2, 3, 5

_VERSION: Final = 3
_MOST_FRAME: Final = 1 << 20  # bytes of a received frame; the protocol allows 16 times as many
_MOST_HEADERS: Final = 1 << 16  # bytes of headers, decompressed

# The initial compression dictionary, from the specification.
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(len(word).to_bytes(4, "big") + word.replace("_", " ").encode() for word in _WORDS.split()) + _REST.encode()
)


class SpdyError(Exception):
    """The data is not SPDY; the connection is unusable."""


class Frame(msgspec.Struct, frozen=True):
    """
    - `type`: None for data.
    - `stream`: stream id; for PING its id; for other frames 0.
    - `headers`: names in lower case.
    """

    type: int | None
    stream: int = 0
    flags: int = 0
    data: bytes = b""
    headers: Mapping[str, str] = {}
    code: int = 0  # reason of a reset


class FrameReader:
    """Decodes frames from chunks of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Iterate over the complete frames; exhaust it before the next call. Raises SpdyError."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 8:
            size = int.from_bytes(buffer[5:8], "big")
            if size > _MOST_FRAME:
                raise SpdyError(f"frame of {size} bytes exceeds the limit of {_MOST_FRAME}")
            if len(buffer) < 8 + size:
                return
            first, flags, body = int.from_bytes(buffer[:4], "big"), buffer[4], bytes(buffer[8 : 8 + size])
            del buffer[: 8 + size]
            if not first >> 31:
                yield Frame(None, first, flags, body)
                continue
            if first >> 16 & 0x7FFF != _VERSION:
                raise SpdyError(f"version {first >> 16 & 0x7FFF}; only {_VERSION} is supported")
            yield self._control(first & 0xFFFF, flags, body)

    def _control(self, kind: int, flags: int, body: bytes) -> Frame:
        wanted = {SYN_STREAM: 10, SYN_REPLY: 4, HEADERS: 4, RST_STREAM: 8, PING: 4}.get(kind, 0)
        if len(body) < wanted:
            raise SpdyError(f"frame of type {kind} has {len(body)} bytes; expected at least {wanted}")
        about = int.from_bytes(body[:4], "big")
        if kind in (SYN_STREAM, SYN_REPLY, HEADERS):
            return Frame(kind, about & 0x7FFFFFFF, flags, headers=self._headers(body[wanted:]))
        if kind == RST_STREAM:
            return Frame(kind, about & 0x7FFFFFFF, flags, code=int.from_bytes(body[4:8], "big"))
        return Frame(kind, about if kind == PING else 0, flags)

    def _headers(self, data: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(data, _MOST_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be decompressed: {error}") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"headers exceed {_MOST_HEADERS} bytes")
        at = 4
        headers: dict[str, str] = {}
        for _ in range(int.from_bytes(plain[:4], "big")):
            pair = []
            for _ in range(2):
                size = int.from_bytes(plain[at : at + 4], "big")
                if at + 4 + size > len(plain):
                    raise SpdyError("headers are truncated")
                pair.append(plain[at + 4 : at + 4 + size].decode("utf-8", "replace"))
                at += 4 + size
            headers.setdefault(pair[0].lower(), pair[1])
        return headers


class FrameWriter:
    """Encodes frames."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, headers: Mapping[str, str]) -> bytes:
        """Encode SYN_STREAM."""
        return _control(SYN_STREAM, 0, stream.to_bytes(4, "big") + bytes(6) + self._headers(headers))

    def accept(self, stream: int) -> bytes:
        """Encode SYN_REPLY."""
        return _control(SYN_REPLY, 0, stream.to_bytes(4, "big") + self._headers({}))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        parts = [len(headers).to_bytes(4, "big")]
        for text in (text for pair in headers.items() for text in pair):
            data = text.encode()
            parts += [len(data).to_bytes(4, "big"), data]
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data_frame(stream: int, data: bytes, *, last: bool = False) -> bytes:
    return stream.to_bytes(4, "big") + bytes((FIN if last else 0,)) + len(data).to_bytes(3, "big") + data


def reset(stream: int, code: int) -> bytes:
    return _control(RST_STREAM, 0, stream.to_bytes(4, "big") + code.to_bytes(4, "big"))


def ping(number: int) -> bytes:
    return _control(PING, 0, number.to_bytes(4, "big"))


def go_away(last: int) -> bytes:
    """Encode GOAWAY: streams after the last one are not processed."""
    return _control(GOAWAY, 0, last.to_bytes(4, "big") + bytes(4))


def _control(kind: int, flags: int, body: bytes) -> bytes:
    first = 1 << 31 | _VERSION << 16 | kind
    return first.to_bytes(4, "big") + bytes((flags,)) + len(body).to_bytes(3, "big") + body
