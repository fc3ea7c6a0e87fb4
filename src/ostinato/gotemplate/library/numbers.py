"""Numbers: conversions as spf13/cast makes them, integer arithmetic in 64 bits, decimal arithmetic of floats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.values import Int64, Ints

NUMBERS: Final = Registry()
_register = NUMBERS

_LOW: Final = -(2**63)
_HIGH: Final = 2**63 - 1
_MOST: Final = 1 << 22  # numbers in a list
_PLACES: Final = 10**16  # of a quotient
_ZERO_FRACTION: Final = re.compile(r"\.0+\Z")
_INTEGER: Final = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<x>(?:_?[0-9a-fA-F])+)|0[bB](?P<b>(?:_?[01])+)|0[oO]?(?P<o>(?:_?[0-7])+)"
    r"|(?P<d>0|[1-9](?:_?[0-9])*))"
)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BASES: Final = {"x": 16, "b": 2, "o": 8, "d": 10}


def wrapped(number: int) -> int:
    """Return the number in 64 bits, as Go's arithmetic wraps it."""
    return (number - _LOW) % 2**64 + _LOW


def parse_int(text: str, base: int) -> int | None:
    """Parse as Go's strconv.ParseInt; None if it is no number or does not fit. Base 0: by its prefix."""
    if base:
        try:
            number = int(text, base) if text.strip("+-0123456789abcdef") == "" and "_" not in text else None
        except ValueError:
            return None
    else:
        found = _INTEGER.fullmatch(text)
        if found is None:
            return None
        number = int(found[found.lastgroup or "d"].replace("_", ""), _BASES[found.lastgroup or "d"])
        number = -number if found["sign"] == "-" else number
    return number if number is not None and _LOW <= number <= _HIGH else None


def to_int(value: Any) -> int:
    """Convert to an integer; 0 where there is none."""
    match value:
        case bool() | int():
            return wrapped(int(value))
        case float():
            return int(value) if math.isfinite(value) and _LOW <= value <= _HIGH else _LOW
        case str():
            return parse_int(_ZERO_FRACTION.sub("", value), 0) or 0
        case _:
            return 0


def to_float(value: Any) -> float:
    """Convert to a float; 0 where there is none."""
    match value:
        case bool() | int() | float():
            return float(value)
        case str():
            return _parsed_float(value)
        case _:
            return 0.0


def _parsed_float(text: str) -> float:
    plain = text.lower().lstrip("+-")
    if plain in ("inf", "infinity", "nan") and len(text) - len(plain) <= 1:
        return float(text)
    if plain.startswith("0x") and "p" in plain:
        try:
            return float.fromhex(text)
        except (ValueError, OverflowError):
            return 0.0
    if not _DECIMAL.fullmatch(text) or "_" in text:
        return 0.0
    number = float(text)
    return 0.0 if math.isinf(number) else number


@_register("int64", "interface {}")
def int64(value: Any) -> Int64:
    return Int64(to_int(value))


@_register("int", "interface {}")
def int_(value: Any) -> int:
    return to_int(value)


@_register("float64", "interface {}")
def float64(value: Any) -> float:
    return to_float(value)


