"""Time, MicroTime and Duration of meta/v1.

- `Time` is RFC 3339 in whole seconds and UTC: "2026-01-31T12:00:00Z". A parsed fraction is kept in memory, and not
  printed.
- `MicroTime` has exactly six fraction digits, in parsing too: "2026-01-31T12:00:00.000001Z".
- `Duration` has Go's notation, "1h2m3.5s", and is a 64-bit number of nanoseconds.
- `Time` and `MicroTime` are aware datetimes in UTC; arithmetic with `timedelta` keeps the type.
- `str()` returns the JSON form. Parse errors are `TimeError` with the messages of Go's parser.
- The zero time, January 1st of year 1, is encoded as null (`is_zero`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import ClassVar, Self, TypeVar

_LAYOUT_SECONDS = "2006-01-02T15:04:05Z07:00"
_LAYOUT_MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"

# % formatting takes half the time of f-strings here, and every written object has a time.
_SECONDS = "%04d-%02d-%02dT%02d:%02d:%02dZ"
_MICROSECONDS = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"

# The usual forms, for the fast path. Others are parsed by `_parse_moment`.
_USUAL_SECONDS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_USUAL_MICROSECONDS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")

_DIGITS_4 = re.compile(r"[0-9]{4}")
_DIGITS_2 = re.compile(r"[0-9]{2}")
_DIGITS_1_OR_2 = re.compile(r"[0-9]{1,2}")
_ANY_FRACTION = re.compile(r"[.,]([0-9]+)")
_SIX_DIGIT_FRACTION = re.compile(r"[.,]([0-9]{6}|[+-][0-9]{5})")
_OFFSET = re.compile(r"(.)([0-9]{2}):([0-9]{2})", re.DOTALL)


class TimeError(ValueError):
    """The string is not a time or duration; Go's message."""


class _Moment(datetime):
    """Base class of `Time` and `MicroTime`, which differ in layout."""

    __slots__ = ()

    _layout: ClassVar[str]
    _usual: ClassVar[re.Pattern[str]]

    @classmethod
    def parse(cls, text: str) -> Self:
        if cls._usual.fullmatch(text) and not text.startswith("0000"):
            try:
                return cls.fromisoformat(text)
            except ValueError:
                pass  # a field is out of range; the general path reports which one
        return _parse_moment(cls, text)

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """Convert a datetime. Raises TimeError if it has no time zone."""
        zone = moment.tzinfo
        if zone is not UTC:
            if zone is None:
                raise TimeError(f"{moment!r} has no time zone; use an aware datetime")
            moment = moment.astimezone(UTC)
        return cls(
            moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond, UTC
        )

    @classmethod
    def from_unix(cls, seconds: int, nanoseconds: int = 0) -> Self:
        """Convert seconds and nanoseconds since 1970, as in protobuf; truncated to microseconds."""
        try:
            return cls.of(_EPOCH) + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
        except OverflowError:
            raise TimeError(f"time {seconds}s since 1970 is out of range") from None

    @property
    def is_zero(self) -> bool:
        return self.year == 1 and self == _ZERO

    def to_unix(self) -> tuple[int, int]:
        """Return seconds since 1970, and nanoseconds (never negative)."""
        since = _utc(self) - _EPOCH
        return since.days * 86_400 + since.seconds, since.microseconds * 1000


class Time(_Moment):
    """A point in time, in whole seconds in JSON."""

    __slots__ = ()

    _layout = _LAYOUT_SECONDS
    _usual = _USUAL_SECONDS

    def __str__(self) -> str:
        at = self if self.tzinfo is UTC else _utc(self)
        return _SECONDS % (at.year, at.month, at.day, at.hour, at.minute, at.second)


