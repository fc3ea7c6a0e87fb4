"""Incremental parser of an HTTP/1.1 response.

- Strict: any deviation from the syntax is `InvalidHttp`; nothing is guessed.
- The received body is buffered in `pieces` until `take()`; the caller of `feed()` bounds how much.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

_MAX_HEAD: Final = 64 * 1024
_MAX_SIZE_LINE: Final = 1024  # bytes of the line with the size of a chunk
_MAX_PIECE: Final = 1024 * 1024  # bytes of decompressed output at a time
_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_UNTIL_CLOSED: Final = -1
_CHUNKED: Final = -2
_MAX_LENGTH_DIGITS: Final = 18  # digits
_GZIP: Final = 31  # zlib's window bits for the gzip format


class InvalidHttp(Exception):  # noqa: N818
    """The data is not a well-formed HTTP/1.1 response."""


class MessageReader:
    """Parser of one response.

    Header names are in lower case. Of a repeated header the first value is kept, of `connection` all of them.
    """

    # The values before the head has been received
    status = 0
    headers: Mapping[str, str] = MappingProxyType({})
    warnings: Sequence[str] = ()  # all values of the `Warning` header
    keep_alive = False  # the connection can be reused once the response is complete
    compressed = False  # the body is in gzip: use a `Decompressor`
    complete = False  # the whole body has been received
    buffered = 0  # bytes in `pieces`
    _rest = b""  # received, but not parsed yet: part of the head or of a chunk's framing
    _length = 0  # of the body, or one of the constants above
    _left = 0  # bytes of the body or the chunk still to be received
    _after_chunk = False  # the line end after a chunk is still to be received

    def __init__(self, *, bodiless: bool = False) -> None:
        """`bodiless`: the response has no body whatever its headers say, as those to HEAD and CONNECT."""
        self._bodiless = bodiless
        self.pieces: list[bytes] = []  # of the body, not taken yet

    @property
    def length(self) -> int | None:
        """The `Content-Length`, of the compressed body if it is; None if there is none."""
        return self._length if self._length >= 0 else None

    def feed(self, data: bytes) -> None:
        """Parse received data. Must not be called once the response is complete."""
        while not self.status:
            if self._rest:
                data = self._rest + data
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > _MAX_HEAD:
                if len(data) > _MAX_HEAD or not b"HTTP/1.".startswith(data[:7]):
                    raise InvalidHttp
                self._rest = data
                return
            head, data, self._rest = data[:end], data[end + 4 :], b""
            self._read_head(head)
        if self._length == _CHUNKED:
            self._read_chunks(data)
        elif self._length == _UNTIL_CLOSED:
            self._add(data)
        else:
            if len(data) > self._left:  # data beyond the response: the connection cannot be reused
                data, self.keep_alive = data[: self._left], False
            self._left -= len(data)
            self._add(data)
            self.complete = not self._left

    def end(self) -> None:
        """The server closed the connection, which completes a response without length."""
        if self.status and self._length == _UNTIL_CLOSED:
            self.complete = True

    def take(self) -> bytes:
        """Remove and return the buffered part of the body."""
        pieces, self.pieces, self.buffered = self.pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _add(self, data: bytes) -> None:
        if data:
            self.pieces.append(data)
            self.buffered += len(data)

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        minor, code = _status(first)
        headers: dict[str, str] = {}
        more_warnings: list[str] = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise InvalidHttp
            name, value = _lowered(name), value.strip(" \t")
            if name not in headers:
                headers[name] = value
            elif name == "content-length" and headers[name] != value:
                raise InvalidHttp
            elif name == "warning":
                more_warnings.append(value)
            elif name == "connection":
                headers[name] += f", {value}"
            elif name == "transfer-encoding":
                raise InvalidHttp
        if code == 101:
            raise InvalidHttp  # no upgrade was requested
        if code < 200:
            return  # an interim response: the final one follows
        self.status, self.headers = code, headers
        if "warning" in headers:
            self.warnings = [headers["warning"], *more_warnings]
        self._length = 0 if self._bodiless or code in (204, 304) else _length(headers)
        self._left = max(self._length, 0)
        self.compressed = _is_compressed(headers)
        self.keep_alive = minor == "1" and self._length != _UNTIL_CLOSED
        if self.keep_alive and "connection" in headers:
            self.keep_alive = "close" not in headers["connection"].lower()

    def _read_chunks(self, data: bytes) -> None:
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, size = 0, len(data)
        while at < size:
            if self._left:
                piece = data[at : at + self._left]
                self._add(piece)
                at += len(piece)
                self._left -= len(piece)
                self._after_chunk = not self._left
            elif self._after_chunk:
                if not b"\r\n".startswith(data[at : at + 2]):
                    raise InvalidHttp
                if size - at < 2:
                    break
                at += 2
                self._after_chunk = False
            else:
                end = data.find(b"\r\n", at, at + _MAX_SIZE_LINE)
                if end < 0:
                    if size - at >= _MAX_SIZE_LINE:
                        raise InvalidHttp
                    break
                found = _SIZE.fullmatch(data[at:end].partition(b";")[0].strip())
                if found is None:
                    raise InvalidHttp
                self._left = int(found[0], 16)
                if not self._left:
                    self._read_trailer(data, at, end)
                    return
                at = end + 2
        if at < size:
            self._rest = data[at:]

    def _read_trailer(self, data: bytes, at: int, end: int) -> None:
        """Skip the trailer section after the last chunk, up to the empty line."""
        last = data.find(b"\r\n\r\n", end)
        if last >= 0:
            self.complete = True
            self.keep_alive = self.keep_alive and len(data) == last + 4
        elif len(data) - at > _MAX_HEAD:
            raise InvalidHttp
        else:
            self._rest = data[at:]


class Decompressor:
    """Decompressor of a gzip body of one or more members."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP)  # of the current member
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress data, in pieces of bounded size however well it was compressed."""
        self._begun = True
        while data or not self._inner.eof:
            if self._inner.eof:
                self._inner = zlib.decompressobj(_GZIP)
            try:
                piece = self._inner.decompress(data, _MAX_PIECE)
            except zlib.error:
                raise InvalidHttp from None
            if piece:
                yield piece
            data = self._inner.unused_data or self._inner.unconsumed_tail
            if not data and len(piece) < _MAX_PIECE:
                return

    def end(self) -> None:
        """Check that the body was complete."""
        if self._begun and not self._inner.eof:
            raise InvalidHttp


def _is_compressed(headers: dict[str, str]) -> bool:
    encoding = headers.get("content-encoding")
    if encoding is None or encoding.lower() == "identity":
        return False
    if encoding.lower() not in ("gzip", "x-gzip"):
        raise InvalidHttp  # no other encoding was requested
    return True


# Cached: a server sends the same few status lines and header names.


@lru_cache(maxsize=64)
def _status(first: str) -> tuple[str, int]:
    """Return the minor version and the status code."""
    found = _STATUS.fullmatch(first)
    if found is None:
        raise InvalidHttp
    return found[1], int(found[2])


@lru_cache(maxsize=256)
def _lowered(name: str) -> str:
    if not HEADER_NAME.fullmatch(name):
        raise InvalidHttp
    return name.lower()


def _length(headers: dict[str, str]) -> int:
    encoding = headers.get("transfer-encoding")
    if encoding is not None:
        if encoding.lower() != "chunked" or "content-length" in headers:
            raise InvalidHttp
        return _CHUNKED
    text = headers.get("content-length")
    if text is None:
        return _UNTIL_CLOSED
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_LENGTH_DIGITS):
        raise InvalidHttp
    return int(text)