@_register("atoi", "string")
def atoi(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return max(_LOW, min(_HIGH, int(text)))


@_register("toDecimal", "interface {}")
def to_decimal(value: Any) -> Int64:
    return Int64(parse_int(sprint(value), 8) or 0)


@_register("add1", "interface {}")
def add1(value: Any) -> Int64:
    return Int64(wrapped(to_int(value) + 1))


@_register("add", "...interface {}")
def add(*values: Any) -> Int64:
    return Int64(wrapped(sum(map(to_int, values))))


@_register("sub", "interface {}, interface {}")
def sub(a: Any, b: Any) -> Int64:
    return Int64(wrapped(to_int(a) - to_int(b)))


@_register("div", "interface {}, interface {}")
def div(a: Any, b: Any) -> Int64:
    left, right = _operands(a, b)
    quotient = abs(left) // abs(right)
    return Int64(wrapped(quotient if (left < 0) == (right < 0) else -quotient))


@_register("mod", "interface {}, interface {}")
def mod(a: Any, b: Any) -> Int64:
    left, right = _operands(a, b)
    return Int64(int(math.copysign(1, left)) * (abs(left) % abs(right)))


def _operands(a: Any, b: Any) -> tuple[int, int]:
    left, right = to_int(a), to_int(b)
    if right == 0:
        raise PanicError("runtime error: integer divide by zero")
    return left, right


@_register("mul", "interface {}, ...interface {}")
def mul(first: Any, *rest: Any) -> Int64:
    made = to_int(first)
    for each in rest:
        made = wrapped(made * to_int(each))
    return Int64(made)


@_register("max biggest", "interface {}, ...interface {}")
def max_(first: Any, *rest: Any) -> Int64:
    return Int64(max(map(to_int, (first, *rest))))


@_register("min", "interface {}, ...interface {}")
def min_(first: Any, *rest: Any) -> Int64:
    return Int64(min(map(to_int, (first, *rest))))


@_register("maxf", "interface {}, ...interface {}")
def maxf(first: Any, *rest: Any) -> float:
    return _extreme(max, first, *rest)


@_register("minf", "interface {}, ...interface {}")
def minf(first: Any, *rest: Any) -> float:
    return _extreme(min, first, *rest)


def _extreme(choose: Callable[[list[float]], float], *values: Any) -> float:
    numbers = [to_float(each) for each in values]
    return math.nan if any(map(math.isnan, numbers)) and not any(map(math.isinf, numbers)) else choose(numbers)


def _exact(value: Any) -> Fraction:
    number = to_float(value)
    if not math.isfinite(number):
        raise PanicError(f"Cannot create a Decimal from {sprint(number)}")
    return Fraction(repr(number))


def _as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@_register("add1f", "interface {}")
def add1f(value: Any) -> float:
    return _as_float(_exact(value) + 1)


@_register("addf", "...interface {}")
def addf(*values: Any) -> float:
    return _as_float(sum(map(_exact, values), Fraction(0)))


@_register("subf", "interface {}, ...interface {}")
def subf(first: Any, *rest: Any) -> float:
    return _as_float(_exact(first) - sum(map(_exact, rest), Fraction(0)))


@_register("mulf", "interface {}, ...interface {}")
def mulf(first: Any, *rest: Any) -> float:
    made = _exact(first)
    for each in rest:
        made *= _exact(each)
    return _as_float(made)


@_register("divf", "interface {}, ...interface {}")
def divf(first: Any, *rest: Any) -> float:
    made = _exact(first)
    for each in rest:
        divisor = _exact(each)
        if divisor == 0:
            raise PanicError("decimal division by 0")
        quotient = made / divisor
        rounded = math.floor(abs(quotient) * _PLACES + Fraction(1, 2))  # half away from zero
        made = Fraction(rounded if quotient >= 0 else -rounded, _PLACES)
    return _as_float(made)


@_register("floor", "interface {}")
def floor(value: Any) -> float:
    number = to_float(value)
    return float(math.floor(number)) if math.isfinite(number) and abs(number) < 2**53 else number


@_register("ceil", "interface {}")
def ceil(value: Any) -> float:
    number = to_float(value)
    if not math.isfinite(number) or abs(number) >= 2**53:
        return number
    return math.copysign(float(math.ceil(number)), number)  # -0.5 becomes -0


@_register("round", "interface {}, int, ...float64")
def round_(value: Any, places: int, *at: float) -> float:
    number = to_float(value)
    power = float(10**places) if 0 <= places <= 300 else math.pow(10, max(-400, min(places, 308)))
    digits = power * number
    if not math.isfinite(digits):
        return digits / power if power else math.nan
    fraction = math.fmod(digits, 1)
    rounded = math.ceil(digits) if fraction >= (at[0] if at else 0.5) else math.floor(digits)
    return float(rounded) / power


@_register("until", "int")
def until(count: int) -> Ints:
    return until_step(0, count, -1 if count < 0 else 1)


@_register("untilStep", "int, int, int")
def until_step(start: int, stop: int, step: int) -> Ints:
    if step == 0 or (stop < start) == (step > 0):
        return Ints()
    numbers = range(start, stop, step)
    if len(numbers) > _MOST:
        raise TemplateError(f"a list of {len(numbers)} numbers is too long; the limit is {_MOST}")
    return Ints(numbers)


@_register("seq", "...int")
def seq(*numbers: int) -> str:
    match numbers:
        case (end,):
            step = -1 if end < 1 else 1
            found = until_step(1, end + step, step)
        case (start, end):
            step = -1 if end < start else 1
            found = until_step(start, end + step, step)
        case (start, step, end):
            if end < start and step > 0:
                return ""
            found = until_step(start, end + (-1 if end < start else 1), step)
        case _:
            return ""
    return " ".join(map(str, found))
