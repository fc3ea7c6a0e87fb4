"""Times and durations. The vectors are what Go's parser, which Kubernetes uses, answers for the same texts."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.time import Duration, MicroTime, Time, TimeError

DATA = Path(__file__).parents[2] / "data" / "api"
NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)


def vectors(name: str) -> list[Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def read(kind: type[Time | MicroTime], text: str) -> tuple[str | None, str | None]:
    try:
        return str(kind.parse(text)), None
    except TimeError as error:
        return None, str(error)


def in_pythons_years(written: str | None) -> bool:
    return written is None or (len(written.split("-")[0]) == 4 and not written.startswith("0000"))


def test_every_text_is_read_as_kubernetes_reads_it() -> None:
    for text, seconds, seconds_error, micros, micros_error in vectors("times"):
        if in_pythons_years(seconds):
            assert read(Time, text) == (seconds, seconds_error), text
        if in_pythons_years(micros):
            assert read(MicroTime, text) == (micros, micros_error), text


def test_a_time_is_written_in_utc_and_whole_seconds() -> None:
    assert str(Time.parse("2026-01-31T14:00:00.999+02:00")) == "2026-01-31T12:00:00Z"
    assert str(Time.of(NOON.astimezone(timezone(timedelta(hours=-5))))) == "2026-01-31T12:00:00Z"
    assert f"{Time.of(NOON)}" == "2026-01-31T12:00:00Z"
    assert str(Time(2026, 1, 31)) == "2026-01-31T00:00:00Z"
    assert str(Time(2026, 1, 31, tzinfo=timezone(timedelta(hours=1)))) == "2026-01-30T23:00:00Z"
    assert str(Time(33, 1, 1, tzinfo=UTC)) == "0033-01-01T00:00:00Z"


def test_a_micro_time_has_six_digits_always() -> None:
    assert str(MicroTime.of(NOON)) == "2026-01-31T12:00:00.123456Z"
    assert str(MicroTime.of(NOON.replace(microsecond=0))) == "2026-01-31T12:00:00.000000Z"


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123Z", "2026-01-31T12:00:00.1234567Z"])
def test_a_micro_time_with_other_than_six_digits_is_rejected(text: str) -> None:
    with pytest.raises(TimeError, match="cannot parse"):
        MicroTime.parse(text)


@pytest.mark.parametrize("kind", [Time, MicroTime])
def test_arithmetic_keeps_the_type(kind: type[Time | MicroTime]) -> None:
    moment = kind.of(NOON)
    later = moment + timedelta(hours=1)
    assert type(later) is type(later - timedelta(hours=1)) is type(timedelta() + moment) is kind
    assert type(moment.replace(year=2027)) is kind
    assert later - moment == timedelta(hours=1)
    assert moment < later
    assert moment == NOON
    assert hash(moment) == hash(NOON)


def test_times_survive_copying_and_pickling() -> None:
    moment = MicroTime.of(NOON)
    for twin in (copy.deepcopy(moment), pickle.loads(pickle.dumps(moment))):
        assert twin == moment
        assert type(twin) is MicroTime


def test_a_datetime_without_a_zone_is_rejected() -> None:
    with pytest.raises(TimeError, match="has no time zone"):
        Time.of(datetime(2026, 1, 31))  # noqa: DTZ001


def test_the_start_of_year_1_is_the_zero_time() -> None:
    assert Time.parse("0001-01-01T00:00:00Z").is_zero
    assert not Time.parse("0001-01-01T00:00:01Z").is_zero
    assert not Time.of(NOON).is_zero


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_years_that_python_lacks_are_rejected(text: str) -> None:
    with pytest.raises(TimeError) as caught:
        Time.parse(text)
    assert str(caught.value) == f'parsing time "{text}": year out of range'


def test_seconds_since_1970_are_exact_both_ways() -> None:
    assert MicroTime.of(NOON).to_unix() == (1769860800, 123456000)
    assert MicroTime.from_unix(1769860800, 123456789) == NOON
    assert str(MicroTime.from_unix(-1, 999_999_000)) == "1969-12-31T23:59:59.999999Z"
    assert MicroTime.from_unix(-1, 999_999_000).to_unix() == (-1, 999_999_000)
    assert Time.from_unix(0).to_unix() == (0, 0)
    for seconds in (10**12, 10**18, 10**30):
        with pytest.raises(TimeError, match="out of range"):
            Time.from_unix(seconds)


def test_msgspec_hands_times_to_its_hooks() -> None:
    class Holder(msgspec.Struct):
        at: Time

    text = b'{"at":"2026-01-31T12:00:00Z"}'
    holder = msgspec.json.decode(text, type=Holder, dec_hook=lambda kind, value: kind.parse(value))
    assert type(holder.at) is Time
    assert msgspec.json.encode(holder, enc_hook=str) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_written_time_reads_back(moment: datetime) -> None:
    assert MicroTime.parse(str(MicroTime.of(moment))) == moment
    assert Time.parse(str(Time.of(moment))) == moment.replace(microsecond=0)
    assert MicroTime.from_unix(*MicroTime.of(moment).to_unix()) == moment


@given(st.text('0123456789-:.,TZ+é"\\\n', max_size=30))
def test_any_text_is_read_or_rejected(text: str) -> None:
    read(Time, text)
    read(MicroTime, text)


def test_every_duration_is_read_and_written_as_kubernetes_does() -> None:
    for text, nanoseconds, written in vectors("durations"):
        if nanoseconds is None:
            with pytest.raises(TimeError) as caught:
                Duration.parse(text)
            assert str(caught.value) == written, text
        else:
            duration = Duration.parse(text)
            assert (str(duration.nanoseconds), str(duration)) == (nanoseconds, written), text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        ("3", 'time: missing unit in duration "3"'),
        ("3x", 'time: unknown unit "x" in duration "3x"'),
        ("2562047h2562047h", 'time: invalid duration "2562047h2562047h"'),
        ("2562048h", 'time: invalid duration "2562048h"'),
        ("1" * 100_000 + "s", f'time: invalid duration "{"1" * 100_000}s"'),
        ("1\ud800", 'time: unknown unit "\\xed\\xa0\\x80" in duration "1\\xed\\xa0\\x80"'),
    ],
)
def test_a_duration_that_is_none_is_rejected(text: str, message: str) -> None:
    with pytest.raises(TimeError) as caught:
        Duration.parse(text)
    assert str(caught.value) == message


def test_durations_convert_to_and_from_timedelta_and_seconds() -> None:
    assert Duration.of(timedelta(minutes=1, microseconds=1)) == Duration.parse("1m0.000001s")
    assert Duration.of(timedelta(microseconds=-1)).nanoseconds == -1000
    assert Duration.of(90) == Duration.parse("1m30s")
    assert Duration.of(0.1) == Duration.parse("100ms")
    assert Duration.parse("1.5s").seconds == 1.5
    assert Duration.parse("1.5h").to_timedelta() == timedelta(hours=1.5)
    assert Duration.parse("-1999ns").to_timedelta() == timedelta(microseconds=-1)
    for odd in (float("inf"), float("nan"), 1e30):
        with pytest.raises(TimeError):
            Duration.of(odd)
    with pytest.raises(TimeError, match="64 bits"):
        Duration(2**63)


def test_durations_are_ordered_hashed_and_added() -> None:
    second, minute = Duration.parse("1s"), Duration.parse("1m")
    assert second < minute
    assert minute >= second
    assert second != 1
    assert {second, Duration.of(1)} == {second}
    assert second * 60 == 60 * second == minute
    assert minute + second - second == minute
    assert str(-minute) == "-1m0s"
    assert second
    assert not Duration()
    assert repr(second) == "Duration.parse('1s')"
    for operation in (
        lambda: second + 1,  # type: ignore[operator]
        lambda: second - 1,  # type: ignore[operator]
        lambda: second * 1.5,  # type: ignore[operator]
        lambda: second < 1,  # type: ignore[operator]
    ):
        with pytest.raises(TypeError):
            operation()


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_written_duration_reads_back(nanoseconds: int) -> None:
    duration = Duration(nanoseconds)
    assert Duration.parse(str(duration)) == duration
