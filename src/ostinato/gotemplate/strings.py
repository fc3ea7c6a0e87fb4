"""Go's strings in Python.

A Go string is bytes that are mostly UTF-8; here it is a `str` in which each byte that is not part of a valid encoding
is a lone surrogate (Python's `surrogateescape`).
"""

from __future__ import annotations

import re

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_NAMES = {ord(text): f"\\{letter}" for letter, text in _ESCAPES.items()}
_LONE = re.compile("[\ud800-\udb7f\udb80-\udbff\udc00-\udc7f\udd00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[ !#-\[\]-~]*\Z")
_HEX = {"x": 2, "u": 4, "U": 8}


def encode(text: str) -> bytes:
    """The bytes of a Go string."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # surrogates that no byte stands for: JSON may contain them
        return _LONE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """The Go string of bytes."""
    return data.decode("utf-8", "surrogateescape")


def normalized(text: str) -> str:
    """Join bytes that became a valid encoding when strings were concatenated."""
    return decode(encode(text)) if _SURROGATE.search(text) else text


class UnquoteError(ValueError):
    """A literal that is not valid Go."""

    def __init__(self) -> None:
        super().__init__("invalid syntax")


def unquote(literal: str) -> str:
    """The value of a quoted or raw string literal."""
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    body = literal[1:-1]
    if "\\" not in body:
        return body
    parts: list[str] = []
    position = 0
    while position < len(body):
        value, position = unquote_character(body, position, '"')
        parts.append(value)
    return normalized("".join(parts))


def unquote_character(text: str, position: int, quote: str) -> tuple[str, int]:
    """The character at `position`, which may be escaped, and the position after it."""
    character = text[position]
    if character == quote and quote in "'\"":
        raise UnquoteError
    if character != "\\":
        return character, position + 1
    position += 1
    if position >= len(text):
        raise UnquoteError
    character = text[position]
    position += 1
    if character in _ESCAPES:
        return _ESCAPES[character], position
    if character == quote and character in "'\"":
        return character, position
    if character in _HEX:
        digits = text[position : position + _HEX[character]]
        if not re.fullmatch(f"[0-9a-fA-F]{{{_HEX[character]}}}", digits):
            raise UnquoteError
        number = int(digits, 16)
        position += len(digits)
        if character == "x":
            return byte(number), position
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise UnquoteError
        return chr(number), position
    if "0" <= character <= "7":
        digits = text[position - 1 : position + 2]
        if not re.fullmatch("[0-7]{3}", digits) or int(digits, 8) > 255:
            raise UnquoteError
        return byte(int(digits, 8)), position + 2
    raise UnquoteError


def byte(number: int) -> str:
    """The string of one byte."""
    return chr(number) if number < 0x80 else chr(0xDC00 + number)


def printable(character: str) -> bool:
    """Whether Go's strconv and unicode call the character printable."""
    return character.isprintable()


def quote(text: str, *, ascii_only: bool = False, mark: str = '"') -> str:
    """A Go literal of the string (`strconv.Quote`)."""
    if mark == '"' and _PLAIN.match(text):
        return f'"{text}"'
    parts = [mark]
    for character in normalized(text):
        code = ord(character)
        if character in (mark, "\\"):
            parts.append("\\" + character)
        elif 0xDC80 <= code <= 0xDCFF:
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif 0x20 <= code < 0x7F or (code >= 0x80 and not ascii_only and printable(character)):
            parts.append(character)
        elif code in _NAMES:
            parts.append(_NAMES[code])
        elif code < 0x20 or code == 0x7F:
            parts.append(f"\\x{code:02x}")
        elif 0xD800 <= code < 0xE000:
            parts.append("\\ufffd" if ascii_only else "\ufffd")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    parts.append(mark)
    return "".join(parts)


def described(character: str) -> str:
    """The character in an error message: `U+0026 '&'` (`%#U`)."""
    code = ord(character)
    if 0xD800 <= code < 0xE000:
        code, character = 0xFFFD, "\ufffd"
    return f"U+{code:04X} '{character}'" if printable(character) else f"U+{code:04X}"
