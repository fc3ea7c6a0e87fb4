"""Status lines."""

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
