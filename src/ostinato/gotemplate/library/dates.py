"""Dates and durations. The time is that of the world."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from ostinato.api.time import Duration, TimeError
from ostinato.gotemplate.library.go_time import GoTime, ParseTimeError, load_zone, parse_time
from ostinato.gotemplate.library.numbers import parse_int
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.values import Int32, Int64
from ostinato.world import World

_UNITS: Final = (  # nanoseconds, and the letters of durationRound
    (365 * 24 * 3600 * 10**9, "y"),
    (30 * 24 * 3600 * 10**9, "mo"),
    (24 * 3600 * 10**9, "d"),
    (3600 * 10**9, "h"),
    (60 * 10**9, "m"),
    (10**9, "s"),
)
_ZERO: Final = GoTime(datetime(1, 1, 1, tzinfo=UTC))


def date_functions(world: World) -> Registry:
    """Return the functions of dates in a world."""
    register = Registry()
    dates = _Dates(world)
    register.add("now", "", dates.now)
    register.add("ago", "interface {}", dates.ago)
    register.add("date", "string, interface {}", lambda layout, value: dates.formatted(layout, value, "Local"))
    register.add("dateInZone date_in_zone", "string, interface {}, string", dates.formatted)
    register.add("htmlDate", "interface {}", lambda value: dates.formatted("2006-01-02", value, "Local"))
    register.add(
        "htmlDateInZone", "interface {}, string", lambda value, zone: dates.formatted("2006-01-02", value, zone)
    )
    register.add("dateModify date_modify", "string, time.Time", date_modify)
    register.add("mustDateModify must_date_modify", "string, time.Time", must_date_modify)
    register.add("duration", "interface {}", duration)
    register.add("durationRound", "interface {}", dates.duration_round)
    register.add("toDate", "string, string", to_date)
    register.add("mustToDate", "string, string", must_to_date)
    register.add("unixEpoch", "time.Time", lambda value: str(value.seconds))
    return register


class _Dates:
    def __init__(self, world: World) -> None:
        self._clock = world.clock

    def now(self) -> GoTime:
        moment = self._clock.now()
        return GoTime(moment.astimezone(), moment.microsecond * 1000)

    def moment(self, value: Any) -> GoTime:
        if isinstance(value, GoTime):
            return value
        if type(value) in (int, Int64, Int32):
            return GoTime.unix(value)
        return self.now()

    def formatted(self, layout: str, value: Any, zone: str) -> str:
        return self.moment(value).at(load_zone(zone)).format(layout)

    def ago(self, value: Any) -> str:
        since = self.now().seconds - self.moment(value).seconds
        return str(Duration(since * 1_000_000_000))

    def duration_round(self, value: Any) -> str:
        length = 0
        if isinstance(value, str):
            try:
                length = Duration.parse(value).nanoseconds
            except TimeError:
                length = 0
        elif isinstance(value, Int64):
            length = int(value)
        elif isinstance(value, GoTime):
            length = (self.now().seconds - value.seconds) * 1_000_000_000
        for unit, name in _UNITS:
            if abs(length) > unit:
                return f"{abs(length) // unit}{name}"
        return "0s"


def duration(value: Any) -> str:
    """Format seconds; only a string or an int64 is taken for them, as by sprig."""
    seconds = 0
    if isinstance(value, str):
        seconds = parse_int(value, 10) or 0
    elif isinstance(value, Int64):
        seconds = int(value)
    length = seconds * 1_000_000_000
    return str(Duration((length + 2**63) % 2**64 - 2**63))


def date_modify(text: str, value: GoTime) -> GoTime:
    try:
        return value.plus(Duration.parse(text))
    except TimeError:
        return value


def must_date_modify(text: str, value: GoTime) -> GoTime:
    try:
        return value.plus(Duration.parse(text))
    except TimeError as error:
        raise PanicError(str(error)) from None


def to_date(layout: str, text: str) -> GoTime:
    try:
        return parse_time(layout, text)
    except ParseTimeError:
        return _ZERO


def must_to_date(layout: str, text: str) -> GoTime:
    try:
        return parse_time(layout, text)
    except ParseTimeError as error:
        raise PanicError(str(error)) from None
