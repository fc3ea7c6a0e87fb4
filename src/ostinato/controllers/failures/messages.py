"""Messages of failed reconciles: one line each, for log lines, Events and conditions.

Events and conditions are read by more people than the log, so `summary` masks what looks like a credential: passwords
in URLs, bearer tokens, private keys, and values of names such as `password` or `api_key`. It cannot know every secret:
do not put one in the message of an error.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final

from ostinato.api.errors import APIError
from ostinato.controllers.failures.hints import hint_for
from ostinato.controllers.failures.trace import last_line

MAX_LENGTH: Final = 1024  # characters of a summary; also the limit of Events
_MAX_MEMBERS: Final = 5  # of a group of errors
_MASK: Final = "<redacted>"
_NAMES: Final = r"pass(?:word|wd|phrase)|secret|token|credentials?|(?:api|access|private|secret)[_-]?key"
_CREDENTIALS: Final = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), _MASK),
    (re.compile(r"(?<=://)[^\s/@]+(?=@)"), _MASK),
    (re.compile(r"\b(bearer|basic)\s+[\w+/=.~-]{8,}", re.IGNORECASE), rf"\1 {_MASK}"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), _MASK),
    (
        re.compile(
            rf"(?<![/\w.-])([\"']?[\w.-]*(?:{_NAMES})[\"']?\s*(?:=>?|:)\s*)(b?\"[^\"]*\"|b?'[^']*'|[^\s,;&)}}\]]+)",
            re.IGNORECASE,
        ),
        rf"\1{_MASK}",
    ),
)
_INVALID_VALUE: Final = re.compile(r"(Invalid value: )(\"(?:[^\"\\]|\\.)*\"|\S+)")
_VARIES: Final = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", re.IGNORECASE)  # addresses, uids, counters, times


def one_line(error: BaseException) -> str:
    """Return type and message of an error, and those of the members of a group, as one line."""
    if isinstance(error, BaseExceptionGroup):
        members = [one_line(each) for each in error.exceptions[:_MAX_MEMBERS]]
        more = len(error.exceptions) - len(members)
        return "; ".join([*members, f"and {more} more"] if more else members)
    try:
        text = " ".join(with_hint(error).split())
    except Exception:  # noqa: BLE001 - a faulty __str__ must not hide the error
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def with_hint(error: BaseException) -> str:
    """Return the message of an error, and how to fix it if that is known."""
    hint = hint_for(error)
    return f"{error}; {hint}" if hint else str(error)


def summary(error: BaseException) -> str:
    """Return the line without credentials, in a limited length."""
    text = one_line(error)
    if isinstance(error, APIError) and error.details.kind.lower() in ("secret", "secrets"):
        text = _INVALID_VALUE.sub(rf"\1{_MASK}", text)
    for pattern, replacement in _CREDENTIALS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def fingerprint(error: BaseException) -> Hashable:
    """Return what identical failures have in common: type, line, and the message except for numbers and ids."""
    return type(error), last_line(error), _VARIES.sub("#", one_line(error))
