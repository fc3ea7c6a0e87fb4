"""Timestamps and durations: parsing, printing, arithmetic, calendar fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ostinato.api.text.go_format import quote
from ostinato.api.text.short_cache import short_cache
from ostinato.cel.libraries.arithmetic import whole
from ostinato.cel.libraries.float_format import decimal
from ostinato.cel.values import CelError, Duration, Timestamp

_SECOND: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62135596800 * _SECOND, 253402300800 * _SECOND
_LONGEST: Final = 256  # characters
_MOST: Final = (1 << 63) - 1
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_TERM: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_OFFSET: Final = re.compile(r"([+-]?)(\d\d?):(\d\d)", re.ASCII)


def timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 timestamp."""
    found = _MOMENT.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise CelError(
            f'parsing time {quote(text)} as "2006-01-02T15:04:05Z07:00": cannot parse {quote(text)} as "2006"'
        ) from None
    nanoseconds = int((found[7] or "0")[:9].ljust(9, "0"))
    offset = int(found[8] + "1") * (int(found[9]) * 3600 + int(found[10]) * 60) if found[8] else 0
    return _bounded((int((moment - _EPOCH).total_seconds()) - offset) * _SECOND + nanoseconds)


def duration(text: str) -> Duration:
    """Parse a duration in Go's notation: 1h30m."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if len(rest) > _LONGEST:
        raise CelError(f"time: invalid duration {quote(text[:_LONGEST])}")
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        term = _TERM.match(rest, at)
        if term is None or not (term[1] or term[3]):
            break
        unit = _UNITS[term[4]]
        total += int(term[1] or "0") * unit
        if term[3]:
            total += int(term[3]) * unit // 10 ** len(term[3])
        at = term.end()
    if not rest or at < len(rest):
        raise CelError(f"time: invalid duration {quote(text)}")
    total = -total if text.startswith("-") else total
    if abs(total) > _MOST:
        raise CelError(f"time: invalid duration {quote(text)}")
    return Duration(total)


def _bounded(ns: int) -> Timestamp:
    if _FIRST <= ns < _LAST:
        return Timestamp(ns)
    raise CelError("timestamp overflow")


def of_seconds(seconds: int) -> Timestamp:
    """Return the timestamp of seconds since 1970."""
    return _bounded(seconds * _SECOND)


def _length(ns: int) -> Duration:
    if abs(ns) <= _MOST:
        return Duration(ns)
    raise CelError("duration overflow")


def timestamp_text(value: Timestamp) -> str:
    moment = _EPOCH + timedelta(seconds=value.ns // _SECOND)
    text = f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}"
    fraction = f"{value.ns % _SECOND:09d}".rstrip("0")
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


def duration_text(value: Duration) -> str:
    seconds, rest = divmod(abs(value.ns), _SECOND)
    return decimal((seconds + rest / 1e9) * (-1 if value.ns < 0 else 1)) + "s"


@short_cache(256)
def _zone(name: str) -> Any:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return timedelta(minutes=-minutes if offset[1] == "-" else minutes)
    if name in ("", "UTC"):
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few expressions name a place

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


def _shown(read: Callable[[datetime], int]) -> Callable[..., int]:
    def function(value: Timestamp, zone: str = "UTC") -> int:
        moment, place = _EPOCH + timedelta(microseconds=value.ns // 1000), _zone(zone)
        return read(moment + place if isinstance(place, timedelta) else moment.astimezone(place))

    return function


_PARTS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "timestamp_to_day_of_month_1_based": lambda t: t.day,
    "timestamp_to_day_of_month": lambda t: t.day - 1,
    "timestamp_to_day_of_week": lambda t: t.isoweekday() % 7,
    "timestamp_to_day_of_year": lambda t: t.timetuple().tm_yday - 1,
    "timestamp_to_year": lambda t: t.year,
    "timestamp_to_month": lambda t: t.month - 1,
    "timestamp_to_hours": lambda t: t.hour,
    "timestamp_to_minutes": lambda t: t.minute,
    "timestamp_to_seconds": lambda t: t.second,
    "timestamp_to_milliseconds": lambda t: t.microsecond // 1000,
}


def _cut(value: Duration, unit: int) -> int:
    return value.ns // unit if value.ns >= 0 else -(-value.ns // unit)


def _converted(read: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def function(text: str) -> Any:
        try:
            return read(text)
        except CelError:
            raise CelError(f"type conversion error from 'string' to 'google.protobuf.{what}'") from None

    return function


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _shown(read) for name, read in _PARTS.items()},
    **{f"{name}_with_tz": _shown(read) for name, read in _PARTS.items()},
    "timestamp_to_seconds_tz": _shown(_PARTS["timestamp_to_seconds"]),
    "duration_to_hours": lambda d: _cut(d, 3600 * _SECOND),
    "duration_to_minutes": lambda d: _cut(d, 60 * _SECOND),
    "duration_to_seconds": lambda d: _cut(d, _SECOND),
    "duration_to_milliseconds": lambda d: _cut(d, 1_000_000),
    "add_duration_duration": lambda a, b: _length(a.ns + b.ns),
    "add_duration_timestamp": lambda a, b: _bounded(a.ns + b.ns),
    "add_timestamp_duration": lambda a, b: _bounded(a.ns + b.ns),
    "subtract_duration_duration": lambda a, b: _length(a.ns - b.ns),
    "subtract_timestamp_duration": lambda a, b: _bounded(a.ns - b.ns),
    "subtract_timestamp_timestamp": lambda a, b: _length(a.ns - b.ns),
    "duration_to_duration": lambda d: d,
    "int64_to_duration": Duration,
    "string_to_duration": _converted(duration, "Duration"),
    "timestamp_to_timestamp": lambda t: t,
    "int64_to_timestamp": of_seconds,
    "string_to_timestamp": _converted(timestamp, "Timestamp"),
    "duration_to_int64": lambda d: d.ns,
    "timestamp_to_int64": lambda t: whole(t.ns // _SECOND),
    "duration_to_string": duration_text,
    "timestamp_to_string": timestamp_text,
}
