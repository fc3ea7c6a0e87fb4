"""Resending: which requests are sent again, and after how long.

- The server says so: status 429 or 500 and above, with a `Retry-After` header that is a number of seconds. Any verb.
- The connection broke while a GET was under way: at once, for it may have been kept for too long, and from then on
  after a second. Writes may have been done, and are never sent twice.
- At most ten times; never if the body can be read only once; not after a longer wait than anybody has patience for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ostinato.client.transport.protocol import Request

MAX_RETRIES: Final = 10
MAX_RETRY_AFTER: Final = 300.0  # seconds; a server that asks for more is obeyed by giving up
AFTER_RESET: Final = 1.0  # seconds


def wait_before_retry(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds after which the server wants to be asked again, None if it does not say."""
    if status != 429 and status < 500:
        return None
    return retry_after(headers)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a `Retry-After` header; None without one, and for a date."""
    text = headers.get("retry-after", "")
    digits = text.removeprefix("+")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        return None
    return float(digits)


def is_replayable(request: Request) -> bool:
    return isinstance(request.body, bytes)
