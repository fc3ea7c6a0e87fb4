"""Number literals: their values as the types of Go that can hold them."""

from __future__ import annotations

import re

from ostinato.gotemplate.strings import UnquoteError, quote, unquote_character

_INTEGER = re.compile(r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?[0-9])*)\Z")
_DIGITS = "[0-9](?:_?[0-9])*"
_HEX_DIGITS = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?\Z")
_HEXADECIMAL = re.compile(
    rf"[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}\Z"
)

Number = tuple[int | None, int | None, float]  # as int64, as uint64, as float64


def number(text: str) -> Number:
    """The values of a literal; ValueError with Go's message."""
    if _INTEGER.match(text) and len(text) < 400:
        value = _integer(text)
        signed = value if -(1 << 63) <= value < 1 << 63 else None
        unsigned = value if 0 <= value < 1 << 64 and (text[0] not in "+-" or value == 0) else None
        if signed is not None or unsigned is not None:
            return signed, unsigned, float(value)
    floating = _float(text) if len(text) < 10_000 else None
    if floating is None:
        raise ValueError(f"illegal number syntax: {quote(text)}")
    if not any(letter in text for letter in ".eEpP"):
        raise ValueError(f"integer overflow: {quote(text)}")
    whole = int(floating) if floating.is_integer() else None
    signed = whole if whole is not None and -(1 << 63) <= whole < 1 << 63 else None
    return signed, whole if whole is not None and 0 <= whole < 1 << 64 else None, floating


def is_imaginary(text: str) -> bool:
    """Whether the literal is the imaginary part of a complex number."""
    return text.endswith("i") and _float(text[:-1]) is not None


def _integer(text: str) -> int:
    digits = text.lstrip("+-").replace("_", "").lower()
    base = {"0x": 16, "0b": 2, "0o": 8}.get(digits[:2], 8 if digits[0] == "0" else 10)
    value = int(digits[2:] if digits[1:2] in ("x", "b", "o") else digits, base)
    return -value if text[0] == "-" else value


def _float(text: str) -> float | None:
    try:
        if _HEXADECIMAL.match(text):
            return float.fromhex(text.replace("_", ""))
        value = float(text.replace("_", "")) if _DECIMAL.match(text) else None
    except OverflowError:
        return None
    return None if value in (float("inf"), float("-inf")) else value


def character(text: str) -> int:
    """The code point of a character constant."""
    body = text[1:]
    value, end = unquote_character(body, 0, "'")
    if body[end:] != "'":
        raise ValueError(f"malformed character constant: {text}")
    code = ord(value)
    return code - 0xDC00 if 0xDC80 <= code <= 0xDCFF and body[0] == "\\" else code


__all__ = ["Number", "UnquoteError", "character", "number"]
