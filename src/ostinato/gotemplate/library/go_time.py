"""Times as Go's package time has them: layouts to format and parse, methods that templates call."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ostinato.api.time import Duration
from ostinato.gotemplate.strings import quote
from ostinato.gotemplate.values import Int64, Object

_PARTS: Final = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|0[1-6]|2006|15|PM|pm|-07:00:00|-070000|-07:00|-0700|-07"
    r"|Z07:00:00|Z070000|Z07:00|Z0700|Z07|__2|_2(?!006)|[12345]|[.,]0+(?![0-9])|[.,]9+(?![0-9])"
)
_MONTHS: Final = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STRING: Final = "2006-01-02 15:04:05.999999999 -0700 MST"
_RFC3339: Final = "2006-01-02T15:04:05.999999999Z07:00"


class ParseTimeError(ValueError):
    """A text does not have the layout of a time."""


class GoTime(Object):
    """A time.Time: a moment in a time zone."""

    go_type = "time.Time"

    def __init__(self, moment: datetime, nanosecond: int = 0) -> None:
        self.moment = moment.replace(microsecond=0)
        self.nanosecond = nanosecond
        super().__init__(methods=self._methods())

    @staticmethod
    def unix(seconds: int, nanosecond: int = 0) -> GoTime:
        """Return a moment in the local zone."""
        try:
            return GoTime((_EPOCH + timedelta(seconds=seconds)).astimezone(), nanosecond)
        except (OverflowError, ValueError):
            return GoTime(datetime(1, 1, 1, tzinfo=UTC))

    @property
    def seconds(self) -> int:
        """Seconds since 1970."""
        since = self.moment - _EPOCH
        return since.days * 86_400 + since.seconds

    def text(self) -> str:
        return self.format(_STRING)

    def at(self, zone: tzinfo | None) -> GoTime:
        """Return the same moment in another zone; None is the local one."""
        try:
            return GoTime(self.moment.astimezone(zone), self.nanosecond)
        except (OverflowError, ValueError):
            return self

    def plus(self, duration: Duration) -> GoTime:
        total = self.seconds * 1_000_000_000 + self.nanosecond + duration.nanoseconds
        seconds, nanosecond = divmod(total, 1_000_000_000)
        try:
            return GoTime((_EPOCH + timedelta(seconds=seconds)).astimezone(self.moment.tzinfo), nanosecond)
        except (OverflowError, ValueError):
            return self

    def format(self, layout: str) -> str:
        """Format by a layout: the time of reference, Mon Jan 2 15:04:05 MST 2006, written as wanted."""
        return _PARTS.sub(lambda found: self._part(found[0]), layout)

    def _part(self, part: str) -> str:
        moment = self.moment
        hour = moment.hour % 12 or 12
        if part[0] in ".,":
            digits = f"{self.nanosecond:09d}"[: len(part) - 1]
            if part[1] == "9":
                digits = digits.rstrip("0")
            return part[0] + digits if digits else ""
        if part[0] in "-Z":
            return _offset(moment, part)
        match part:
            case "2006":
                return f"{moment.year:04d}"
            case "06":
                return f"{moment.year % 100:02d}"
            case "January":
                return _MONTHS[moment.month - 1]
            case "Jan":
                return _MONTHS[moment.month - 1][:3]
            case "Monday":
                return _DAYS[moment.weekday()]
            case "Mon":
                return _DAYS[moment.weekday()][:3]
            case "MST":
                return _zone_name(moment)
            case "002" | "__2":
                return f"{moment.timetuple().tm_yday:{'03d' if part == '002' else '3d'}}"
            case "PM":
                return "PM" if moment.hour >= 12 else "AM"
            case "pm":
                return "pm" if moment.hour >= 12 else "am"
            case "15":
                return f"{moment.hour:02d}"
            case "_2":
                return f"{moment.day:2d}"
        number = {"1": moment.month, "2": moment.day, "3": hour, "4": moment.minute, "5": moment.second}[part[-1]]
        return f"{number:02d}" if part[0] == "0" else str(number)

    def _methods(self) -> dict[str, Callable[..., Any]]:
        moment = self.moment
        return {
            "String": self.text,
            "Format": self.format,
            "Year": lambda: moment.year,
            "Month": lambda: GoName("time.Month", moment.month, _MONTHS[moment.month - 1]),
            "Day": lambda: moment.day,
            "Hour": lambda: moment.hour,
            "Minute": lambda: moment.minute,
            "Second": lambda: moment.second,
            "Nanosecond": lambda: self.nanosecond,
            "YearDay": lambda: moment.timetuple().tm_yday,
            "Weekday": lambda: GoName("time.Weekday", moment.isoweekday() % 7, _DAYS[moment.weekday()]),
            "Unix": lambda: Int64(self.seconds),
            "UnixNano": lambda: Int64(self.seconds * 1_000_000_000 + self.nanosecond),
            "UnixMilli": lambda: Int64(self.seconds * 1_000 + self.nanosecond // 1_000_000),
            "UTC": lambda: self.at(UTC),
            "Local": lambda: self.at(None),
            "IsZero": lambda: (moment.astimezone(UTC).timetuple()[:6], self.nanosecond) == ((1, 1, 1, 0, 0, 0), 0),
            "Before": lambda other: (self.seconds, self.nanosecond) < (other.seconds, other.nanosecond),
            "After": lambda other: (self.seconds, self.nanosecond) > (other.seconds, other.nanosecond),
            "Equal": lambda other: (self.seconds, self.nanosecond) == (other.seconds, other.nanosecond),
        }

    def json(self) -> str:
        """Return what encoding/json writes."""
        return self.format(_RFC3339)


class GoName(Object):
    """A number with a name: a month, a day of the week."""

    def __init__(self, go_type: str, number: int, name: str) -> None:
        super().__init__(methods={"String": lambda: name}, go_type=go_type)
        self.number = number
        self._name = name

    def text(self) -> str:
        return self._name


def load_zone(name: str) -> tzinfo | None:
    """Return the time zone of a name; None for the local one, UTC if there is none of that name."""
    if name == "Local":
        return None
    try:
        return ZoneInfo(name) if name not in ("", "UTC") else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _zone_name(moment: datetime) -> str:
    name = moment.tzname() or ""
    if name.startswith("UTC") and name != "UTC":  # Python's name of a zone that has only an offset
        name = ""
    return name or _offset(
        moment, "-07" if int((moment.utcoffset() or timedelta()).total_seconds()) % 3600 == 0 else "-0700"
    )


def _offset(moment: datetime, part: str) -> str:
    offset = int((moment.utcoffset() or timedelta()).total_seconds())
    if part[0] == "Z" and offset == 0:
        return "Z"
    sign = "-" if offset < 0 else "+"
    hours, rest = divmod(abs(offset), 3600)
    colon = ":" if ":" in part else ""
    text = f"{sign}{hours:02d}"
    if len(part) > 3:
        text += f"{colon}{rest // 60:02d}"
    if len(part) > 6:
        text += f"{colon}{rest % 60:02d}"
    return text


_READERS: Final = {
    "2006": r"(?P<year>[0-9]{4})",
    "06": r"(?P<short>[0-9]{2})",
    "January": "(?P<month_name>" + "|".join(_MONTHS) + ")",
    "Jan": "(?P<month_abbr>" + "|".join(name[:3] for name in _MONTHS) + ")",
    "Monday": "(?:" + "|".join(_DAYS) + ")",
    "Mon": "(?:" + "|".join(name[:3] for name in _DAYS) + ")",
    "01": r"(?P<month>[0-9]{2})",
    "1": r"(?P<month>[0-9]{1,2})",
    "02": r"(?P<day>[0-9]{2})",
    "2": r"(?P<day>[0-9]{1,2})",
    "_2": r" ?(?P<day>[0-9]{1,2})",
    "002": r"(?P<yday>[0-9]{3})",
    "__2": r" {0,2}(?P<yday>[0-9]{1,3})",
    "15": r"(?P<hour>[0-9]{2})",
    "03": r"(?P<hour12>[0-9]{2})",
    "3": r"(?P<hour12>[0-9]{1,2})",
    "04": r"(?P<minute>[0-9]{2})",
    "4": r"(?P<minute>[0-9]{1,2})",
    "05": r"(?P<second>[0-9]{2})(?P<fraction>[.,][0-9]+)?",
    "5": r"(?P<second>[0-9]{1,2})(?P<fraction>[.,][0-9]+)?",
    "PM": r"(?P<half>AM|PM)",
    "pm": r"(?P<half>am|pm)",
    "MST": r"(?P<zone>UTC|[A-Z]{3,4}|[+-][0-9]{2})",
}


def parse_time(layout: str, text: str) -> GoTime:
    """Parse a text by a layout; without a zone it is in the local one. Raises ParseTimeError."""
    at, rest, values = 0, text, {}
    pieces = list(_PARTS.finditer(layout))
    for number, piece in enumerate(pieces):
        literal = layout[at : piece.start()]
        if not rest.startswith(literal):
            raise ParseTimeError(_problem(layout, text, rest, literal))
        rest = rest[len(literal) :]
        at = piece.end()
        following = pieces[number + 1][0] if number + 1 < len(pieces) and pieces[number + 1].start() == at else ""
        pattern = _pattern(piece[0])
        if following.startswith((".", ",")):
            pattern = pattern.partition("(?P<fraction>")[0]
        found = re.match(pattern, rest, re.IGNORECASE)
        if found is None:
            raise ParseTimeError(_problem(layout, text, rest, piece[0]))
        values.update({key: value for key, value in found.groupdict().items() if value is not None})
        rest = rest[found.end() :]
    literal = layout[at:]
    if not rest.startswith(literal):
        raise ParseTimeError(_problem(layout, text, rest, literal))
    if rest != literal:
        raise ParseTimeError(f"parsing time {quote(text)}: extra text: {quote(rest[len(literal) :])}")
    return _built(values, text)


def _pattern(part: str) -> str:
    if part[0] in ".,":
        digits = f"{{{len(part) - 1}}}" if part[1] == "0" else "+"
        return rf"(?P<fraction>[.,][0-9]{digits})" + ("?" if part[1] == "9" else "")
    if part[0] in "-Z":
        colon = ":" if ":" in part else ""
        minutes = rf"{colon}[0-9]{{2}}" if len(part) > 3 else ""
        seconds = rf"{colon}[0-9]{{2}}" if len(part) > 6 else ""
        zulu = "Z|" if part[0] == "Z" else ""
        return rf"(?P<offset>{zulu}[+-][0-9]{{2}}{minutes}{seconds})"
    return _READERS[part]


def _problem(layout: str, text: str, rest: str, wanted: str) -> str:
    return f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(rest)} as {quote(wanted)}"


def _built(values: dict[str, str], text: str) -> GoTime:
    year = (
        int(values.get("year", 0))
        if "short" not in values
        else int(values["short"]) + (1900 if int(values["short"]) >= 69 else 2000)
    )
    names = {name[:3].lower(): number for number, name in enumerate(_MONTHS, 1)}
    named = values.get("month_name") or values.get("month_abbr")
    month = names[named[:3].lower()] if named else int(values.get("month", 1))
    hour = int(values.get("hour", values.get("hour12", 0)))
    half = values.get("half", "").lower()
    if half == "pm" and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    day, minute, second = (
        int(values.get(part, default)) for part, default in (("day", 1), ("minute", 0), ("second", 0))
    )
    for part, low, number, high in (
        ("month", 1, month, 12),
        ("hour", 0, hour, 23),
        ("minute", 0, minute, 59),
        ("second", 0, second, 59),
    ):
        if not low <= number <= high:
            raise ParseTimeError(f"parsing time {quote(text)}: {part} out of range")
    nanosecond = int(values.get("fraction", ".0")[1:10].ljust(9, "0"))
    zone = _parsed_zone(values)
    try:
        moment = datetime(year or 1, month, day, hour, minute, second, tzinfo=zone or UTC)
        if "yday" in values:
            moment = moment.replace(month=1, day=1) + timedelta(days=int(values["yday"]) - 1)
    except ValueError:
        raise ParseTimeError(f"parsing time {quote(text)}: day out of range") from None
    return GoTime(moment if zone else _local(moment), nanosecond)


def _local(moment: datetime) -> datetime:
    """Return the same date and time in the local zone; in UTC where years end."""
    try:
        return moment.replace(tzinfo=None).astimezone()
    except (OverflowError, ValueError):
        return moment


def _parsed_zone(values: dict[str, str]) -> tzinfo | None:
    offset = values.get("offset", "")
    if offset == "Z" or values.get("zone") == "UTC":
        return UTC
    if offset:
        digits = offset[1:].replace(":", "")
        seconds = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60 + int(digits[4:6] or 0)
        shift = timedelta(seconds=-seconds if offset[0] == "-" else seconds)
        return timezone(shift) if shift else UTC
    return None
