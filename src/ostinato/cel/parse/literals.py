"""Values of literals."""

from __future__ import annotations

import re
from typing import Final

from ostinato.cel.types import DOUBLE, UINT, Type
from ostinato.cel.values import Uint

_LONGEST: Final = 1000  # characters
_SIMPLE: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ESCAPE: Final = re.compile(r"\\(?:([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")


class LiteralError(ValueError):
    """The literal is invalid."""


def number(text: str, kind: Type, *, negative: bool) -> int | float:
    sign = "-" if negative else ""
    if len(text) > _LONGEST:
        raise LiteralError(f"invalid {kind} literal")
    if kind is DOUBLE:
        value = float(sign + text)
        if value in (float("inf"), float("-inf")):
            raise LiteralError("invalid double literal")
        return value
    if kind is UINT:
        whole = int(text[:-1], 16 if text.startswith("0x") else 10)
        if whole >= 1 << 64:
            raise LiteralError("invalid uint literal")
        return Uint(whole)
    whole = int(sign + text, 16 if text.startswith("0x") else 10)
    if not -(1 << 63) <= whole < 1 << 63:
        raise LiteralError("invalid int literal")
    return whole


def text_of(literal: str) -> str | bytes:
    """Return the value of a string literal, or of bytes with the prefix b."""
    is_bytes = literal[0] in "bB"
    literal = literal[1:] if is_bytes else literal
    raw = literal[0] in "rR"
    literal = literal[1:] if raw else literal
    quotes = 3 if literal[:3] in ('"""', "'''") and len(literal) >= 6 else 1
    inner = literal[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n")
    if is_bytes:
        return _bytes(inner, raw=raw)
    if raw:
        return inner
    return _ESCAPE.sub(lambda match: chr(_code(match)), inner)


def _bytes(inner: str, *, raw: bool) -> bytes:
    if raw:
        return inner.encode()
    found, at = [], 0
    for match in _ESCAPE.finditer(inner):
        if match[3] or match[4]:
            raise LiteralError("unable to unescape string")
        found += [inner[at : match.start()].encode(), bytes((_code(match),))]
        at = match.end()
    return b"".join([*found, inner[at:].encode()])


def _code(match: re.Match[str]) -> int:
    octal, byte, short, long, simple = match.groups()
    if octal:
        return int(octal, 8)
    if simple:
        return _SIMPLE.get(simple, ord(simple))
    code = int(byte or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise LiteralError("invalid unicode code point")
    return code
