"""Messages for invalid JSON, as Go's encoding/json has them.

Used only after the fast decoder rejected the text: it is scanned again to find the character and the reason.
"""

from __future__ import annotations

import math
import re
from typing import Final

from ostinato.api.text.go_format import quote

_LONGEST_EXPLAINED: Final = 64 * 1024  # bytes; larger texts get a short message

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_STRING_PART: Final = re.compile(rb'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_DIGITS: Final = frozenset(b"0123456789")
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}

_END: Final = "unexpected end of JSON input"


class _ProblemFoundError(Exception):
    """The error was found; the argument is the message."""


def problem(data: bytes) -> str | None:
    """Return the reason why this is not JSON; None if it is."""
    if len(data) > _LONGEST_EXPLAINED:
        return _too_long_to_explain(data)
    try:
        _Scan(data).document()
    except _ProblemFoundError as found:
        return str(found)
    return None


def _too_long_to_explain(data: bytes) -> str | None:
    # A large text that is invalid only in its encoding is repaired and decoded again by the caller.
    return None if b"\\u" in data or not _is_utf8(data) else "invalid JSON"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Scan:
    """One scan of the text. The stack has the closing bracket of each open container."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._open: list[int] = []

    def document(self) -> None:
        fresh = self._value_or_opening()
        while self._open:
            closing = self._open[-1]
            character = self._next()
            if character == closing:
                self._at += 1
                self._open.pop()
                fresh = False
            elif fresh:
                self._member(closing)
                fresh = self._value_or_opening()
            elif character == ord(","):
                self._at += 1
                self._next()
                self._member(closing)
                fresh = self._value_or_opening()
            else:
                self._refuse("after object key:value pair" if closing == ord("}") else "after array element")
        self._at = self._after_space()
        if self._at < len(self._data):
            self._refuse("after top-level value")

    def _member(self, closing: int) -> None:
        """Scan the key and the colon before a value in an object."""
        if closing != ord("}"):
            return
        if self._next() != ord('"'):
            self._refuse("looking for beginning of object key string")
        self._string()
        if self._next() != ord(":"):
            self._refuse("after object key")
        self._at += 1

    def _value_or_opening(self) -> bool:
        """Scan a scalar, or the opening bracket of a container; returns True for the latter."""
        character = self._next()
        if character == ord("{") or character == ord("["):
            self._open.append(ord("}") if character == ord("{") else ord("]"))
            self._at += 1
            return True
        if character == ord('"'):
            self._string()
        elif character == ord("-") or character in _DIGITS:
            self._number()
        elif character in _LITERALS:
            self._literal(_LITERALS[character])
        else:
            self._refuse("looking for beginning of value")
        return False

    def _string(self) -> None:
        found = _STRING_PART.match(self._data, self._at + 1)
        assert found is not None
        self._at = found.end()
        character = self._here()
        if character == ord('"'):
            self._at += 1
        elif character != ord("\\"):
            self._refuse("in string literal")
        else:
            self._at += 1
            if self._here_or_space() != ord("u"):
                self._refuse("in string escape code")
            self._at += 1
            while self._here_or_space() in _HEX:
                self._at += 1
            self._refuse("in \\u hexadecimal character escape")

    def _number(self) -> None:
        start = self._at
        found = _NUMBER.match(self._data, start)
        if found is None:  # only a sign
            self._at += 1
            self._refuse("in numeric literal")
            return
        self._at = found.end()
        rest = self._data[self._at : self._at + 2]
        if rest[:1] == b"." and b"." not in found[0] and b"e" not in found[0].lower():
            self._at += 1
            self._refuse("after decimal point in numeric literal")
        if rest[:1] in (b"e", b"E") and b"e" not in found[0].lower():
            self._at += 2 if rest[1:] in (b"+", b"-") else 1
            self._refuse("in exponent of numeric literal")
        if math.isinf(float(found[0])):
            raise _ProblemFoundError(f"json: cannot unmarshal number {found[0].decode()} into Go value of type float64")

    def _literal(self, word: bytes) -> None:
        for expected in word[1:]:
            self._at += 1
            if self._here_or_space() != expected:
                self._refuse(f"in literal {word.decode()} (expecting {_shown(expected)})")
        self._at += 1

    def _next(self) -> int:
        """Return the next character that is not white space."""
        self._at = self._after_space()
        return self._here()

    def _after_space(self) -> int:
        found = _SPACE.match(self._data, self._at)
        assert found is not None
        return found.end()

    def _here(self) -> int:
        if self._at >= len(self._data):
            raise _ProblemFoundError(_END)
        return self._data[self._at]

    def _here_or_space(self) -> int:
        """Return the character within a number, literal or escape; the end of the text counts as a space."""
        return self._data[self._at] if self._at < len(self._data) else ord(" ")

    def _refuse(self, context: str) -> None:
        raise _ProblemFoundError(f"invalid character {_shown(self._here_or_space())} {context}")


def _shown(character: int) -> str:
    match chr(character):
        case "'":
            return r"'\''"
        case '"':
            return "'\"'"
        case other:
            return f"'{quote(other)[1:-1]}'"
