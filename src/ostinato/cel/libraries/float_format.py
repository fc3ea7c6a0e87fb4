"""Print floating-point numbers as Go does."""

from __future__ import annotations

import math
from decimal import Decimal


def shortest(value: float) -> str:
    """Format with the shortest representation: Go's format g."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    minus = "-" if sign else ""
    if not text:
        return minus + "0"
    point = len(text) + int(exponent)
    text = text.rstrip("0")
    if point - 1 < -4 or point - 1 >= 6:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{'-' if point - 1 < 0 else '+'}{abs(point - 1):02d}"
    return minus + plain_digits(text, point)


def decimal(value: float) -> str:
    """Format with all digits, without an exponent."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return "-0" if sign else "0"
    point = len(text) + int(exponent)
    return ("-" if sign else "") + plain_digits(text.rstrip("0"), point)


def plain_digits(text: str, point: int) -> str:
    """Insert the decimal point into digits."""
    if point <= 0:
        return "0." + "0" * -point + text
    if point >= len(text):
        return text + "0" * (point - len(text))
    return f"{text[:point]}.{text[point:]}"
