"""Quantities: exact amounts of a resource, such as "100m" of a CPU or "128Mi" of memory.

- Exact: an integer number of nano-units, without floating point. Parsing rounds finer values away from zero.
- Compared and hashed by value: "1" equals "1000m". Immutable.
- Printed with the suffixes of the parsed format (`Format`), without a fraction and with the largest possible suffix:
  "1.5" becomes "1500m", "1024Mi" becomes "1Gi". A canonical string is returned unchanged.
- Binary quantities below 1024, or with a fraction, are printed in decimal. Values parsed with a binary suffix saturate
  at 2^63-1, decimal ones do not.
- A sum has the format of its left operand, unless that is zero.

Differences to Kubernetes: from 1000E on it prints the number without a suffix, which is another value; here the largest
suffix is kept: "1000E". Numbers and exponents of more than a thousand digits are rejected.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Format(StrEnum):
    """A family of suffixes of quantities."""

    DECIMAL_SI = "DecimalSI"  # n u m k M G T P E: powers of 1000
    BINARY_SI = "BinarySI"  # Ki Mi Gi Ti Pi Ei: powers of 1024
    DECIMAL_EXPONENT = "DecimalExponent"  # e3, e6, ...


class QuantityError(ValueError):
    """The string is not a quantity; the API server's message."""


_SPLIT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"

