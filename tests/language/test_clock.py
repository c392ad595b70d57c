"""Dates and timestamps are read from text as Spark reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.language import clock

DAY = clock.MICROSECONDS_A_DAY


@given(st.dates())
def test_a_date_is_read_as_it_is_written(day: date) -> None:
    assert clock.read_date(day.isoformat()) == clock.day(day)


@given(st.datetimes())
def test_a_timestamp_is_read_as_it_is_written(moment: datetime) -> None:
    code = clock.wall_time(moment)
    assert clock.read_wall_time(str(moment), UTC) == code
    assert clock.read_timestamp(str(moment), UTC) == code
    assert clock.read_timestamp(moment.isoformat(), UTC) == code


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
    st.integers(-18 * 60, 18 * 60).map(lambda each: timedelta(minutes=each)),
)
def test_an_offset_moves_the_moment_and_not_the_wall_clock(wall: datetime, offset: timedelta) -> None:
    text = wall.replace(tzinfo=timezone(offset)).isoformat(sep=" ")
    assert clock.read_timestamp(text, ZoneInfo("Asia/Tokyo")) == clock.wall_time(wall - offset)
    assert clock.read_wall_time(text, None) == clock.wall_time(wall)
    assert clock.read_wall_time(text, UTC) == clock.wall_time(wall - offset)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("1970-1-2", 1),
        ("1970", 0),
        ("1970-02", 31),
        (" 1970-01-02 ", 1),
        ("1970-01-02T", 1),
        ("1970-01-02 23:59:59.999999", 1),
        ("1970-01-02 23:00:00-05:00", 1),
        ("0001-01-01", -719162),
        ("9999-12-31", 2932896),
    ],
)
def test_forms_of_dates(text: str, days: int) -> None:
    assert clock.read_date(text) == days


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-02", DAY),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01 0:0:1", 1_000_000),
        ("1970-01-01 00:01", 60_000_000),
        ("1970-01-01 00:00:00.5", 500_000),
        ("1970-01-01 00:00:00.1234567", 123_456),
        ("1970-01-01 00:00:00 UTC", 0),
        ("1970-01-01 01:00:00+01", 0),
        ("1970-01-01 01:30:00+0130", 0),
        ("1970-01-01 01:30:00+01:30", 0),
        ("1970-01-01 09:00:00 Asia/Tokyo", 0),
        ("1969-12-31 23:59:59.999999", -1),
    ],
)
def test_forms_of_timestamps(text: str, microseconds: int) -> None:
    assert clock.read_timestamp(text, UTC) == microseconds


@pytest.mark.parametrize(
    "text",
    ["", "x", "70-01-01", "1970-13-01", "1970-02-30", "1970-01-01 25:00:00", "1970-01-01 00:00:00 +99:00", "1970/01/01",
     "1970-01-01 00:00:00.1234567890", "1970-01-01 00:00:00x", "0000-01-01", "10000-01-01"],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        clock.read_timestamp(text, UTC)


def test_the_zone_of_the_space_applies_where_the_text_has_none() -> None:
    paris = ZoneInfo("Europe/Paris")
    assert clock.read_timestamp("2020-07-01 02:00:00", paris) == clock.read_timestamp("2020-07-01 00:00:00Z", UTC)
    assert clock.read_timestamp("2020-01-01 01:00:00", paris) == clock.read_timestamp("2020-01-01 00:00:00Z", UTC)


def test_an_hour_that_the_clocks_skip_moves_on_and_one_they_repeat_is_the_first() -> None:
    paris = ZoneInfo("Europe/Paris")  # on 2020-03-29 02:00 becomes 03:00, on 2020-10-25 03:00 becomes 02:00
    assert clock.read_timestamp("2020-03-29 02:30:00", paris) == clock.read_timestamp("2020-03-29 01:30:00Z", UTC)
    assert clock.read_timestamp("2020-10-25 02:30:00", paris) == clock.read_timestamp("2020-10-25 00:30:00Z", UTC)
