"""Responses of backends: a strict HTTP/1.1 parser.

What two parsers could read in two ways is refused instead of guessed: lines that end without CR, folded lines, spaces
in names, control characters, several lengths, a length beside a transfer encoding, sizes of chunks that are not plain
hexadecimal. A MalformedAnswer says what is wrong, in the words of Go's parser.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.http.byte_stream import ByteStream

_PIECE: Final = 1 << 16
_MOST_HEAD: Final = 1 << 20  # bytes of a head, and of those before it
_MOST_INTERIM: Final = 8  # answers that say that the answer is to come
_MOST_TRAILERS: Final = 1 << 16  # bytes
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_STATUS: Final = re.compile(rb"[1-9][0-9]{2}")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[\t ]*(;[\t\x20-\x7e\x80-\xff]*)?")
_SWITCHING: Final = 101
_BODILESS: Final = frozenset({204, 304})


class MalformedAnswer(ConnectionError):  # noqa: N818 - an answer
    """What came is not an answer in HTTP/1.1, or not one that can be read in one way alone."""


class Head(msgspec.Struct, frozen=True):
    status: int
    fields: Sequence[tuple[str, str]]  # in their order, names as they came
    headers: Mapping[str, str]  # the first value of each; names are lower case
    chunked: bool = False
    length: int | None = None  # None: until the end of the connection, if not chunked
    is_last: bool = False  # the connection cannot be used again

    def values(self, name: str) -> list[str]:
        """All values of a header, by its name in lower case."""
        return [value for each, value in self.fields if each.lower() == name]

    def words(self, name: str) -> set[str]:
        """The words of a header that is a list, in lower case."""
        return {word.strip().lower() for value in self.values(name) for word in value.split(",") if word.strip()}


async def read_head(stream: ByteStream) -> Head:
    """The head of an answer, after those that say it is to come (100, 103); one with 101 is an answer.

    A ConnectionError if what comes is no head of an answer: MalformedAnswer, or "EOF" if nothing comes.
    """
    budget = _MOST_HEAD
    for _ in range(_MOST_INTERIM):
        lines = []
        while line := await _line(stream):
            budget -= len(line) + 2
            if budget < 0:
                raise MalformedAnswer(f"net/http: server response headers exceeded {_MOST_HEAD} bytes; aborted")
            lines.append(line)
        head = _parsed(lines)
        if head.status >= 200 or head.status == _SWITCHING:
            return head
    raise MalformedAnswer("net/http: too many 1xx informational responses")


async def body_of(stream: ByteStream, head: Head) -> AsyncIterator[bytes]:
    """The body as it comes, to its end, trailers included, which are dropped; a ConnectionError if it breaks off."""
    if head.status in _BODILESS:
        return
    if head.chunked:
        while size := await _chunk_size(stream):
            async for piece in _exactly(stream, size):
                yield piece
            if await stream.read_exactly(2) != b"\r\n":
                raise MalformedAnswer("malformed chunked encoding")
        budget = _MOST_TRAILERS
        while line := await _line(stream):
            budget -= len(line)
            if budget < 0 or not _is_field(line):
                raise MalformedAnswer("malformed trailers")
    elif head.length is not None:
        async for piece in _exactly(stream, head.length):
            yield piece
    else:
        while piece := await stream.read(_PIECE):
            yield piece


async def _line(stream: ByteStream) -> bytes:
    line = await stream.read_until(b"\n")
    if not line.endswith(b"\r\n"):
        raise MalformedAnswer("malformed HTTP response: a line ends without a carriage return")
    return line[:-2]


def _parsed(lines: Sequence[bytes]) -> Head:
    if not lines:
        raise MalformedAnswer('malformed HTTP response ""')
    version, _, rest = lines[0].partition(b" ")
    status = rest.partition(b" ")[0]
    if not rest:
        raise MalformedAnswer(f"malformed HTTP response {_quoted(lines[0])}")
    if not _STATUS.fullmatch(status):
        raise MalformedAnswer(f"malformed HTTP status code {_quoted(status)}")
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise MalformedAnswer(f"malformed HTTP version {_quoted(version)}")
    if not _VALUE.fullmatch(rest):
        raise MalformedAnswer(f"malformed HTTP response {_quoted(lines[0])}")
    fields = []
    for line in lines[1:]:
        if not _is_field(line):
            raise MalformedAnswer(f"malformed MIME header line: {_quoted(line)}")
        name, _, value = line.partition(b":")
        fields.append((name.decode("ascii"), value.strip(b" \t").decode("latin-1")))
    headers: dict[str, str] = {}
    for field, text in fields:
        headers.setdefault(field.lower(), text)
    head = Head(int(status), fields, headers)
    chunked = _is_chunked(head, version)
    length = _length(head)
    if chunked and length is not None:
        raise MalformedAnswer("http: message has both Transfer-Encoding and Content-Length")
    is_last = version == b"HTTP/1.0" or (length is None and not chunked) or head.status in _BODILESS
    is_last |= "close" in head.words("connection")
    return msgspec.structs.replace(head, chunked=chunked, length=length, is_last=is_last)


def _is_field(line: bytes) -> bool:
    name, colon, value = line.partition(b":")
    return bool(colon) and _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


def _is_chunked(head: Head, version: bytes) -> bool:
    encodings = head.values("transfer-encoding")
    if not encodings:
        return False
    if len(encodings) > 1:
        raise MalformedAnswer(f"too many transfer encodings: [{' '.join(map(quote, encodings))}]")
    if encodings[0].lower() != "chunked" or version != b"HTTP/1.1":
        raise MalformedAnswer(f"unsupported transfer encoding: {quote(encodings[0])}")
    return True


def _length(head: Head) -> int | None:
    lengths = head.values("content-length")
    if not lengths:
        return None
    if len(set(lengths)) > 1:
        got = " ".join(map(quote, lengths))
        raise MalformedAnswer(f"http: message cannot contain multiple Content-Length headers; got [{got}]")
    if not _LENGTH.fullmatch(lengths[0]):
        raise MalformedAnswer(f"bad Content-Length {quote(lengths[0])}")
    return int(lengths[0])


async def _chunk_size(stream: ByteStream) -> int:
    size = _CHUNK.fullmatch(await _line(stream))
    if size is None:
        raise MalformedAnswer("malformed chunked encoding")
    return int(size[1], 16)


async def _exactly(stream: ByteStream, size: int) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await stream.read(min(size, _PIECE))
        if not piece:
            raise ConnectionError("unexpected EOF")
        size -= len(piece)
        yield piece


def _quoted(line: bytes) -> str:
    return quote(line[:128].decode("latin-1"))
