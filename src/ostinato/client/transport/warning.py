"""Parser of `Warning` headers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_PERSISTENT: Final = "299"  # the only code that Kubernetes uses
_HEAD: Final = re.compile(r"([12][0-9]{2}) ([^ ]+) (?=\")")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_DATE: Final = re.compile(r'"[^"]*"')


def warning_texts(headers: Iterable[str]) -> list[str]:
    """Return the texts with code 299. A header may contain several warnings; a malformed one ends it."""
    return [text for header in headers for code, text in _warnings(header) if code == _PERSISTENT]


def _warnings(header: str) -> Iterable[tuple[str, str]]:
    rest = header.strip()
    while rest:
        head = _HEAD.match(rest)
        quoted = _QUOTED.match(rest, head.end()) if head else None
        if head is None or quoted is None or _has_controls(head[2]):
            return
        text = _decoded(re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL))
        if _has_controls(text):
            return
        rest = rest[quoted.end() :].strip()
        if rest.startswith('"'):
            date = _DATE.match(rest)
            if date is None:
                return
            rest = rest[date.end() :].strip()
        if rest and not rest.startswith(","):
            return
        rest = rest[1:].strip()
        yield head[1], text


def _decoded(text: str) -> str:
    """Decode RFC 2047, in which older servers encode non-ASCII text."""
    if "=?" not in text:
        return text
    from email.errors import HeaderParseError  # noqa: PLC0415 - rarely needed
    from email.header import decode_header, make_header  # noqa: PLC0415

    try:
        return str(make_header(decode_header(text)))
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return text


def _has_controls(text: str) -> bool:
    return not text.isprintable() and any(unicodedata.category(char) == "Cc" for char in text)
