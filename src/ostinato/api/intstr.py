"""IntOrString: a port or its name, a count or a percentage.

The value is an `int` or a `str`, as in JSON. `scaled_value` resolves percentages.
"""

from __future__ import annotations

import re

from ostinato.api.text.go_format import quote

IntOrString = int | str

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64 = 2**63
_INT32 = 2**31


class IntOrStringError(ValueError):
    """The value is neither a number nor a percentage; Kubernetes' message."""


def parse(text: str) -> IntOrString:
    """Return the number if the string is one of 32 bits, else the string."""
    value = _read_integer(text)
    return value if value is not None and -_INT32 <= value < _INT32 else text


def to_int(value: IntOrString) -> int:
    """Return the number, also of a numeric string; zero for other strings."""
    if isinstance(value, int):
        return value
    number = _read_integer(value)
    if number is None:
        return 0
    return max(-_INT64, min(number, _INT64 - 1))


def percent(text: str) -> int:
    """Parse a percentage: "30%" is 30. Raises IntOrStringError."""
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
    """Return a number unchanged, or a percentage of the total, rounded up or down. Raises IntOrStringError."""
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
    if len(digits) > 19:  # out of range; Python limits the length of integers
        return -_INT64 * 2 if text[0] == "-" else _INT64 * 2
    number = int(digits or "0")
    return -number if text[0] == "-" else number