class MicroTime(_Moment):
    """A point in time, with six fraction digits in JSON."""

    __slots__ = ()

    _layout = _LAYOUT_MICROSECONDS
    _usual = _USUAL_MICROSECONDS

    def __str__(self) -> str:
        at = self if self.tzinfo is UTC else _utc(self)
        return _MICROSECONDS % (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


M = TypeVar("M", bound=_Moment)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO = datetime(1, 1, 1, tzinfo=UTC)


def _utc(moment: datetime) -> datetime:
    """Convert to UTC. A datetime without a time zone, as the constructor allows, is in UTC."""
    zone = moment.tzinfo
    if zone is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if zone is None else moment.astimezone(UTC)


def _parse_moment(cls: type[M], text: str) -> M:
    """Parse the layout part by part as Go does, with Go's error messages."""
    reader = _Reader(text, cls._layout)
    year = reader.number("2006", _DIGITS_4)
    reader.literal("-")
    month = reader.number("01", _DIGITS_2, "month", 1, 12)
    reader.literal("-")
    day = reader.number("02", _DIGITS_2)
    reader.literal("T")
    hour = reader.number("15", _DIGITS_1_OR_2, "hour", 0, 23)
    reader.literal(":")
    minute = reader.number("04", _DIGITS_2, "minute", 0, 59)
    reader.literal(":")
    second = reader.number("05", _DIGITS_2, "second", 0, 59)
    microsecond = reader.six_digit_fraction() if cls._layout is _LAYOUT_MICROSECONDS else reader.any_fraction()
    offset = reader.zone()
    reader.end()

    if not 1 <= day <= _days_in(month, year):
        raise reader.error(": day out of range")
    try:
        return cls(year, month, day, hour, minute, second, microsecond, UTC) - offset
    except (ValueError, OverflowError):  # the years 0 and 10000, which Python does not support
        raise reader.error(": year out of range") from None


class _Reader:
    """Parses the parts of a layout one after the other."""

    def __init__(self, text: str, layout: str) -> None:
        self._text = text
        self._layout = layout
        self._position = 0

    def error(self, message: str) -> TimeError:
        return TimeError(f"parsing time {_quote(self._text)}{message}")

    def _mismatch(self, part: str) -> TimeError:
        rest = self._text[self._position :]
        return self.error(f" as {_quote(self._layout)}: cannot parse {_quote(rest)} as {_quote(part)}")

    def literal(self, character: str) -> None:
        if not self._text.startswith(character, self._position):
            raise self._mismatch(character)
        self._position += 1

    def number(self, part: str, shape: re.Pattern[str], name: str = "", least: int = 0, most: int = 9999) -> int:
        match = shape.match(self._text, self._position)
        if match is None:
            raise self._mismatch(part)
        value = int(match[0])
        if not least <= value <= most:
            raise self.error(f": {name} out of range")
        self._position = match.end()
        return value

    def any_fraction(self) -> int:
        """Parse microseconds; further digits are truncated. Go accepts a comma too."""
        match = _ANY_FRACTION.match(self._text, self._position)
        if match is None:
            return 0
        self._position = match.end()
        return int(match[1][:6].ljust(6, "0"))

    def six_digit_fraction(self) -> int:
        match = _SIX_DIGIT_FRACTION.match(self._text, self._position)
        if match is None:
            raise self._mismatch(".000000")
        value = int(match[1])  # Go parses a signed number here, and rejects negative ones
        if value < 0:
            raise self.error(": fractional second out of range")
        self._position = match.end()
        return value

    def zone(self) -> timedelta:
        if self._text.startswith("Z", self._position):
            self._position += 1
            return timedelta()
        match = _OFFSET.match(self._text, self._position)
        if match is None:
            raise self._mismatch("Z07:00")
        hours, minutes = int(match[2]), int(match[3])
        if minutes > 60:  # Go accepts 24 hours and 60 minutes
            raise self.error(": time zone offset minute out of range")
        if hours > 24:
            raise self.error(": time zone offset hour out of range")
        if match[1] not in "+-":
            raise self._mismatch("Z07:00")
        self._position = match.end()
        offset = timedelta(hours=hours, minutes=minutes)
        return -offset if match[1] == "-" else offset

    def end(self) -> None:
        if rest := self._text[self._position :]:
            raise self.error(f": extra text: {_quote(rest)}")


_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LONGEST = 1 << 63  # nanoseconds; a duration is below it, and not below its negative
_TERM = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)")


