"""Status lines, and responses to invalid requests."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

_REASONS: Final = {
    status.value: "Request Entity Too Large" if status.value == 413 else status.phrase for status in HTTPStatus
}


def reason_phrase(status: int) -> str:
    return _REASONS.get(status, "Status")


def status_line(status: int) -> str:
    """Return a status line without its end."""
    return f"HTTP/1.1 {status} {reason_phrase(status)}"


def rejection(status: int, why: str) -> bytes:
    """Encode the response to data that is not a valid request, after which the connection is closed."""
    text = f"{status} {reason_phrase(status)}" + (f": {why}" if why else "")
    head = f"HTTP/1.1 {text}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    return (head + ("Unsupported transfer encoding" if status == 501 else text)).encode()
