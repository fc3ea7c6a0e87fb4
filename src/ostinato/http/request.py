"""Parser of requests: heads and bodies.

Rejections have the status and the words of Go's net/http.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ostinato.http.body import CHUNKED, BodyParser
from ostinato.http.errors import InvalidHttp
from ostinato.http.fields import Repeated, content_length, list_elements, parse_fields, shown

_MAX_CACHED: Final = 1024  # bytes of header fields up to which the parsed fields are cached

_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) HTTP/([0-9])\.([0-9])")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")
_ABSOLUTE: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class RequestFields:
    """The header fields of a request. Immutable: requests with the same fields share them."""

    __slots__ = ("chunked", "expects_continue", "headers", "keep_alive", "length", "repeated", "websocket")

    def __init__(self, data: bytes, *, http_1_0: bool) -> None:
        self.headers, self.repeated = parse_fields(data, "replace")
        self.length = 0
        self.chunked = False
        self.keep_alive = not http_1_0
        self.expects_continue = False
        self.websocket = False
        self._check_host(http_1_0)
        self._read_framing(http_1_0)
        self._read_connection()
        expect = self.headers.get("expect")
        if expect is not None and not http_1_0:
            if expect.lower() != "100-continue":
                raise InvalidHttp(f"unsupported expectation {expect!r}", status=417)
            self.expects_continue = True

    def _check_host(self, http_1_0: bool) -> None:
        host = self.headers.get("host")
        if host is None:
            if not http_1_0:
                raise InvalidHttp("missing Host header", detail="missing required Host header")
        elif "host" in self.repeated:
            raise InvalidHttp("too many Host headers")
        elif _HOST.fullmatch(host) is None:
            raise InvalidHttp("malformed Host header", detail="malformed Host header")

    def _read_framing(self, http_1_0: bool) -> None:
        length = content_length(self.headers, self.repeated)
        coding = self.headers.get("transfer-encoding")
        if coding is None or http_1_0:
            self.length = length or 0
            return
        if coding.lower() != "chunked" or "transfer-encoding" in self.repeated:
            raise InvalidHttp(f"unsupported transfer encoding: {coding!r}", status=501)
        self.chunked = True
        if length is not None:  # the chunks count, as in net/http; but a proxy may have read it otherwise
            self.keep_alive = False

    def _read_connection(self) -> None:
        connection = self.headers.get("connection")
        if connection is not None:
            options = list_elements(self.repeated.get("connection", (connection,)))
            if "close" in options:
                self.keep_alive = False
            self.websocket = "upgrade" in options and self.headers.get("upgrade", "").lower() == "websocket"


# A client sends the same fields with nearly every request, except for the length of the body. Nodes of one machine
# share connections, and each has an identity: there may be thousands.
_cached_fields = lru_cache(maxsize=4096)(lambda data, http_1_0: RequestFields(data, http_1_0=http_1_0))
_LENGTH: Final = b"\r\nContent-Length: "
_MAX_LENGTH_DIGITS: Final = 9


class RequestHead(msgspec.Struct):
    """A request line and its header fields."""

    method: str
    path: str  # as received
    query: str
    http_1_0: bool  # the client does not support chunked responses
    headers: Mapping[str, str]  # the first value of each field, by its name in lower case
    repeated: Repeated  # all values of the fields that are repeated
    length: int  # of the body, unless it is chunked
    chunked: bool
    keep_alive: bool
    expects_continue: bool  # the client sends the body after a "100 Continue"
    websocket: bool  # the client requests an upgrade to WebSocket


def parse_head(data: bytes) -> RequestHead:
    """Parse the head of a request, without the empty line that ends it. Raises `InvalidHttp`."""
    line, _, lines = data.partition(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise InvalidHttp(f"malformed HTTP request {shown(line)}")
    method, target, major, minor = match.groups()
    if major != b"1":
        raise InvalidHttp("unsupported HTTP version", status=505, detail="unsupported protocol version")
    path, _, query = _path_and_query(target.decode("utf-8", "replace")).partition("?")
    if "%" in path and _BAD_ESCAPE.search(path):
        raise InvalidHttp("invalid URL escape")
    http_1_0 = minor == b"0"
    if len(lines) > _MAX_CACHED:
        return _head(method, path, query, RequestFields(lines, http_1_0=http_1_0), http_1_0)
    common, found, length = lines.rpartition(_LENGTH)
    if found and len(length) <= _MAX_LENGTH_DIGITS and length.isdigit():  # it is the last field
        fields = _cached_fields(common, http_1_0)
        if "content-length" not in fields.headers and not fields.chunked:
            head = _head(method, path, query, fields, http_1_0)
            head.headers = {**fields.headers, "content-length": length.decode()}
            head.length = int(length)
            return head
    return _head(method, path, query, _cached_fields(lines, http_1_0), http_1_0)


def _head(method: bytes, path: str, query: str, fields: RequestFields, http_1_0: bool) -> RequestHead:
    return RequestHead(
        method.decode(),
        path,
        query,
        http_1_0,
        fields.headers,
        fields.repeated,
        fields.length,
        fields.chunked,
        fields.keep_alive,
        fields.expects_continue,
        fields.websocket,
    )


def _path_and_query(target: str) -> str:
    if target[0] == "/" or target == "*":
        return target
    match = _ABSOLUTE.match(target)
    if match is None:
        raise InvalidHttp(f"invalid request target {target[:128]!r}")
    rest = target[match.end() :]
    return rest if rest.startswith("/") else "/" + rest


class RequestBody(BodyParser):
    """Parser of the body of a request, which collects it."""

    def __init__(self, head: RequestHead) -> None:
        self.data: bytearray | None = bytearray()  # None: discard what is received
        self.size = 0  # bytes received, discarded or not
        self.begin_body(CHUNKED if head.chunked else head.length)
        self.complete = not head.chunked and not head.length

    def feed(self, data: bytes) -> bytes:
        """Parse received data, and return what follows the body. Raises `InvalidHttp`."""
        return self.feed_body(data)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if self.data is not None:
            self.data += data
