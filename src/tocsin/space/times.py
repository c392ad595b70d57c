"""Codes of times: timestamps by their microseconds, dates by their days. Their domain are the years 1 to 9999."""

from __future__ import annotations

from datetime import date, datetime, tzinfo
from typing import Any

import pyarrow as pa

from tocsin.index.boxes import NULL
from tocsin.language import clock
from tocsin.language.tree import Constant, Kind
from tocsin.space.codes import Codes, Direct, ValueProblem, cast, each_code, filled, raised
from tocsin.space.scalars import brief, is_text


class Moments(Direct):
    """Timestamps: microseconds since 1970, in UTC, or by the wall clock if they have no zone."""

    kinds = frozenset({"string", "date", "timestamp", "timestamp_ntz"})
    expects = "a timestamp"
    least, greatest = clock.wall_time(datetime.min), clock.wall_time(datetime.max)
    wider = True

    def __init__(self, zoned: bool, zone: tzinfo) -> None:
        self.zoned, self.zone = zoned, zone

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if is_text(values.type):
            return each_code(values, self.code)
        if not pa.types.is_timestamp(values.type) or bool(values.type.tz) != self.zoned:
            wanted = "timestamps with a zone" if self.zoned else "timestamps without zone"
            raise ValueProblem(f"the column holds {values.type}, not {wanted}")
        exact = cast(values, pa.timestamp("us", values.type.tz), "is no whole number of microseconds in 64 bits")
        return raised(exact.cast(pa.int64()))

    def code(self, value: Any) -> int:  # noqa: D102
        if isinstance(value, str):
            return self._read(value)
        if not isinstance(value, datetime):
            raise ValueProblem(f"{brief(value)} is no timestamp")
        if getattr(value, "nanosecond", 0):
            raise ValueProblem(f"{brief(value)} has more than microseconds")
        if self.zoned:
            try:
                return clock.moment(value if value.tzinfo else value.replace(tzinfo=self.zone))
            except OverflowError:
                raise ValueProblem(f"{brief(value)} is before the first year or after the last") from None
        if value.tzinfo:
            raise ValueProblem(f"{brief(value)} has a zone and the dimension has none")
        return clock.wall_time(value)

    def _read(self, text: str, kind: Kind = "timestamp") -> int:
        """Return the code of a text; a zone behind a constant that is no moment is not looked at, as in Spark."""
        zone = self.zone if kind == "timestamp" else None
        try:
            return clock.read_timestamp(text, self.zone) if self.zoned else clock.read_wall_time(text, zone)
        except (ValueError, OverflowError, KeyError) as error:
            raise ValueProblem(str(error)) from None

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        try:
            code = self._read(str(constant.value), constant.kind)
        except ValueProblem as problem:
            raise ValueError(problem.reason) from None
        return code, code


class Days(Direct):
    """Dates: days since 1970. Compared with a timestamp, a date is its first moment."""

    kinds = frozenset({"string", "date", "timestamp", "timestamp_ntz"})
    expects = "a date"
    least, greatest = clock.day(date.min), clock.day(date.max)
    wider = True

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        if is_text(values.type):
            return each_code(values, self.code)
        if not pa.types.is_date(values.type):
            raise ValueProblem(f"the column holds {values.type}")
        return filled(values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), NULL)

    def code(self, value: Any) -> int:  # noqa: D102
        if isinstance(value, str):
            try:
                return clock.read_date(value)
            except ValueError as error:
                raise ValueProblem(str(error)) from None
        if isinstance(value, datetime) or not isinstance(value, date):
            raise ValueProblem(f"{brief(value)} is no date")
        return clock.day(value)

    def _cut_one(self, constant: Constant) -> tuple[int, int]:
        if constant.kind in ("string", "date"):
            code = clock.read_date(str(constant.value))
            return code, code
        days, rest = divmod(
            clock.read_wall_time(str(constant.value), self.zone if constant.kind == "timestamp" else None),
            clock.MICROSECONDS_A_DAY,
        )
        return days, days + (rest > 0)
