"""Values that are not one point: intervals and sets, and their codes on an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import EventError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Int64s
from tocsin.language.symbolic import Derivation
from tocsin.space.codes import Codec, Integers, ValueProblem
from tocsin.space.concepts import ConceptCodes
from tocsin.space.listed import Listed
from tocsin.space.quantities import Quantities

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
        if self.closed not in ("both", "left", "right", "neither"):
            raise EventError(f"closed is 'both', 'left', 'right' or 'neither', not {self.closed!r}")

    def __str__(self) -> str:
        left = "[" if self.closed in ("both", "left") and self.low is not None else "("
        right = "]" if self.closed in ("both", "right") and self.high is not None else ")"
        low, high = "-∞" if self.low is None else self.low, "∞" if self.high is None else self.high
        return f"{left}{low}, {high}{right}"


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


def codes_of(codec: Codec, derivation: Derivation, value: Any) -> tuple[int, int]:
    """Return the lowest and highest code of a point or an interval; ValueProblem if it holds no value.

    What a range of texts becomes in another case or reversed is not a range: there it spans everything.
    """
    if not is_range(value):
        code = codec.code(value)
        return code, code
    _refuse_ranges(codec)
    interval = interval_of(value)
    low, high = interval.low, interval.high
    if low is not None and high is not None and not isinstance(codec, Quantities):
        try:
            if low > high:
                raise ValueProblem(f"the lower bound of {interval} is above the upper")
        except TypeError:
            raise ValueProblem(f"the bounds of {interval} are not of one type") from None
    if derivation:
        return LOWEST, HIGHEST
    least = LOWEST if low is None else _bound(codec, low, interval.closed in ("right", "neither"), 1)
    most = HIGHEST if high is None else _bound(codec, high, interval.closed in ("left", "neither"), -1)
    if least > most:
        raise ValueProblem(f"{interval} holds no value")
    return least, most


def _refuse_ranges(codec: Codec) -> None:
    if isinstance(codec, ConceptCodes):
        raise ValueProblem("concepts have no order, so there is no range of them")


def _bound(codec: Codec, value: Any, is_open: bool, inwards: int) -> int:
    """Return the code of a bound; an open one is the next code inwards, a bound between two integers the one within."""
    if isinstance(codec, Integers) and isinstance(value, (float, Decimal)):
        if math.isinf(value):
            if (value > 0) == (inwards > 0):
                raise ValueProblem("it holds no value")
            return LOWEST if inwards > 0 else HIGHEST
        if not math.isnan(value) and value != int(value):
            return codec.code(math.ceil(value) if inwards > 0 else math.floor(value))
    code = codec.code(value)
    if is_open and (not isinstance(codec, Listed) or _is_key(codec, code)):
        return code + inwards
    return code


def _is_key(codec: Listed, code: int) -> bool:
    try:
        return codec.book.key_near(code)[1] == 0
    except KeyError:
        return False


def is_ranged(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds intervals: structs of ``low``, ``high`` and perhaps ``closed``."""
    if not pa.types.is_struct(kind):
        return False
    names = {field.name for field in kind}
    return {"low", "high"} <= names <= {"low", "high", "closed"}


def column_codes(codec: Codec, derivation: Derivation, column: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the lowest and highest codes of a column of intervals, NULL where there is none."""
    _refuse_ranges(codec)
    low, high = (pc.struct_field(column, name) for name in ("low", "high"))
    valid = np.array(column.is_valid())
    least, most = (np.full(len(column), NULL) if pa.types.is_null(s.type) else codec.codes(s) for s in (low, high))
    no_low, no_high = np.array(low.is_null()), np.array(high.is_null())
    if derivation:
        same = (least == most) & ~no_low & ~no_high
        return np.where(valid, np.where(same, least, LOWEST), NULL), np.where(
            valid, np.where(same, most, HIGHEST), NULL
        )
    if column.type.get_field_index("closed") >= 0:
        closed = np.array(pc.fill_null(pc.struct_field(column, "closed"), "both").to_pylist(), object)
        unknown = np.flatnonzero(valid & ~np.isin(closed, ["both", "left", "right", "neither"]))
        if len(unknown):
            raise ValueProblem(f"closed is {closed[unknown[0]]!r}, not both, left, right or neither", int(unknown[0]))
        left, right = ~np.isin(closed, ["both", "left"]), ~np.isin(closed, ["both", "right"])
        if isinstance(codec, Listed):
            left &= np.array([_is_key(codec, int(code)) for code in least])
            right &= np.array([_is_key(codec, int(code)) for code in most])
        least, most = least + left, most - right
    least, most = np.where(no_low, LOWEST, least), np.where(no_high, HIGHEST, most)
    empty = np.flatnonzero(valid & (least > most))
    if len(empty):
        raise ValueProblem(f"{column[int(empty[0])].as_py()} holds no value", int(empty[0]))
    return np.where(valid, least, NULL), np.where(valid, most, NULL)


def alternatives(event: Mapping[str, Any], repeated: frozenset[tuple[str, ...]]) -> Iterator[Mapping[str, Any]]:
    """Yield the event, or if it has sets, one event for each combination of their members.

    >>> [dict(one) for one in alternatives({"a": {1}, "b": 2}, frozenset())]
    [{'a': 1, 'b': 2}]
    """
    sets = {name: list(value) for name, value in event.items() if is_set(value) and (name,) not in repeated}
    if not sets:
        yield event
        return
    combinations = math.prod(len(members) for members in sets.values())
    for name, members in sets.items():
        if not members:
            raise EventError(f"field {name}: the set is empty; leave the field out, or give it a value")
        if any(is_set(member) or member is None for member in members):
            raise EventError(f"field {name}: the members of a set are values and intervals, not {members!r}")
    if combinations > MOST_ALTERNATIVES:
        raise EventError(f"the sets make {combinations:,} combinations; the limit is {MOST_ALTERNATIVES:,}")
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
