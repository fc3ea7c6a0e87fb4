"""Retry policy: which requests a transport retries, and after what delay; as client-go's `WithRetry`.

- Any verb: status 429 or 5xx with a `Retry-After` header in seconds.
- GET: the connection was lost. Retried immediately, as a reused connection may have been stale, then after one second.
  Writes may have been processed, and are not retried.
- At most ten retries; none if the body can be read only once, or if `Retry-After` exceeds five minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ostinato.client.transport.protocol import Request

MAX_RETRIES: Final = 10
MAX_RETRY_AFTER: Final = 300.0  # seconds; above it the response is returned
AFTER_RESET: Final = 1.0  # seconds


def wait_before_retry(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the delay in seconds that the server asks for before a retry; None if it does not ask for one."""
    if status != 429 and status < 500:
        return None
    return retry_after(headers)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a `Retry-After` header; None without one, and for a date."""
    text = headers.get("retry-after", "")
    digits = text.removeprefix("+")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        return None
    return float(digits)


def is_replayable(request: Request) -> bool:
    """Whether the body can be sent again."""
    return isinstance(request.body, bytes)
