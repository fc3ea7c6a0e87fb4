"""Encoded heads of responses, and rejections."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.http.encoding import clean
from ostinato.http.status import status_line

_UNCACHED = b"Cache-Control: no-cache, private\r\n"

# By status, content type and headers: most responses have one of a few.
_cached: dict[tuple[int, str, Sequence[tuple[str, str]]], bytes] = {}
_MAX_CACHED = 1024


def head_lines(status: int, content_type: str, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """Encode the status line, the content type and headers; adds Cache-Control unless it is among them."""
    if type(headers) is not tuple:
        return _status_lines(status, content_type) + _fields(headers)
    found = _cached.get((status, content_type, headers))
    if found is None:
        found = _status_lines(status, content_type) + _fields(headers)
        if len(_cached) >= _MAX_CACHED:
            _cached.clear()
        _cached[status, content_type, headers] = found
    return found


def _status_lines(status: int, content_type: str) -> bytes:
    text = f"{status_line(status)}\r\n"
    if content_type:
        text += f"Content-Type: {clean(content_type)}\r\n"
    return text.encode()


def _fields(headers: Sequence[tuple[str, str]]) -> bytes:
    lines = "".join([f"{name}: {clean(value)}\r\n" for name, value in headers]).encode("utf-8", "replace")
    if any(name.lower() == "cache-control" for name, _ in headers):
        return lines
    return _UNCACHED + lines
