"""Warning headers of a response."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_MOST_IN_ALL = 4096  # maximum characters of all warnings; beyond it, each warning is truncated
_MOST_EACH = 256


def warning_headers(texts: Iterable[str]) -> list[tuple[str, str]]:
    """A header for each distinct text, in order. Characters that are not allowed in a header are dropped."""
    printable = [text for text in dict.fromkeys(texts) if text and not _has_control_characters(text)]
    if sum(map(len, printable)) <= _MOST_IN_ALL:
        return [("Warning", _header(text)) for text in printable]
    headers, written = [], 0
    for text in printable:
        if written >= _MOST_IN_ALL:
            break
        written += len(text[:_MOST_EACH])
        headers.append(("Warning", _header(text[:_MOST_EACH])))
    return headers


def _header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'


def _has_control_characters(text: str) -> bool:
    return not text.isprintable() and any(unicodedata.category(character) == "Cc" for character in text)
