"""Cron schedules: parse an expression of five fields, or six with seconds, and compute the next time.

    schedule = parse_schedule("30 6 * * mon-fri", "Europe/Paris")
    schedule.next(now)

- Grammar and errors are those of robfig/cron, which CronJobs use: minute, hour, day of month, month, day of week;
  lists, ranges, steps, three-letter names; `@hourly` and the like; `@every 90m`; a leading `TZ=`.
- A day matches if day of month and day of week match; if neither is a star, one match suffices.
- At a change of daylight saving time, skipped times do not occur. Of repeated times, schedules by hours and minutes
  have both, others the first.
- A schedule without a time in the next five years (February 30th) has none.
- With `seconds`, the dialect is that of version 2 of robfig/cron: a sixth field of seconds may come first, and a star
  with a step (`*/2`) is a star for the rule about days.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple, Protocol

from ostinato.api.text.go_format import quote
from ostinato.api.time import Duration, TimeError

_STAR: Final = 1 << 63  # set in a field that is a star
_LONGEST_SEARCH: Final = 5  # years
_LARGEST_INT: Final = 2**63 - 1

# Fields are separated by Unicode white space; Python's `split` has more control characters.
_WORD: Final = re.compile(r"[^\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class ScheduleError(ValueError):
    """The string is not a schedule."""


class Schedule(Protocol):
    def next(self, after: datetime) -> datetime | None:
        """Return the next time after this one, which must be aware, in its time zone; None if there is none."""


class _Bounds(NamedTuple):
    least: int
    most: int
    names: tuple[str, ...] = ()  # names of the values, from `least`

    @property
    def all(self) -> int:
        return _bits(self.least, self.most, 1) | _STAR


_SECONDS = _MINUTES = _Bounds(0, 59)
_HOURS = _Bounds(0, 23)
_DAYS = _Bounds(1, 31)
_MONTHS = _Bounds(1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
_WEEKDAYS = _Bounds(0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))


class FieldSchedule(NamedTuple):
    """A schedule of five or six fields, each a bit set."""

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    zone: tzinfo | None = None  # None: the time zone of the argument of `next`
    seconds: int = 1

    def next(self, after: datetime) -> datetime | None:
        asked_in = _zone_of(after)
        if not all(field & ~_STAR for field in (*self[:5], self.seconds)):
            return None  # a field of commas only
        zone = asked_in if self.zone is None else self.zone
        try:
            moment = _Moment.of(after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1), zone)
            found = self._search(moment, moment.local.year + _LONGEST_SEARCH)
        except (OverflowError, ValueError):  # beyond the calendar's range
            return None
        return None if found is None else found.instant.astimezone(asked_in)

    def _search(self, moment: _Moment, last_year: int) -> _Moment | None:
        """Find the month, then the day, and so on. After an overflow, start over with the month."""
        fresh = True  # nothing was incremented yet, so smaller units are not reset
        while moment.local.year <= last_year:
            found = moment
            for advance in (self._to_month, self._to_day, self._to_hour, self._to_minute, self._to_second):
                moved, wrapped = advance(found, fresh)
                fresh = fresh and moved is found
                found = moved
                if wrapped:
                    break
            else:
                return found
            moment = found
        return None

    def _to_month(self, moment: _Moment, fresh: bool) -> tuple[_Moment, bool]:
        while not self.months >> moment.local.month & 1:
            moment = (moment.at(day=1) if fresh else moment).next_month()
            fresh = False
            if moment.local.month == 1:
                return moment, True
        return moment, False

    def _to_day(self, moment: _Moment, fresh: bool) -> tuple[_Moment, bool]:
        while not self._is_day(moment.local):
            moment = (moment.at() if fresh else moment).next_day()
            fresh = False
            if moment.local.day == 1:
                return moment, True
        return moment, False

    def _to_hour(self, moment: _Moment, fresh: bool) -> tuple[_Moment, bool]:
        while not self.hours >> moment.local.hour & 1:
            moment = (moment.at(hour=moment.local.hour) if fresh else moment).plus(hours=1)
            fresh = False
            if moment.local.hour == 0:
                return moment, True
        return moment, False

    def _to_minute(self, moment: _Moment, fresh: bool) -> tuple[_Moment, bool]:
        while not self.minutes >> moment.local.minute & 1:
            moment = (moment.to_minute() if fresh else moment).plus(minutes=1)
            fresh = False
            if moment.local.minute == 0:
                return moment, True
        return moment, False

    def _to_second(self, moment: _Moment, fresh: bool) -> tuple[_Moment, bool]:  # noqa: ARG002 - the smallest unit
        later = self.seconds >> moment.local.second
        if not later:
            return moment.to_minute().plus(minutes=1), True
        waits = (later & -later).bit_length() - 1
        return (moment, False) if waits == 0 else (moment.plus(seconds=waits), False)

    def _is_day(self, local: datetime) -> bool:
        day = bool(self.days >> local.day & 1)
        weekday = bool(self.weekdays >> local.isoweekday() % 7 & 1)
        return day and weekday if (self.days | self.weekdays) & _STAR else day or weekday


class IntervalSchedule(NamedTuple):
    """`@every`: a fixed interval, in whole seconds."""

    seconds: int

    def next(self, after: datetime) -> datetime | None:
        _zone_of(after)
        try:
            instant = after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)
        except OverflowError:
            return None
        return instant.astimezone(after.tzinfo)


class _Moment(NamedTuple):
    """A point in time, in UTC and local time. Arithmetic is as in Go, as CronJobs have it."""

    instant: datetime  # UTC
    local: datetime  # naive
    zone: tzinfo

    @classmethod
    def of(cls, instant: datetime, zone: tzinfo) -> _Moment:
        return cls(instant, instant.astimezone(zone).replace(tzinfo=None), zone)

    @classmethod
    def from_local(cls, local: datetime, zone: tzinfo) -> _Moment:
        """Convert local time; one that occurs twice, or not at all, with an offset from before or after the change."""
        as_utc = local.replace(tzinfo=UTC)
        return cls.of(as_utc - _offset(as_utc - _offset(as_utc, zone), zone), zone)

    def plus(self, *, hours: int = 0, minutes: int = 0, seconds: int = 0) -> _Moment:
        return self.of(self.instant + timedelta(hours=hours, minutes=minutes, seconds=seconds), self.zone)

    def at(self, *, day: int | None = None, hour: int = 0) -> _Moment:
        local = self.local.replace(day=day or self.local.day, hour=hour, minute=0, second=0)
        return self.from_local(local, self.zone)

    def to_minute(self) -> _Moment:
        return self.of(self.instant.replace(second=0), self.zone)

    def next_month(self) -> _Moment:
        first = self.local.replace(day=1)
        months = first.month  # of the next month, zero-based
        first = first.replace(year=first.year + months // 12, month=months % 12 + 1)
        return self.from_local(first + timedelta(days=self.local.day - 1), self.zone)

    def next_day(self) -> _Moment:
        moved = self.from_local(self.local + timedelta(days=1), self.zone)
        hour = moved.local.hour
        if hour:  # midnight is skipped or repeated
            moved = moved.plus(hours=24 - hour if hour > 12 else -hour)
        while moved.local.date() <= self.local.date():  # a skipped day, as in Samoa in 2011
            moved = moved.plus(hours=24)
        return moved


def parse_schedule(text: str, time_zone: str | None = None, *, seconds: bool = False) -> Schedule:
    """Parse a schedule. Raises ScheduleError.

    - `time_zone`: IANA name, overridden by `TZ=` in the schedule. Defaults to the time zone of the argument of `next`.
    - `seconds`: accept a leading field of seconds; see the module. Defaults to False.
    """
    zone = None if time_zone is None else _load_zone(time_zone)
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        head, space, text = text.partition(" ")
        if not space:
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        name = head.partition("=")[2]
        try:
            zone = _load_zone(name)
        except ScheduleError as error:
            raise ScheduleError(f"provided bad location {name}: {error}") from None
        words = list(_WORD.finditer(text))
        text = text[words[0].start() : words[-1].end()] if words else ""
    if text.startswith("@"):
        return _named(text, zone)
    fields = _WORD.findall(text)
    if seconds and len(fields) not in (5, 6):
        raise ScheduleError(f"expected 5 or 6 fields, found {len(fields)}: {text}")
    if not seconds and len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    *first, minutes, hours, days, months, weekdays = fields
    return FieldSchedule(
        _field(minutes, _MINUTES),
        _field(hours, _HOURS),
        _field(days, _DAYS, stepped_star=seconds),
        _field(months, _MONTHS),
        _field(weekdays, _WEEKDAYS, stepped_star=seconds),
        zone,
        _field(first[0], _SECONDS) if first else 1,
    )


def _named(text: str, zone: tzinfo | None) -> Schedule:
    anything, first = (_HOURS.all, _DAYS.all, _MONTHS.all, _WEEKDAYS.all), 1
    match text:
        case "@yearly" | "@annually":
            return FieldSchedule(first, first, 1 << 1, 1 << 1, anything[3], zone)
        case "@monthly":
            return FieldSchedule(first, first, 1 << 1, anything[2], anything[3], zone)
        case "@weekly":
            return FieldSchedule(first, first, anything[1], anything[2], first, zone)
        case "@daily" | "@midnight":
            return FieldSchedule(first, first, *anything[1:], zone)
        case "@hourly":
            return FieldSchedule(first, *anything, zone)
    if not text.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        length = Duration.parse(text.removeprefix("@every "))
    except TimeError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None
    return IntervalSchedule(max(1, length.nanoseconds // 1_000_000_000))


def _field(word: str, bounds: _Bounds, *, stepped_star: bool = False) -> int:
    bits = 0
    for part in word.split(","):
        if part:
            bits |= _range(part, bounds, stepped_star=stepped_star)
    return bits


def _range(part: str, bounds: _Bounds, *, stepped_star: bool) -> int:
    span, *steps = part.split("/")
    low, *highs = span.split("-")
    extra = 0
    if low in ("*", "?"):
        start, end, extra = bounds.least, bounds.most, _STAR
    else:
        start = end = _value(low, bounds)
        if len(highs) > 1:
            raise ScheduleError(f"too many hyphens: {part}")
        if highs:
            end = _value(highs[0], bounds)
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if steps:
        step = _integer(steps[0])
        end = end if highs else bounds.most  # "3/5": from three to the maximum
        extra = 0 if step > 1 and not stepped_star else extra
    if start < bounds.least:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.least}): {part}")
    if end > bounds.most:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.most}): {part}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")
    return _bits(start, end, step) | extra


def _value(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.least if name in bounds.names else _integer(text)


def _integer(text: str) -> int:
    problem = "" if _NUMBER.fullmatch(text) else "invalid syntax"
    digits = text.lstrip("+-").lstrip("0")
    if not problem and (len(digits) > 19 or int(digits or "0") > _LARGEST_INT + text.startswith("-")):
        problem = "value out of range"
    if problem:
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: {problem}")
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


def _bits(start: int, end: int, step: int) -> int:
    return sum(1 << value for value in range(start, end + 1, step))


def _load_zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):  # the local time of servers is UTC
        return UTC
    if ".." in name or name.startswith(("/", "\\")):
        raise ScheduleError("time: invalid location name")
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - few need it

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _zone_of(after: datetime) -> tzinfo:
    if after.tzinfo is None:
        raise ValueError(f"{after} has no time zone; use an aware datetime")
    return after.tzinfo


def _offset(instant: datetime, zone: tzinfo) -> timedelta:
    found = instant.astimezone(zone).utcoffset()
    assert found is not None, "a zone has an offset at every time"
    return found
