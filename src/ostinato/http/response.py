"""Parser of responses.

- Interim responses (1xx) are skipped; an upgrade (101) is a response, where one was requested.
- The received body is buffered until `take()`; the caller of `feed()` bounds how much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.http.body import CHUNKED, UNTIL_CLOSED, BodyParser
from ostinato.http.errors import InvalidHttp
from ostinato.http.fields import MAX_HEAD, Repeated, content_length, list_elements, ordered_fields, parse_fields, shown

_MAX_INTERIM: Final = 8  # responses before the final one
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_STATUS: Final = re.compile(rb"[1-9][0-9]{2}")
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_SWITCHING_PROTOCOLS: Final = 101
_WITHOUT_BODY: Final = (204, 304)


class ResponseParser(BodyParser):
    """Parser of one response. The attributes are set once the head has been received, when `status` is not 0."""

    status = 0
    headers: Mapping[str, str] = MappingProxyType({})  # the first value of each field, by its name in lower case
    repeated: Repeated = MappingProxyType({})  # all values of the fields that are repeated
    keep_alive = False  # the connection can be reused once the response is complete
    buffered = 0  # bytes of the body that were not taken yet
    rest = b""  # received after the response: after an upgrade, data of the other protocol
    _head = b""  # what was received of the head; later its fields
    _searched = 0  # bytes of _head that contain no end of a head
    _interim = 0  # responses so far

    def __init__(
        self, *, bodiless: bool = False, accepts_upgrade: bool = False, lenient_line_ends: bool = False
    ) -> None:
        """Parameters:

        - `bodiless`: the response has no body whatever its headers say, as those to HEAD and CONNECT.
        - `accepts_upgrade`: status 101 is a response. Otherwise it is rejected.
        - `lenient_line_ends`: lines of the head may end without CR, as in net/http. Safe only on a connection that
          carries a single response.
        """
        self._bodiless = bodiless
        self._accepts_upgrade = accepts_upgrade
        self._lenient_line_ends = lenient_line_ends
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Parse received data. Must not be called once the response is complete. Raises `InvalidHttp`."""
        if not self.status:
            data = self._feed_head(data)
            if not self.status:
                return
        rest = self.feed_body(data)
        if rest:
            self.rest = rest
            self.keep_alive = False

    def end(self) -> None:
        if self.status:
            super().end()

    def add(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
            self.buffered += len(data)

    def take(self) -> bytes:
        """Remove and return the buffered part of the body."""
        pieces, self._pieces, self.buffered = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def values(self, name: str) -> Sequence[str]:
        """Return all values of a header, by its name in lower case."""
        if name not in self.headers:
            return ()
        return self.repeated.get(name) or (self.headers[name],)

    def elements(self, name: str) -> set[str]:
        """Return the elements of a header that is a comma-separated list, in lower case."""
        return list_elements(self.values(name))

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The header fields in their order, with their names as received."""
        return ordered_fields(self._head, "surrogateescape")

    def _feed_head(self, data: bytes) -> bytes:
        """Parse heads up to the final one; return what follows it."""
        while not self.status:
            if self._head:
                data = self._head + data
            if self._lenient_line_ends:
                data = _with_carriage_returns(data)
            end = data.find(b"\r\n\r\n", max(0, self._searched - 3))
            if end < 0 or end > MAX_HEAD:
                self._check_partial_head(data)
                self._head, self._searched = data, len(data)
                return b""
            head, data, self._head, self._searched = data[:end], data[end + 4 :], b"", 0
            self._parse_head(head)
        return data

    def _check_partial_head(self, data: bytes) -> None:
        if len(data) > MAX_HEAD:
            raise InvalidHttp(f"net/http: server response headers exceeded {MAX_HEAD} bytes; aborted")
        if not data.startswith(b"HTTP/1."[: len(data)]):
            raise _invalid_status_line(data.partition(b"\r\n")[0])
        if data.count(b"\n", self._searched) != data.count(b"\r\n", max(0, self._searched - 1)):
            raise InvalidHttp("malformed HTTP response: a line ends without a carriage return")

    def _parse_head(self, head: bytes) -> None:
        line, _, lines = head.partition(b"\r\n")
        minor, status = _parse_status_line(line)
        headers, repeated = parse_fields(lines, "surrogateescape")
        if status < 200 and not (status == _SWITCHING_PROTOCOLS and self._accepts_upgrade):
            self._interim += 1
            if status == _SWITCHING_PROTOCOLS:
                raise InvalidHttp("the server switched protocols without a request for it")
            if self._interim >= _MAX_INTERIM:
                raise InvalidHttp("net/http: too many 1xx informational responses")
            return
        self.status, self.headers, self.repeated, self._head = status, headers, repeated, lines
        framing = self._read_framing(minor)
        keep_alive = minor == b"1" and framing != UNTIL_CLOSED
        if self._bodiless or status < 200:
            framing, keep_alive = 0, minor == b"1"
        elif status in _WITHOUT_BODY:  # its sender may nevertheless send a body
            framing, keep_alive = 0, minor == b"1" and framing in (0, UNTIL_CLOSED)
        self.keep_alive = keep_alive and not ("connection" in headers and "close" in self.elements("connection"))
        self.begin_body(framing)

    def _read_framing(self, minor: bytes) -> int:
        coding = self.headers.get("transfer-encoding")
        length = content_length(self.headers, self.repeated)
        if coding is None:
            return UNTIL_CLOSED if length is None else length
        if "transfer-encoding" in self.repeated:
            found = " ".join(map(quote, self.repeated["transfer-encoding"]))
            raise InvalidHttp(f"too many transfer encodings: [{found}]")
        if coding.lower() != "chunked" or minor != b"1":
            raise InvalidHttp(f"unsupported transfer encoding: {quote(coding)}")
        if length is not None:
            raise InvalidHttp("http: message has both Transfer-Encoding and Content-Length")
        return CHUNKED


def _with_carriage_returns(data: bytes) -> bytes:
    """Insert the CR that the lines of a head lack. Until its end is received, a last CR may belong to a line end."""
    end = _END_OF_HEAD.search(data)
    head, rest = (data, b"") if end is None else (data[: end.end()], data[end.end() :])
    return head.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + rest


@lru_cache(maxsize=64)  # a server sends the same few
def _parse_status_line(line: bytes) -> tuple[bytes, int]:
    """Return the minor version and the status code."""
    found = _STATUS_LINE.fullmatch(line)
    if found is None:
        raise _invalid_status_line(line)
    return found[1], int(found[2])


def _invalid_status_line(line: bytes) -> InvalidHttp:
    version, _, rest = line.partition(b" ")
    status = rest.partition(b" ")[0]
    if rest and not _STATUS.fullmatch(status):
        return InvalidHttp(f"malformed HTTP status code {shown(status)}")
    if rest and version not in (b"HTTP/1.1", b"HTTP/1.0"):
        return InvalidHttp(f"malformed HTTP version {shown(version)}")
    return InvalidHttp(f"malformed HTTP response {shown(line)}")
