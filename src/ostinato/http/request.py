"""HTTP/1.1 requests as they are on the wire: heads and bodies, read strictly.

What is ambiguous is refused, in the words of Go's net/http, so that nothing in front of the server can disagree with
it about where a request ends. Lines end in CRLF; lines are not folded; a length is digits; `chunked` is the only
transfer coding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

MOST_HEAD = 1 << 17  # bytes of a request line and its headers
_MOST_LINE = 4096  # bytes of a chunk's size with its extensions
_MOST_TRAILER = 1 << 16
_REMEMBERED = 1024  # bytes of header fields up to which they are read once and remembered

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb"+) ([!-~\x80-\xff]+) HTTP/([0-9])\.([0-9])")
_FIELDS = re.compile(rb"(?:" + _TOKEN + rb"+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*")
_SPACED_NAME = re.compile(_TOKEN + rb"+[ \t][^:]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")
_HEX = re.compile(rb"[0-9A-Fa-f]{1,16}")
_ABSOLUTE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class Malformed(Exception):  # noqa: N818 - it is not an error of ours
    """Bytes that are no request. The connection is of no use any more."""

    def __init__(self, status: int = 400, why: str = "") -> None:
        super().__init__(why or "malformed request")
        self.status = status
        self.why = why  # what the client may know


class Fields:
    """The header fields of a request, and what they say about it. Many requests may share them: they never change."""

    __slots__ = ("chunked", "expects", "headers", "keep_alive", "length", "repeated", "upgrade")

    def __init__(self, data: bytes, *, old: bool) -> None:
        """`old`: of HTTP/1.0."""
        self.headers: dict[str, str] = {}  # by name in lower case, the first of each
        self.repeated: Mapping[str, list[str]] = {}  # all values of those that came more than once
        self.length = 0  # of the body, if it is not chunked
        self.chunked = False
        self.keep_alive = True
        self.expects = False  # the client waits for "100 Continue" before it sends the body
        self.upgrade = False  # the client asks for WebSocket
        if data:
            _read_fields(self, data)
        _read_framing(self, old=old)


# A client sends the same fields with nearly every request that has no body.
_remembered_fields = lru_cache(maxsize=512)(lambda data, old: Fields(data, old=old))


class Head(msgspec.Struct):
    """A request line and its headers."""

    method: str
    path: str  # as it came
    query: str
    old: bool  # of HTTP/1.0, whose clients know no chunks
    # As the fields say:
    headers: Mapping[str, str]
    repeated: Mapping[str, list[str]]
    length: int
    chunked: bool
    keep_alive: bool
    expects: bool
    upgrade: bool


def parse_head(data: bytes) -> Head:
    """The head of a request, without the empty line that ends it."""
    line, _, fields = data.partition(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise Malformed
    method, target, major, minor = match.groups()
    if major != b"1":
        raise Malformed(505, "unsupported protocol version")
    path, _, query = _origin(target.decode("utf-8", "replace")).partition("?")
    if "%" in path and _BAD_ESCAPE.search(path):
        raise Malformed
    old = minor == b"0"
    told = _remembered_fields(fields, old) if len(fields) <= _REMEMBERED else Fields(fields, old=old)
    return Head(
        method.decode(),
        path,
        query,
        old,
        told.headers,
        told.repeated,
        told.length,
        told.chunked,
        told.keep_alive,
        told.expects,
        told.upgrade,
    )


def _origin(target: str) -> str:
    """The path and query of a target."""
    if target[0] == "/" or target == "*":
        return target
    match = _ABSOLUTE.match(target)
    if match is None:
        raise Malformed
    rest = target[match.end() :]
    return rest if rest.startswith("/") else "/" + rest


def _read_fields(into: Fields, fields: bytes) -> None:
    if _FIELDS.fullmatch(fields + b"\r\n") is None:
        raise _fault(fields)
    headers = into.headers
    repeated: dict[str, list[str]] = {}
    for line in fields.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        name = name.lower()
        value = value.strip(" \t")
        if name not in headers:
            headers[name] = value
        else:
            repeated.setdefault(name, [headers[name]]).append(value)
    if repeated:
        into.repeated = repeated


def _fault(fields: bytes) -> Malformed:
    """What is wrong with header fields, as far as the client is told."""
    spaced = any(_SPACED_NAME.match(line) for line in fields.split(b"\r\n"))
    return Malformed(400, "invalid header name" if spaced else "")


def _read_framing(into: Fields, *, old: bool) -> None:
    """Where the body ends, and what becomes of the connection after it."""
    headers, repeated = into.headers, into.repeated
    host = headers.get("host")
    if host is None:
        if not old:
            raise Malformed(400, "missing required Host header")
    elif "host" in repeated:
        raise Malformed
    elif _HOST.fullmatch(host) is None:
        raise Malformed(400, "malformed Host header")
    length = headers.get("content-length")
    if length is not None:
        if any(other != length for other in repeated.get("content-length", ())):
            raise Malformed
        if not (length.isascii() and length.isdigit()) or len(length) > 18:
            raise Malformed
        into.length = int(length)
    into.keep_alive = not old
    coding = headers.get("transfer-encoding")
    if coding is not None and not old:
        if coding.lower() != "chunked" or "transfer-encoding" in repeated:
            raise Malformed(501)
        into.chunked = True
        into.length = 0
        if length is not None:  # chunked wins; who sends both may be up to something
            into.keep_alive = False
    connection = headers.get("connection")
    if connection is not None:
        words = {word.strip().lower() for line in repeated.get("connection", [connection]) for word in line.split(",")}
        if "close" in words:
            into.keep_alive = False
        into.upgrade = "upgrade" in words and headers.get("upgrade", "").lower() == "websocket"
    expect = headers.get("expect")
    if expect is not None and not old:
        if expect.lower() != "100-continue":
            raise Malformed(417)
        into.expects = True


class Body:
    """The body of one request, as it comes in."""

    __slots__ = ("_chunk", "_line", "chunked", "complete", "data", "remaining", "size")

    def __init__(self, head: Head) -> None:
        self.chunked = head.chunked
        self.remaining = head.length  # of the body, or of the present chunk
        self.complete = not head.chunked and head.length == 0
        self.data: bytearray | None = bytearray()  # None: what comes is thrown away
        self.size = 0  # bytes that have come, kept or not
        self._line = "size"  # which line comes next: of a chunk's size, its end, or the trailer
        self._chunk = 0  # bytes of trailer so far

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to the body; the rest is returned."""
        if self.chunked:
            return self._feed_chunks(data)
        if len(data) < self.remaining:
            self._keep(data)
            self.remaining -= len(data)
            return b""
        rest = data[self.remaining :]
        self._keep(data[: self.remaining] if rest else data)
        self.remaining = 0
        self.complete = True
        return rest

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        if self.data is not None:
            self.data += data

    def _feed_chunks(self, data: bytes) -> bytes:
        position = 0
        while not self.complete:
            if self.remaining:
                part = data[position : position + self.remaining]
                if not part:
                    return b""
                self._keep(part)
                self.remaining -= len(part)
                position += len(part)
                continue
            end = data.find(b"\r\n", position)
            if end < 0:
                rest = data[position:]
                if len(rest) > _MOST_LINE:
                    raise Malformed
                return rest
            self._read_line(data[position:end])
            position = end + 2
        return data[position:]

    def _read_line(self, line: bytes) -> None:
        if self._line == "end":  # of a chunk's data
            if line:
                raise Malformed
            self._line = "size"
        elif self._line == "size":
            digits = line.partition(b";")[0].rstrip(b" \t")
            if _HEX.fullmatch(digits) is None or len(line) > _MOST_LINE:
                raise Malformed
            self.remaining = int(digits, 16)
            self._line = "end" if self.remaining else "trailer"
        elif line:
            self._chunk += len(line)
            if self._chunk > _MOST_TRAILER:
                raise Malformed
        else:
            self.complete = True
