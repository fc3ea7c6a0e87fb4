"""An answer as HTTP/1.1 writes it, put together from the pieces in which it comes.

Nothing is guessed: what is not written as it should be is `NotHttp`, and an answer that is longer than allowed is
refused before it is held.
"""

from __future__ import annotations

import re
import zlib
from typing import Final, NamedTuple

from ostinato.client.transport import AnswerTooLarge

_LONGEST_HEAD: Final = 64 * 1024
_LONGEST_SIZE: Final = 1024  # bytes of a line that says how long a chunk is
_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_UNTIL_CLOSED: Final = -1
_CHUNKED: Final = -2
_GZIP: Final = 31  # of zlib: with the header and the checksum of gzip


class NotHttp(Exception):  # noqa: N818 - what is the matter
    """Something else than HTTP came, or HTTP that is broken."""


class Message(NamedTuple):
    """A whole answer. Names of headers are lower case; of one that came more than once there is the first value."""

    status: int
    headers: dict[str, str]
    warnings: list[str]  # all values of that header
    body: bytes
    keeps: bool  # the connection serves again


class MessageReader:
    """Reads one answer."""

    def __init__(self, longest: int) -> None:
        self._longest = longest  # bytes of a body
        self._rest = b""  # that is not read yet: of the head, or of chunks
        self._head: Message | None = None  # without the body
        self._length = 0  # of the body, or how its end is known
        self._parts: list[bytes] = []  # of the body
        self._size = 0  # of the parts

    @property
    def has_begun(self) -> bool:
        return self._head is not None

    def feed(self, data: bytes) -> Message | None:
        """The answer, when all of it has come."""
        while self._head is None:
            self._rest += data
            end = self._rest.find(b"\r\n\r\n")
            if end < 0 or end > _LONGEST_HEAD:
                if len(self._rest) > _LONGEST_HEAD or not b"HTTP/1.".startswith(self._rest[:7]):
                    raise NotHttp
                return None
            head, data, self._rest = self._rest[:end], self._rest[end + 4 :], b""
            self._read_head(head)
        if self._length == _CHUNKED:
            return self._read_chunks(data)
        left = self._length - self._size
        if self._length == _UNTIL_CLOSED or len(data) < left:
            self._add(data)
            return None
        self._add(data[:left])
        return self._whole(more=len(data) > left)

    def end(self) -> Message | None:
        """The connection was closed: the answer, if that is how its end is known."""
        return self._whole() if self._head is not None and self._length == _UNTIL_CLOSED else None

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        status = _STATUS.fullmatch(first)
        if status is None:
            raise NotHttp
        headers: dict[str, str] = {}
        warnings: list[str] = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not _NAME.fullmatch(name):
                raise NotHttp
            name, value = name.lower(), value.strip(" \t")
            if name == "content-length" and headers.get(name, value) != value:
                raise NotHttp
            headers.setdefault(name, value)
            if name == "warning":
                warnings.append(value)
        code = int(status[2])
        if code == 101:
            raise NotHttp  # nobody has asked for another protocol
        if code < 200:
            return  # the answer is still to come
        self._length = _length(code, headers)
        keeps = (
            status[1] == "1" and self._length != _UNTIL_CLOSED and "close" not in headers.get("connection", "").lower()
        )
        self._head = Message(code, headers, warnings, b"", keeps)

    def _add(self, data: bytes) -> None:
        if data:
            self._parts.append(data)
            self._size += len(data)
            if self._size > self._longest:
                raise AnswerTooLarge

    def _read_chunks(self, data: bytes) -> Message | None:
        rest, at = self._rest + data, 0
        while True:
            end = rest.find(b"\r\n", at, at + _LONGEST_SIZE)
            if end < 0:
                if len(rest) - at >= _LONGEST_SIZE:
                    raise NotHttp
                break
            size = _SIZE.fullmatch(rest[at:end].partition(b";")[0].strip())
            if size is None:
                raise NotHttp
            length = int(size[0], 16)
            if not length:
                return self._read_trailer(rest, at, end)
            if self._size + length > self._longest:
                raise AnswerTooLarge
            start, after = end + 2, end + 2 + length
            if len(rest) < after + 2:
                break
            if rest[after : after + 2] != b"\r\n":
                raise NotHttp
            self._add(rest[start:after])
            at = after + 2
        self._rest = rest[at:]
        return None

    def _read_trailer(self, rest: bytes, at: int, end: int) -> Message | None:
        """What comes behind the last chunk, which ends with an empty line."""
        last = rest.find(b"\r\n\r\n", end)
        if last < 0:
            if len(rest) - at > _LONGEST_HEAD:
                raise NotHttp
            self._rest = rest[at:]
            return None
        return self._whole(more=len(rest) > last + 4)

    def _whole(self, *, more: bool = False) -> Message:
        """`more` came behind the answer, which nobody has asked for: the connection is of no more use."""
        assert self._head is not None
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        encoding = self._head.headers.get("content-encoding", "identity").lower()
        if encoding != "identity" and body:
            body = self._decompressed(body, encoding)
        return self._head._replace(body=body, keeps=self._head.keeps and not more)

    def _decompressed(self, body: bytes, encoding: str) -> bytes:
        if encoding not in ("gzip", "x-gzip"):
            raise NotHttp
        decompressor = zlib.decompressobj(_GZIP)
        try:
            whole = decompressor.decompress(body, self._longest)
        except zlib.error:
            raise NotHttp from None
        if decompressor.unconsumed_tail:
            raise AnswerTooLarge
        if not decompressor.eof:
            raise NotHttp
        return whole


def _length(code: int, headers: dict[str, str]) -> int:
    if code in (204, 304):
        return 0
    encoding = headers.get("transfer-encoding")
    if encoding is not None:
        if encoding.lower() != "chunked" or "content-length" in headers:
            raise NotHttp
        return _CHUNKED
    text = headers.get("content-length")
    if text is None:
        return _UNTIL_CLOSED
    if not (text.isascii() and text.isdecimal()):
        raise NotHttp
    return int(text)
