"""Cron schedules, compared with the answers of the library that Kubernetes uses (tests/data/api/cron.json)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.text.cron import ScheduleError, parse_schedule

_DATA = json.loads((Path(__file__).parents[3] / "data" / "api" / "cron.json").read_text())
_NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("text", "error"), _DATA["texts"])
def test_a_text_is_rejected_in_the_words_of_kubernetes_or_read(text: str, error: str) -> None:
    if not error:
        parse_schedule(text)
        return
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text)
    assert str(caught.value) == error


def test_times_are_those_that_kubernetes_finds_around_changes_of_clocks_too() -> None:
    for case in _DATA["times"]:
        schedule = parse_schedule(case["spec"])
        moment: datetime | None = datetime.fromisoformat(case["after"])
        for wanted in case["next"]:
            assert moment is not None
            moment = schedule.next(moment)
            assert (moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else "") == wanted, case


def test_the_zone_is_the_one_that_is_named_beside_the_schedule() -> None:
    schedule = parse_schedule("30 6 * * *", "Europe/Paris")
    assert schedule.next(_NOW) == datetime(2026, 1, 2, 5, 30, tzinfo=UTC)


def test_a_zone_in_the_text_wins_over_the_one_beside_it() -> None:
    schedule = parse_schedule("TZ=UTC 30 6 * * *", "Europe/Paris")
    assert schedule.next(_NOW) == datetime(2026, 1, 2, 6, 30, tzinfo=UTC)


def test_without_a_zone_the_clocks_of_the_time_that_is_asked_about_count() -> None:
    after = datetime(2026, 1, 1, 12, 0, tzinfo=ZoneInfo("Asia/Kathmandu"))
    found = parse_schedule("30 6 * * *").next(after)
    assert found is not None
    assert (found.hour, found.minute, found.tzinfo) == (6, 30, after.tzinfo)


@pytest.mark.parametrize("name", ["Nowhere/Land", "europe/../paris", "a\0b", "Europe"])
def test_an_unknown_zone_is_rejected_by_name(name: str) -> None:
    with pytest.raises(ScheduleError, match=r"unknown time zone|invalid location"):
        parse_schedule("* * * * *", name)


@pytest.mark.parametrize("text", ["* * * * *", "@every 5m"])
def test_a_time_without_a_zone_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        parse_schedule(text).next(datetime(2026, 1, 1))  # noqa: DTZ001 - that is what is tested


@pytest.mark.parametrize("text", [", * * * *", "* , * * *", "* * , * ,", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_schedule_that_never_matches_is_detected_quickly(text: str) -> None:
    assert parse_schedule(text).next(_NOW) is None


@pytest.mark.parametrize("text", ["0 0 1 1 *", "@every 1000h", "59 23 31 12 *", "0 0 29 2 *"])
def test_the_end_of_the_calendar_is_the_end_of_every_schedule(text: str) -> None:
    for last in (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 58, tzinfo=UTC)):
        assert parse_schedule(text).next(last) is None


def test_a_day_that_clocks_skip_is_ignored() -> None:
    """Samoa went from the 29th to the 31st of December 2011, where the original never returns."""
    found = parse_schedule("TZ=Pacific/Apia @monthly").next(datetime(2011, 12, 29, 5, tzinfo=UTC))
    assert found is not None
    assert found.astimezone(ZoneInfo("Pacific/Apia")).strftime("%Y-%m-%d %H:%M") == "2012-01-01 00:00"


@given(st.text(max_size=40))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except ScheduleError:
        return
    schedule.next(_NOW)


_FIELDS = st.tuples(
    st.integers(0, 59), st.integers(0, 23), st.integers(1, 28), st.integers(1, 12), st.sampled_from(["*", "1-5", "0,6"])
)


@given(_FIELDS, st.datetimes(datetime(1975, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001 - the zone is added
def test_the_next_time_is_later_on_the_second_and_matches(fields: tuple[int, int, int, int, str], at: datetime) -> None:
    minute, hour, day, month, weekdays = fields
    after = at.replace(tzinfo=UTC)
    found = parse_schedule(f"{minute} {hour} {day} {month} {weekdays}").next(after)
    assert found is not None
    assert found > after
    assert (found.minute, found.hour, found.second, found.microsecond) == (minute, hour, 0, 0)
    assert found - after <= timedelta(days=366 * 5)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("*/10 * * * * *", ["00:00:10", "00:00:20"]),
        ("5,50 59 23 * * *", ["23:59:05", "23:59:50"]),
        ("30 * * * * ?", ["00:00:30", "00:01:30"]),
        ("*/5 * * * *", ["00:05:00", "00:10:00"]),
        ("@every 90s", ["00:01:33", "00:03:03"]),
        ("@hourly", ["01:00:00", "02:00:00"]),
    ],
)
def test_with_seconds_a_sixth_field_may_come_first(text: str, times: list[str]) -> None:
    schedule, moment, found = parse_schedule(text, seconds=True), datetime(2024, 1, 1, 0, 0, 3, tzinfo=UTC), []
    for _ in times:
        following = schedule.next(moment)
        assert following is not None
        moment = following
        found.append(moment.strftime("%H:%M:%S"))
    assert found == times


def test_with_seconds_a_stepped_star_is_a_star_for_days() -> None:
    wednesday = datetime(2024, 5, 1, tzinfo=UTC)
    text = "0 0 */2 * mon"  # odd days that are Mondays; without seconds, odd days and Mondays
    assert parse_schedule(text, seconds=True).next(wednesday) == datetime(2024, 5, 13, tzinfo=UTC)
    assert parse_schedule(text).next(wednesday) == datetime(2024, 5, 3, tzinfo=UTC)


@pytest.mark.parametrize("text", ["* * * *", "* * * * * * *", "60 * * * * *"])
def test_with_seconds_other_numbers_of_fields_are_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(text, seconds=True)
