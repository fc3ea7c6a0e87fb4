"""Header fields: the lines after a request line or status line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.http.errors import InvalidHttp

MAX_HEAD: Final = 1 << 17  # bytes of a head, without the empty line that ends it
MAX_FIELDS: Final = 1000

FIELD_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
FIELD_LINE: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")
CONTROLS: Final = bytes({*range(32), 127} - {ord("\t")})
_NAME_WITH_SPACE: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t][^:]*:")
_MAX_LENGTH_DIGITS: Final = 18
_MAX_SHOWN: Final = 128  # characters of a malformed line in a message
_MAX_CACHED_LINES: Final = 4096
_MAX_CACHED_LINE: Final = 128  # characters

_lines: dict[str, tuple[str, str]] = {}  # parsed lines: most fields of most messages are the same
_UNIQUE: Final = ("audit-id", "content-length")  # fields that differ from message to message

Headers = dict[str, str]
Repeated = Mapping[str, list[str]]
_NONE: Final[Repeated] = {}


def parse_fields(data: bytes, errors: str) -> tuple[Headers, Repeated]:
    """Return the first value of each field by its name in lower case, and all values of those that are repeated.

    - `data`: the lines, without the last line end.
    - `errors`: how to decode values that are not UTF-8, as in `bytes.decode`.
    """
    if not data:
        return {}, _NONE
    if len(data) - len(data.translate(None, CONTROLS)) != 2 * data.count(b"\r\n"):
        raise _control_character(data)
    lines = data.decode("utf-8", errors).split("\r\n")
    if len(lines) > MAX_FIELDS:
        raise InvalidHttp(f"more than {MAX_FIELDS} header fields", status=431)
    headers: Headers = {}
    repeated: dict[str, list[str]] | None = None
    for line in lines:
        name, value = _lines.get(line) or _parse_line(line)
        if name not in headers:
            headers[name] = value
        elif repeated is None:
            repeated = {name: [headers[name], value]}
        else:
            repeated.setdefault(name, [headers[name]]).append(value)
    return headers, _NONE if repeated is None else repeated


def ordered_fields(data: bytes, errors: str) -> list[tuple[str, str]]:
    """Return the fields in their order, with their names as received. `data` must be valid: see `parse_fields`."""
    lines = data.decode("utf-8", errors).split("\r\n") if data else []
    return [(name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines)]


def content_length(headers: Mapping[str, str], repeated: Repeated) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    if repeated and any(other != text for other in repeated.get("content-length", ())):
        found = " ".join(map(quote, repeated["content-length"]))
        raise InvalidHttp(f"http: message cannot contain multiple Content-Length headers; got [{found}]")
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS):
        raise InvalidHttp(f"bad Content-Length {quote(text[:_MAX_SHOWN])}")
    return int(text)


def list_elements(values: Sequence[str]) -> set[str]:
    """Return the elements of a header that is a comma-separated list, in lower case."""
    return {word.strip().lower() for value in values for word in value.split(",") if word.strip()}


def shown(data: bytes) -> str:
    """Quote received data for a message."""
    return quote(data[:_MAX_SHOWN].decode("latin-1"))


def _parse_line(line: str) -> tuple[str, str]:
    """Return the name in lower case, and the value."""
    name, colon, value = line.partition(":")
    if not colon or not FIELD_NAME.fullmatch(name):
        detail = "invalid header name" if _NAME_WITH_SPACE.match(line) else ""
        text = line[:_MAX_SHOWN].encode("utf-8", "surrogateescape")
        raise InvalidHttp(f"malformed MIME header line: {shown(text)}", detail=detail)
    field = name.lower(), value.strip(" \t")
    if len(line) <= _MAX_CACHED_LINE and field[0] not in _UNIQUE:
        if len(_lines) >= _MAX_CACHED_LINES:
            _lines.clear()
        _lines[line] = field
    return field


def _control_character(data: bytes) -> InvalidHttp:
    for line in data.split(b"\r\n"):
        if b"\n" in line:
            return InvalidHttp("malformed HTTP message: a line ends without a carriage return")
        if line.translate(None, CONTROLS) != line:
            return InvalidHttp(f"malformed MIME header line: {shown(line)}")
    return InvalidHttp("malformed HTTP message")
