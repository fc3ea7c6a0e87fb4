"""Go netip's messages for invalid IP addresses. Only for addresses that were rejected."""

from __future__ import annotations

import re
from typing import Final

from ostinato.api.text.go_format import quote

_FIRST: Final = re.compile(r"[.:%]")
_HEXADECIMAL: Final = "0123456789abcdefABCDEF"


def address_error(text: str) -> str:
    """Return the error of an invalid address."""
    first = _FIRST.search(text)
    if first is None:
        return _message(text, "unable to parse IP")
    if first.group() == "%":
        return _message(text, "missing IPv6 address")
    return _message(text, *(_ipv4_error(text) if first.group() == "." else _ipv6_error(text)))


def _message(text: str, why: str, at: str = "") -> str:
    return f"ParseAddr({quote(text)}): {why}" + (f" (at {quote(at)})" if at else "")


def _ipv4_error(text: str) -> tuple[str, ...]:
    """IPv4."""
    dots, digits = 0, ""
    for i, character in enumerate(text):
        if "0" <= character <= "9":
            if digits == "0":
                return ("IPv4 field has octet with leading zero",)
            digits += character
            if int(digits) > 255:
                return ("IPv4 field has value >255",)
        elif character != ".":
            return "unexpected character", text[i:]
        elif i == 0 or i == len(text) - 1 or text[i - 1] == ".":
            return "IPv4 field must have at least one digit", text[i:]
        elif dots == 3:
            return ("IPv4 address too long",)
        else:
            dots, digits = dots + 1, ""
    return ("IPv4 address too short",)


def _ipv6_error(text: str) -> tuple[str, ...]:
    """IPv6."""
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return ("zone must be a non-empty string",)
    gap, groups = rest.startswith("::"), 0
    rest = rest[2:] if gap else rest
    while groups < 8:
        digits = len(rest) - len(rest.lstrip(_HEXADECIMAL))
        if digits > 4:
            return "each group must have 4 or less digits", rest
        if not digits:
            return "each colon-separated field must have at least one digit", rest
        if rest[digits : digits + 1] == ".":
            return _embedded(rest, groups, gap=gap)
        groups, rest = groups + 1, rest[digits:]
        if not rest:
            break
        if not rest.startswith(":"):
            return "unexpected character, want colon", rest
        if len(rest) == 1:
            return "colon must be followed by more characters", rest
        rest = rest[1:]
        if rest.startswith(":"):
            if gap:
                return "multiple :: in address", rest
            gap, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        return "trailing garbage after address", rest
    return ("the :: must expand to at least one field of zeros" if groups == 8 else "address string too short",)


def _embedded(rest: str, groups: int, *, gap: bool) -> tuple[str, ...]:
    """IPv4 at the end of IPv6."""
    if not gap and groups != 6:
        return "embedded IPv4 address must replace the final 2 fields of the address", rest
    if groups > 6:
        return "too many hex fields to fit an embedded IPv4 at the end of the address", rest
    return _ipv4_error(rest)
