"""What the functions of texts share: Go's classes of characters, and the text of a value."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, Final

from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.strings import decode
from ostinato.gotemplate.values import Object

# unicode.IsSpace; Python's str.isspace() has four control characters more.
SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def is_space(c: str) -> bool:
    """Whether Go's unicode.IsSpace holds."""
    return c in SPACE


def is_punctuation(c: str) -> bool:
    """Whether Go's unicode.IsPunct holds."""
    return unicodedata.category(c)[0] == "P"


def per_character(change: Callable[[str], str], text: str) -> str:
    """Change each character by itself; one that would become several stays, as in Go."""
    return "".join(made if len(made := change(c)) == 1 else c for c in text)


def strval(value: Any) -> str:
    """Return the text of a value: of a string itself, of bytes as text, of others as `%v`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return decode(value)
    shown = value.text() if isinstance(value, Object) else None
    return sprint(value) if shown is None else shown
