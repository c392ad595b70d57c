"""Values that are not one point: intervals and sets, and their codes on an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.arguments import brief, is_one_of
from tocsin.errors import EventError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Int64s
from tocsin.space.codes import Codec, Direct, Doubles, Ends, Integers, ValueProblem
from tocsin.space.listed import Texts

Path = tuple[str, ...]
Name = TypeVar("Name", str, Path)

Closed = Literal["both", "left", "right", "neither"]

MOST_ALTERNATIVES = 1024
"""Into how many combinations of single intervals the sets of one event may be taken apart."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The values from ``low`` to ``high``; None is no bound. ``closed`` says which ends belong to it.

    >>> Interval(2.0, 2.5)
    Interval(low=2.0, high=2.5, closed='both')
    >>> Interval(high=10, closed="neither").low is None
    True
    """

    low: Any = None
    high: Any = None
    closed: Closed = "both"

    def __post_init__(self) -> None:
        if not is_one_of(self.closed, ("both", "left", "right", "neither")):
            raise EventError(f"closed is 'both', 'left', 'right' or 'neither', not {brief(self.closed)}")

    def __str__(self) -> str:
        return str(ends_of(self))


def is_range(value: Any) -> bool:
    """Return whether a value of a plain dimension is an interval: an `Interval`, or a pair, which is a closed one."""
    return type(value) is Interval or type(value) is tuple


def is_set(value: Any) -> bool:
    """Return whether a value of a plain dimension is a set of points and intervals."""
    return isinstance(value, (set, frozenset))


def interval_of(value: Any) -> Interval:
    """Return an interval or a pair as an interval.

    >>> interval_of((2.0, 2.5))
    Interval(low=2.0, high=2.5, closed='both')
    """
    if isinstance(value, Interval):
        return value
    if len(value) != 2:
        raise ValueProblem(f"{value!r} is not a pair of bounds")
    return Interval(*value)


def ends_of(value: Any) -> Ends:
    """Return the bounds of an interval or a pair.

    >>> ends_of(Interval(2, 5, "left")).right_open
    True
    """
    interval = interval_of(value)
    closed = interval.closed
    return Ends(interval.low, interval.high, closed in ("right", "neither"), closed in ("left", "neither"))


def codes_of(codec: Codec, value: Any, *, keep: bool = False) -> tuple[int, int]:
    """Return the lowest and highest code of a point or an interval; ValueProblem if it holds no value.

    ``keep``: the codes stay those of the values, whatever is subscribed later (see `Codec.place`).
    """
    if type(value) is tuple and len(value) == 2:
        return codec.span(Ends(*value), keep=keep)
    if is_range(value):
        return codec.span(ends_of(value), keep=keep)
    code = codec.place(value) if keep else codec.code(value)
    return code, code


def is_ranged(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds intervals: structs of ``low``, ``high`` and perhaps ``closed``."""
    if not pa.types.is_struct(kind):
        return False
    names = {field.name for field in kind}
    return {"low", "high"} <= names <= {"low", "high", "closed"}


def column_codes(codec: Codec, column: pa.Array, *, keep: bool = False) -> tuple[Int64s, Int64s]:
    """Return the lowest and highest codes of a column of values or of intervals, NULL where there is none: those that
    `codes_of` has for each, computed together where values are their own codes."""
    if pa.types.is_null(column.type):
        return np.full(len(column), NULL), np.full(len(column), NULL)
    if is_ranged(column.type):
        return _range_codes(codec, column, keep)
    if keep and not isinstance(codec, Direct):
        codes = codec.place_all(column) if isinstance(codec, Texts) else _placed(codec, column)
    else:
        codes = codec.codes(column)
    return codes, codes


def _placed(codec: Codec, column: pa.Array) -> Int64s:
    """Return the codes of values that are kept."""
    codec.codes(column)  # says which row does not fit, before anything is kept
    for value in column.drop_null().unique().to_pylist():
        codec.place(value)
    return codec.codes(column)


def _range_codes(codec: Codec, column: pa.Array, keep: bool) -> tuple[Int64s, Int64s]:
    valid = np.array(column.is_valid())
    low, high = (pc.struct_field(column, name) for name in ("low", "high"))
    left_open, right_open = _open_ends(column, valid)
    if type(codec) is Doubles or type(codec) is Integers:
        wanted = pa.float64() if type(codec) is Doubles else pa.int64()
        if low.type == high.type == wanted and not (left_open.any() or right_open.any()):
            least, most = codec.codes(low), codec.codes(high)
            from_first, to_last = np.array(low.is_null()), np.array(high.is_null())
            least, most = np.where(from_first, codec.least, least), np.where(to_last, codec.greatest, most)
            several = least != most
            least = np.where(from_first & several, LOWEST, np.maximum(least, LOWEST))
            most = np.where(to_last & several, HIGHEST, most)
            if not (valid & (least > most)).any():
                return np.where(valid, least, NULL), np.where(valid, most, NULL)
    least, most = np.full(len(column), NULL), np.full(len(column), NULL)
    bounds = zip(low.to_pylist(), high.to_pylist(), left_open.tolist(), right_open.tolist(), strict=True)
    for row, ends in enumerate(bounds):
        if valid[row]:
            try:
                least[row], most[row] = codec.span(Ends(*ends), keep=keep)
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, row) from None
    return least, most


