"""Floats as text, in the formats of Go's strconv."""

from __future__ import annotations

import math


def shortest(value: float) -> str:
    """The float as `%v` prints it."""
    if -1e6 < value < 1e6 and value and value.is_integer():
        return str(int(value))
    return formatted(value, "g", -1)


def formatted(value: float, verb: str, precision: int) -> str:
    """The float by the verb b, e, E, f, g, G, x or X; a precision of -1 is the shortest that is exact."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if verb == "b":
        return _binary(value)
    if verb in "xX":
        text = _hexadecimal(value, precision)
        return text.upper() if verb == "X" else text
    lower = verb.lower()
    if lower == "f":
        return f"{value:.{precision}f}" if precision >= 0 else _decimal(value)
    if lower == "e":
        text = f"{value:.{precision}e}" if precision >= 0 else _scientific(value)
    else:
        text = _general(value, precision)
    return text.upper() if verb.isupper() else text


def _digits(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits, and the exponent of the first digit."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    scale = int(exponent or 0) + len(whole) - 1
    stripped = digits.lstrip("0")
    if not stripped:
        return sign, "0", 0
    return sign, stripped.rstrip("0"), scale - (len(digits) - len(stripped))


def _scientific(value: float) -> str:
    sign, digits, exponent = _digits(value)
    point = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _decimal(value: float) -> str:
    sign, digits, exponent = _digits(value)
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def _general(value: float, precision: int) -> str:
    if precision < 0:
        exponent = _digits(value)[2]
        return _scientific(value) if exponent < -4 or exponent >= 6 else _decimal(value)
    precision = precision or 1
    rounded = f"{value:.{precision - 1}e}"
    mantissa, _, exponent_text = rounded.partition("e")
    exponent = int(exponent_text)
    digits = len(mantissa.lstrip("-").replace(".", "").rstrip("0")) or 1
    limit = digits if precision > digits >= exponent + 1 else precision
    if exponent < -4 or exponent >= limit:
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{exponent_text}"
    text = f"{value:.{max(precision - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _binary(value: float) -> str:
    fraction, exponent = math.frexp(abs(value))
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{sign}0p-1074"
    mantissa = int(fraction * (1 << 53))
    exponent -= 53
    while exponent < -1074:  # subnormal
        mantissa >>= 1
        exponent += 1
    return f"{sign}{mantissa}p{exponent:+d}"


def _hexadecimal(value: float, precision: int) -> str:
    sign = "-" if math.copysign(1, value) < 0 else ""
    fraction, exponent = math.frexp(abs(value))
    mantissa = int(fraction * (1 << 53))  # 53 bits, the first of them set
    exponent = exponent - 1 if mantissa else 0
    if 0 <= precision < 13 and mantissa:
        drop = 52 - precision * 4
        rest = mantissa & ((1 << drop) - 1)
        mantissa >>= drop
        half = 1 << (drop - 1)
        if rest > half or (rest == half and mantissa & 1):
            mantissa += 1
        mantissa <<= drop
        if mantissa >= 1 << 53:
            mantissa >>= 1
            exponent += 1
    digits = f"{mantissa & ((1 << 52) - 1):013x}"
    digits = digits.rstrip("0") if precision < 0 else digits[:precision].ljust(precision, "0")
    point = f".{digits}" if digits else ""
    return f"{sign}0x{1 if mantissa else 0}{point}p{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
