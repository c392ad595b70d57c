"""The day of a moment, by the clock of the space: for which the rates of currencies are looked up."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.language import clock
from tocsin.space.codes import ValueProblem
from tocsin.space.scalars import brief, is_text

_EPOCH = date(1970, 1, 1)
_FIRST, _LAST = (np.datetime64(day, "D") for day in (date.min, date.max))


def day_of(moment: Any, zone: tzinfo) -> date | None:
    """Return the day of a moment in a zone; a moment without zone is one by the wall clock there.

    >>> from zoneinfo import ZoneInfo
    >>> paris = ZoneInfo("Europe/Paris")
    >>> day_of("2026-06-30 22:30:00Z", paris), day_of(date(2026, 6, 30), paris)
    (datetime.date(2026, 7, 1), datetime.date(2026, 6, 30))
    """
    try:
        if isinstance(moment, datetime):
            return (moment.astimezone(zone) if moment.tzinfo else moment).date()
        if moment is None or isinstance(moment, date):
            return moment
        if isinstance(moment, str):
            return _EPOCH + timedelta(microseconds=clock.read_wall_time(moment, zone))
    except (ValueError, OverflowError, KeyError):
        pass
    raise ValueProblem(f"{brief(moment)} is no day to look a rate up for")


def days_of(moments: pa.Array, zone: tzinfo) -> pa.Array:
    """Return the days of a column of moments, as `day_of` does for each; ValueProblem names the first that is none.

    >>> from datetime import UTC
    >>> days_of(pa.array(["2026-06-30", None]), UTC).to_pylist()
    [datetime.date(2026, 6, 30), None]
    """
    kind = moments.type
    if pa.types.is_null(kind) or pa.types.is_date32(kind):
        return moments.cast(pa.date32())
    if is_text(kind):
        return _each_day(moments.dictionary_decode() if pa.types.is_dictionary(kind) else moments, zone)
    if pa.types.is_timestamp(kind) and kind.tz:
        local = pc.local_timestamp(moments.cast(pa.timestamp(kind.unit, str(zone))))
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        local = moments
    else:
        raise ValueProblem(f"the column holds {kind}, which is no day to look a rate up for")
    days = np.clip(np.array(local).astype("datetime64[D]"), _FIRST, _LAST)
    return pa.array(days, pa.date32(), mask=np.array(local.is_null()))


def _each_day(moments: pa.Array, zone: tzinfo) -> pa.Array:
    encoded = moments.dictionary_encode()
    found = []
    for position, moment in enumerate(encoded.dictionary.to_pylist()):
        try:
            found.append(day_of(moment, zone))
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, pc.index(encoded.indices, position).as_py()) from None
    return pa.array(found, pa.date32()).take(encoded.indices)