def single_texts(codec: Texts, column: pa.Array) -> pa.Array:
    """Return the text of each range of a column that holds one and no other, else null."""
    ranges = (ends_at(column, row) for row in range(len(column)))
    return pa.array([None if ends is None else codec.only(ends) for ends in ranges], pa.large_string())


def ends_at(column: pa.Array, row: int) -> Ends | None:
    """Return the bounds of one interval of a column, None for NULL."""
    value = column[row].as_py()
    return None if value is None else ends_of(Interval(value["low"], value["high"], value.get("closed") or "both"))


def _open_ends(column: pa.Array, valid: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return of which intervals of a column the lower and the upper bound do not belong to them."""
    if column.type.get_field_index("closed") < 0:
        return np.zeros(len(column), bool), np.zeros(len(column), bool)
    closed = np.array([each or "both" for each in pc.struct_field(column, "closed").to_pylist()], object)
    unknown = np.flatnonzero(valid & ~np.isin(closed, ["both", "left", "right", "neither"]))
    if len(unknown):
        raise ValueProblem(f"closed is {closed[unknown[0]]!r}, not both, left, right or neither", int(unknown[0]))
    return np.isin(closed, ["right", "neither"]), np.isin(closed, ["left", "neither"])


def alternatives(event: Mapping[Name, Any], repeated: frozenset[Path], rows: int = 1) -> Iterator[Mapping[Name, Any]]:
    """Yield the event, or if it has sets, one event for each combination of their members; each is for so many
    ``rows``, which count.

    >>> [dict(one) for one in alternatives({"a": {1}, "b": 2}, frozenset())]
    [{'a': 1, 'b': 2}]
    """
    sets = {name: list(value) for name, value in event.items() if is_set(value) and (name,) not in repeated}
    combinations = rows * math.prod(len(members) for members in sets.values())
    for at, members in sets.items():
        name = at if isinstance(at, str) else ".".join(at)
        if not members:
            raise EventError(f"field {name}: the set is empty; leave the field out, or give it a value")
        if any(is_set(member) or member is None for member in members):
            raise EventError(f"field {name}: the members of a set are values and intervals, not {members!r}")
    if combinations > MOST_ALTERNATIVES:
        raise EventError(f"the sets make {combinations:,} combinations; the limit is {MOST_ALTERNATIVES:,}")
    if not sets:
        yield event
        return
    for chosen in product(*sets.values()):
        yield {**event, **dict(zip(sets, chosen, strict=True))}


def exploded(batch: pa.RecordBatch, plain: frozenset[str]) -> tuple[pa.RecordBatch, Int64s | None]:
    """Return a batch whose columns of sets (lists in ``plain`` fields) are taken apart, and the row of each of its
    rows; None if it is the batch given."""
    rows: Int64s | None = None
    for name in sorted(plain.intersection(batch.schema.names)):
        place = batch.schema.get_field_index(name)
        if place < 0 or not holds_sets(batch.schema.field(place).type):
            continue
        column = batch.column(place)
        counts = np.array(pc.fill_null(pc.list_value_length(column), 1), np.int64)
        if not counts.all():
            error = EventError(f"row {int(np.argmin(counts))}, field {name}: the set is empty; NULL is no value")
            error.row = int(np.argmin(counts))  # type: ignore[attr-defined]
            raise error
        source = np.repeat(np.arange(batch.num_rows), counts)
        members = pc.list_flatten(column)
        which = np.full(len(source), -1, np.int64)
        which[np.repeat(np.array(column.is_valid()), counts)] = np.arange(len(members))
        batch = batch.take(pa.array(source))
        batch = batch.set_column(place, name, members.take(pa.array(which, pa.int64(), mask=which < 0)))
        rows = source if rows is None else rows[source]
    return batch, rows


def holds_sets(kind: pa.DataType) -> bool:
    """Return whether a column of a plain field holds sets: lists of values or of intervals."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_list and (not pa.types.is_nested(kind.value_type) or is_ranged(kind.value_type)))