@total_ordering
class Duration:
    """A duration in nanoseconds; at most 292 years."""

    __slots__ = ("nanoseconds",)

    nanoseconds: int

    def __init__(self, nanoseconds: int = 0) -> None:
        if not -_LONGEST <= nanoseconds < _LONGEST:
            raise TimeError(f"duration of {nanoseconds} ns does not fit into 64 bits")
        self.nanoseconds = nanoseconds

    @classmethod
    def parse(cls, text: str) -> Duration:
        unsigned = text[1:] if text.startswith(("-", "+")) else text
        if unsigned == "0":
            return cls()
        total = position = 0
        while position < len(unsigned) or position == 0:
            term = _TERM.match(unsigned, position)
            assert term is not None  # the pattern matches the empty string
            position = term.end()
            total += _term_nanoseconds(term, text)
            if total > _LONGEST:
                raise _invalid(text)
        if text.startswith("-"):
            return cls(-total)
        if total == _LONGEST:
            raise _invalid(text)
        return cls(total)

    @classmethod
    def of(cls, length: timedelta | float) -> Duration:
        """Convert a `timedelta`, or seconds."""
        if isinstance(length, timedelta):
            return cls(((length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds) * 1_000)
        if isinstance(length, int):
            return cls(length * 1_000_000_000)
        try:
            return cls(round(length * 1e9))
        except (OverflowError, ValueError):  # infinite or not a number
            raise TimeError(f"{length} s is not a duration") from None

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 1_000_000_000

    def to_timedelta(self) -> timedelta:
        """Convert to a `timedelta`, truncated to microseconds."""
        microseconds = abs(self.nanoseconds) // 1_000
        return timedelta(microseconds=microseconds if self.nanoseconds >= 0 else -microseconds)

    def __str__(self) -> str:
        length = abs(self.nanoseconds)
        sign = "-" if self.nanoseconds < 0 else ""
        if length == 0:
            return "0s"
        if length < 1_000:
            return f"{sign}{length}ns"
        if length < 1_000_000:
            return f"{sign}{_decimal(length, 3)}\u00b5s"
        if length < 1_000_000_000:
            return f"{sign}{_decimal(length, 6)}ms"
        minutes, rest = divmod(length, 60_000_000_000)
        seconds = f"{_decimal(rest, 9)}s"
        if minutes == 0:
            return f"{sign}{seconds}"
        hours, minutes = divmod(minutes, 60)
        return f"{sign}{hours}h{minutes}m{seconds}" if hours else f"{sign}{minutes}m{seconds}"

    def __repr__(self) -> str:
        return f"Duration.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.nanoseconds == other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __lt__(self, other: Duration) -> bool:
        return self.nanoseconds < other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __neg__(self) -> Duration:
        return Duration(-self.nanoseconds)

    def __add__(self, other: Duration) -> Duration:
        return Duration(self.nanoseconds + other.nanoseconds) if isinstance(other, Duration) else NotImplemented

    def __sub__(self, other: Duration) -> Duration:
        return Duration(self.nanoseconds - other.nanoseconds) if isinstance(other, Duration) else NotImplemented

    def __mul__(self, factor: int) -> Duration:
        return Duration(self.nanoseconds * factor) if isinstance(factor, int) else NotImplemented

    __rmul__ = __mul__


def _invalid(text: str) -> TimeError:
    return TimeError(f"time: invalid duration {_quote(text)}")


def _term_nanoseconds(term: re.Match[str], text: str) -> int:
    """Return the value of a number with its unit, such as "3.5s" in "2m3.5s"."""
    whole_digits, point, fraction_digits, unit = term.groups()
    if not whole_digits and not fraction_digits:
        raise _invalid(text)
    whole = _bounded_int(whole_digits)
    if whole > _LONGEST:
        raise _invalid(text)
    if not unit:
        raise TimeError(f"time: missing unit in duration {_quote(text)}")
    factor = _UNITS.get(unit)
    if factor is None:
        raise TimeError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
    if whole > _LONGEST // factor:
        raise _invalid(text)
    length = whole * factor
    if point and fraction_digits:
        length += _fraction_nanoseconds(fraction_digits, factor)
    return length


def _bounded_int(digits: str) -> int:
    """Return the number, or one that is too large if there are too many digits."""
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) < 20 else _LONGEST + 1


def _fraction_nanoseconds(digits: str, factor: int) -> int:
    """Compute a fraction in floating point as Go does, from as many digits as fit into 64 bits."""
    numerator, scale = 0, 1.0
    for digit in digits:
        longer = numerator * 10 + ord(digit) - ord("0")
        if numerator > (_LONGEST - 1) // 10 or longer > _LONGEST:
            break
        numerator, scale = longer, scale * 10
    return int(numerator * (factor / scale))


def _decimal(value: int, places: int) -> str:
    """Format value / 10^places without trailing zeros."""
    whole, fraction = divmod(value, 10**places)
    return f"{whole}.{fraction:0{places}}".rstrip("0") if fraction else str(whole)


def _days_in(month: int, year: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _quote(text: str) -> str:
    """Quote as Go's time package: bytes that are not printable ASCII in hexadecimal."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    parts: list[str] = []
    for character in text:
        if character < " " or character > "\x7f":
            parts.extend(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        else:
            parts.append("\\" + character if character in '"\\' else character)
    return f'"{"".join(parts)}"'