_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_OF = {0: ""} | {power // 10: suffix for suffix, power in _BINARY_SUFFIXES.items()}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")

_NANO = 10**9
_MOST_BINARY = (2**63 - 1) * _NANO
_MOST_DIGITS = 1000
_WHITESPACE = "".join(
    map(chr, (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))
)


class Quantity:
    __slots__ = ("_format", "_nanos", "_text")

    _nanos: int
    _format: Format
    _text: str | None  # the canonical string, once it is known

    def __init__(self, value: str | int = 0) -> None:
        """`value`: a string ("500m"), or an integer number of units; `milli` takes thousandths."""
        known = _read(value) if isinstance(value, str) else _quantity(value * _NANO, Format.DECIMAL_SI)
        self._nanos, self._format, self._text = known._nanos, known._format, known._text

    @classmethod
    def parse(cls, text: str) -> Quantity:
        return _read(text)

    @classmethod
    def from_json(cls, value: object) -> Quantity:
        """Convert a JSON value: a string (whitespace around it is ignored) or a number; null is zero."""
        if isinstance(value, str):
            return cls.parse(value.strip(_WHITESPACE))
        if value is None:
            return cls()
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return cls.parse(_number_text(value))
        raise QuantityError(_WRONG_FORMAT)

    @classmethod
    def of(cls, value: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        return _quantity(value * _NANO, format)

    @classmethod
    def milli(cls, value: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        """Return a quantity of thousandths: `Quantity.milli(100)` is "100m"."""
        return _quantity(value * 10**6, format)

    @property
    def nanos(self) -> int:
        """The exact value, in billionths."""
        return self._nanos

    @property
    def format(self) -> Format:
        return self._format

    @property
    def is_zero(self) -> bool:
        return self._nanos == 0

    @property
    def is_integer(self) -> bool:
        return self._nanos % _NANO == 0

    @property
    def sign(self) -> int:
        return (self._nanos > 0) - (self._nanos < 0)

    def value(self) -> int:
        """Return the value in units, rounded away from zero."""
        return _divide_away_from_zero(self._nanos, _NANO)

    def milli_value(self) -> int:
        """Return the value in thousandths, rounded away from zero."""
        return _divide_away_from_zero(self._nanos, 10**6)

    def scaled_value(self, scale: int) -> int:
        """Return the value in units of 10^scale, rounded away from zero."""
        power = scale + 9
        return _divide_away_from_zero(self._nanos, 10**power) if power >= 0 else self._nanos * 10**-power

    def round_up(self, scale: int) -> Quantity:
        """Round away from zero to a multiple of 10^scale."""
        if scale <= -9:
            return self
        return _quantity(self.scaled_value(scale) * 10 ** (scale + 9), self._format)

    def with_format(self, format: Format) -> Quantity:  # noqa: A002
        """Return the same value with another format."""
        return _quantity(self._nanos, format)

    def __int__(self) -> int:
        return self.value()

    def __float__(self) -> float:
        """Return the nearest floating-point number, or infinity."""
        try:
            return self._nanos / _NANO
        except OverflowError:
            return float("inf") if self._nanos > 0 else float("-inf")

    def __bool__(self) -> bool:
        return self._nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return _quantity(self._nanos + other._nanos, self._format if self._nanos else other._format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return _quantity(self._nanos - other._nanos, self._format if self._nanos else other._format)

    def __mul__(self, factor: int) -> Quantity:
        return _quantity(self._nanos * factor, self._format) if isinstance(factor, int) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return _quantity(-self._nanos, self._format)

    def __abs__(self) -> Quantity:
        return -self if self._nanos < 0 else self

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self._nanos < other._nanos if isinstance(other, Quantity) else NotImplemented

    def __le__(self, other: Quantity) -> bool:
        return self._nanos <= other._nanos if isinstance(other, Quantity) else NotImplemented

    def __gt__(self, other: Quantity) -> bool:
        return self._nanos > other._nanos if isinstance(other, Quantity) else NotImplemented

    def __ge__(self, other: Quantity) -> bool:
        return self._nanos >= other._nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __str__(self) -> str:
        if self._text is None:
            self._text = _canonical(self._nanos, self._format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"


def _quantity(nanos: int, written_in: Format, text: str | None = None) -> Quantity:
    """Return a quantity of billionths; `text` is the canonical string, if known."""
    quantity = Quantity.__new__(Quantity)
    quantity._nanos, quantity._format, quantity._text = nanos, written_in, text
    return quantity


def _read(text: str) -> Quantity:
    return _parse_short(text) if len(text) <= 24 else _parse(text)


def _parse(text: str) -> Quantity:
    match = _SPLIT.fullmatch(text) if text else None
    if match is None:
        raise QuantityError(_WRONG_FORMAT)
    sign, whole, fraction, suffix = match.groups("")
    base, exponent, written_in = _interpret(suffix)
    significant = whole.lstrip("0") or "0"
    digits = significant + fraction
    if len(digits) > _MOST_DIGITS:
        raise QuantityError(_WRONG_NUMBER)

    # Kubernetes parses small numbers on a fast path. It differs from the general path in two respects: only the fast
    # path keeps a (nearly) canonical string, such as "+1" and "1.500", and only the general path requires a digit.
    small = _is_small(base, exponent, len(significant), len(fraction))
    if not small and not whole and not fraction:
        raise QuantityError(_WRONG_NUMBER)
    if base == 10:
        nanos = _shift_decimally(int(digits), exponent - len(fraction) + 9)
    else:
        nanos = min(_shift_decimally(int(digits) << exponent, 9 - len(fraction)), _MOST_BINARY)
        if 0 < nanos < _NANO:
            written_in = Format.DECIMAL_SI
    kept = text if text == "0" or (small and _is_canonical(base, digits, exponent - len(fraction))) else None
    return _quantity(-nanos if sign == "-" else nanos, written_in, kept)


# The same few quantities are in every Pod; long strings are not cached.
_parse_short = lru_cache(maxsize=4096)(_parse)


def _interpret(suffix: str) -> tuple[int, int, Format]:
    """Return base (10 or 2), exponent and format of a suffix."""
    if (power := _DECIMAL_SUFFIXES.get(suffix)) is not None:
        return 10, power, Format.DECIMAL_SI
    if (power := _BINARY_SUFFIXES.get(suffix)) is not None:
        return 2, power, Format.BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > 16 or abs(exponent := int(match[1])) > _MOST_DIGITS:
        raise QuantityError(_WRONG_SUFFIX)
    return 10, exponent, Format.DECIMAL_EXPONENT


def _is_small(base: int, exponent: int, whole_digits: int, fraction_digits: int) -> bool:
    if base == 10:
        return whole_digits + fraction_digits <= 18 and exponent - fraction_digits >= -9
    return fraction_digits == 0 and whole_digits + exponent * 3 // 10 <= 14


def _is_canonical(base: int, digits: str, exponent: int) -> bool:
    if base == 10:
        return exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return int(digits) % 8 != 0


def _shift_decimally(value: int, places: int) -> int:
    """Return value * 10^places, rounded up."""
    power: int = 10 ** abs(places)
    return value * power if places >= 0 else -(-value // power)


def _divide_away_from_zero(value: int, divisor: int) -> int:
    return -(-value // divisor) if value >= 0 else value // divisor


def _canonical(nanos: int, written_in: Format) -> str:
    if nanos == 0:
        return "0"
    if written_in is Format.BINARY_SI and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        mantissa, power = _without_factors(nanos // _NANO, 1024, 6)
        return f"{mantissa}{_BINARY_SUFFIX_OF[power]}"
    if written_in is Format.DECIMAL_EXPONENT:
        mantissa, thousands = _without_factors(nanos, 1000, None)
        exponent = thousands * 3 - 9
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    mantissa, thousands = _without_factors(nanos, 1000, 9)
    return f"{mantissa}{_DECIMAL_SUFFIX_OF[thousands * 3 - 9]}"


def _without_factors(value: int, factor: int, most: int | None) -> tuple[int, int]:
    """Divide by the factor while there is no remainder, at most `most` times. Returns value and number of times."""
    times = 0
    while times != most and value % factor == 0:
        value //= factor
        times += 1
    return value, times


def _number_text(value: float) -> str:
    """Format a JSON number. Long integers are rejected, as Python limits their conversion."""
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        raise QuantityError(_WRONG_NUMBER)
    return str(value)
