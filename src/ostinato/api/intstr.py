"""Fields that hold a number or a text: a port or its name, a count or a percentage.

In JSON they are a number or a string, and so they are here. `scaled_value` makes a count of either.
"""

from __future__ import annotations

import re

from ostinato.api.text.go_format import quote

IntOrString = int | str

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64 = 2**63
_INT32 = 2**31


class IntOrStringError(ValueError):
    """A value from which no count can be had; the message is the one that Kubernetes gives."""


def parse(text: str) -> IntOrString:
    """A number if the text is one (of 32 bits), else the text."""
    value = _read_integer(text)
    return value if value is not None and -_INT32 <= value < _INT32 else text


def to_int(value: IntOrString) -> int:
    """The number, or the one that the text spells; zero if it spells none."""
    if isinstance(value, int):
        return value
    number = _read_integer(value)
    if number is None:
        return 0
    return max(-_INT64, min(number, _INT64 - 1))


def percent(text: str) -> int:
    """The number of a percentage: 30 of "30%"."""
    if not isinstance(text, str):
        raise IntOrStringError("invalid type: neither int nor percentage")
    if not text.endswith("%"):
        raise IntOrStringError("invalid type: string is not a percentage")
    digits = text[:-1]
    number = _read_integer(digits)
    if number is None:
        raise IntOrStringError(f"invalid value {quote(text)}: strconv.Atoi: parsing {quote(digits)}: invalid syntax")
    if not -_INT64 <= number < _INT64:
        raise IntOrStringError(
            f"invalid value {quote(text)}: strconv.Atoi: parsing {quote(digits)}: value out of range"
        )
    return number


def scaled_value(value: IntOrString | None, total: int, *, round_up: bool) -> int:
    """A number as it is; a percentage of the total, rounded up or down."""
    if value is None:
        raise IntOrStringError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    try:
        hundredths = percent(value) * total
    except IntOrStringError as error:
        raise IntOrStringError(f"invalid value for IntOrString: {error}") from None
    return -(-hundredths // 100) if round_up else hundredths // 100


def _read_integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-0")
    if len(digits) > 19:  # far out of range; Python would refuse to read very long ones
        return -_INT64 * 2 if text[0] == "-" else _INT64 * 2
    number = int(digits or "0")
    return -number if text[0] == "-" else number
