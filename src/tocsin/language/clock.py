"""Dates and timestamps as Spark reads them from text, and as whole days and microseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

MICROSECONDS_A_DAY = 86_400_000_000

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_TEXT = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](?:(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*"
    r"(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z_]+/[A-Za-z_/+-]+)?)?)?)?\s*\Z",
    re.ASCII,
)
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?\Z")


def read_date(text: str) -> int:
    """Return the day that a text names, as days since 1970; a time of day behind it is ignored, as Spark does.

    >>> read_date("1970-01-11"), read_date("1970-02"), read_date("1970-01-02 10:00:00")
    (10, 31, 1)
    """
    year, month, day, *_ = _parts(text)
    try:
        return date(int(year), int(month or 1), int(day or 1)).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise ValueError(f"there is no day {text!r}: {error}") from None


def read_timestamp(text: str, zone: tzinfo) -> int:
    """Return the moment that a text names, as microseconds since 1970 UTC; ``zone`` where the text has none.

    >>> read_timestamp("1970-01-01 01:00:00+01:00", UTC), read_timestamp("1970-01-02", UTC)
    (0, 86400000000)
    """
    local, named = _local(text)
    return moment(local.replace(tzinfo=named or zone))


def read_wall_time(text: str, zone: tzinfo | None) -> int:
    """Return the wall-clock time that a text names, as microseconds; a zone in the text is converted to ``zone``, or
    not looked at if that is None."""
    local, named = _local(text)
    return wall_time(
        local if named is None or zone is None else local.replace(tzinfo=named).astimezone(zone).replace(tzinfo=None)
    )


def has_zone(text: str) -> bool:
    """Return whether a text of a time names its zone.

    >>> has_zone("2020-01-01 00:00:00Z"), has_zone("2020-01-01")
    (True, False)
    """
    return _local(text)[1] is not None


def moment(value: datetime) -> int:
    """Return a datetime with zone as microseconds since 1970 UTC."""
    return wall_time(value.astimezone(UTC).replace(tzinfo=None))


def wall_time(value: datetime) -> int:
    """Return a datetime without zone as microseconds since 1970."""
    return (value - _EPOCH) // _MICROSECOND


def day(value: date) -> int:
    """Return a date as days since 1970."""
    return value.toordinal() - _EPOCH_DAY


def _parts(text: str) -> tuple[str, ...]:
    found = _TEXT.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no date or timestamp; write it like '2026-01-31' or '2026-01-31 12:00:00'")
    return found.groups()


def _local(text: str) -> tuple[datetime, tzinfo | None]:
    """Return the wall-clock time a text names, and its zone if it names one."""
    year, month, day_, hour, minute, second, fraction, zone = _parts(text)
    micro = int((fraction or "0").ljust(6, "0")[:6])
    numbers = int(year), int(month or 1), int(day_ or 1), int(hour or 0), int(minute or 0), int(second or 0)
    try:
        local = datetime(*numbers, micro)
    except ValueError as error:
        raise ValueError(f"there is no time {text!r}: {error}") from None
    return local, _zone(zone) if zone else None


def _zone(text: str) -> tzinfo:
    offset = _OFFSET.match(text)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours > 18 or minutes > 59:
            raise ValueError(f"there is no offset {text!r}; it is at most 18:00")
        return timezone(sign * timedelta(hours=hours, minutes=minutes))
    try:
        return UTC if text in ("Z", "UTC", "GMT") else ZoneInfo(text)
    except (OSError, KeyError, ValueError):  # the name of a folder of zones, of none, or of a path
        raise ValueError(f"there is no time zone {text!r}") from None
