"""The values of fields as operators receive them: what the matcher sees, as plain Python values.

There is one table, `typed.typed_value`, from the type of a dimension to what it holds for a value of an event; the
values of a dictionary and those of a column both go through it. Columns of doubles, integers and texts, whose values
are held as they are, are taken over at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import Int64s
from tocsin.language.arrays import number_array, numbers_of
from tocsin.language.symbolic import AxisKey
from tocsin.language.tree import Transform
from tocsin.space.axes import Axes, codec_of
from tocsin.space.codes import Codec, ValueProblem
from tocsin.space.columns import Column, Open, column_at
from tocsin.space.decoding import only_value
from tocsin.space.intervals import Closed, Interval, alternatives, is_ranged
from tocsin.space.listed import derive_one
from tocsin.space.nested import elements_of
from tocsin.space.reading import Readings, SetGiven
from tocsin.space.scalars import brief, plain_scalar
from tocsin.space.typed import quantities_in, typed_value
from tocsin.space.types import Number, Text

Path = tuple[str, ...]
Convert = Callable[[Any], Any]
"""Returns the operand of one value that is not NULL; ValueProblem if the value does not fit its dimension."""

_RANGES = (tuple, Interval)
_SETS = (set, frozenset)


class Misfit(NamedTuple):
    """Stands for a value that is not handed over: it does not fit its dimension, so that a call fails that it goes to,
    or, without a reason, it is a range, of which a call is unknown."""

    reason: str


RANGE = Misfit("")


class Operands:
    """Reads the fields of events for operators. A field that is no dimension is handed over as it is given."""

    def __init__(self, axes: Axes, readings: Readings, look: Callable[[Any, Path], Any]) -> None:
        self._axes, self._readings, self._look = axes, readings, look
        self._known: dict[Path, tuple[Path, Convert] | None] = {}

    # Dictionaries

    def value(self, event: Mapping[str, Any], given: Path, transform: Transform = "") -> Any:
        """Return the operand of a field of a dictionary, None for NULL, or a `Misfit`."""
        found = self._dimension(given)
        if found is None:
            return plain_scalar(self._look(event, given))
        path, convert = found
        try:
            if path in self._readings:
                value = self._readings.value(lambda each: self._look(event, each), path)
            else:
                value = self._look(event, path)
            return self._operand(value, path, convert, transform)
        except SetGiven:
            return RANGE
        except ValueProblem as problem:
            return self._misfit(path, problem)

    def alternatives(self, event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return an event, or one for each combination of the members of its sets; EventError if they are too many."""
        if not any(isinstance(value, _SETS) for value in event.values()):
            return [event]
        return list(alternatives(event, self._axes.space.repeated))

    def _operand(self, value: Any, path: Path, convert: Convert, transform: Transform) -> Any:
        if path in self._axes.space.repeated:
            if value is None:
                return None
            listed = elements_of(value, path)
            if any(type(each) is Open for each in listed):
                return RANGE
            return [_in_case(_one(each, convert), transform) for each in listed]
        if type(value) in _RANGES:
            value = only_value(self._axes.space, path, value)
            return RANGE if value is None else _in_case(convert(value), transform)
        return RANGE if isinstance(value, _SETS) else _in_case(_one(value, convert), transform)

    # Batches

    def column(self, batch: pa.RecordBatch, given: Path) -> Column | None:
        """Return the column of a field of a batch, None if there is none; ValueProblem if it cannot be read."""
        found = self._dimension(given)
        if found is None:
            return _undeclared(batch, given) or column_at(batch, given)
        if found[0] in self._readings:
            return self._readings.column(
                lambda each: column_at(batch, each), found[0], batch.num_rows, missing="unspecified"
            )
        return column_at(batch, found[0])

    def values(self, column: Column | None, given: Path, transform: Transform, rows: Int64s) -> list[Any]:
        """Return the operands of a column for some rows."""
        if column is None:
            return [None] * len(rows)
        found = self._dimension(given)
        if found is None:
            return [_as_given(value, given) for value in _listed(column, rows, whole=False)]
        path, convert = found
        repeated = path in self._axes.space.repeated
        if not repeated and column.offsets is None and not transform and _are_operands(self._kind(path), column.values):
            taken: list[Any] = column.values.take(number_array(rows)).to_pylist()
            return taken
        operands: list[Any] = []
        is_quantity = getattr(self._kind(path), "unit", None) is not None
        for value in _listed(column, rows, whole=repeated, is_quantity=is_quantity):
            try:
                operands.append(self._operand(value, path, convert, transform))
            except ValueProblem as problem:
                operands.append(self._misfit(path, problem))
        return operands

    def numbers(self, column: Column, given: Path, rows: Int64s) -> npt.NDArray[Any] | None:
        """Return the operands of a column of numbers at once, float64 or int64; None where they are to be looked at one
        by one: other types, and NULLs among them."""
        found = self._dimension(given)
        if found is None or column.offsets is not None or column.values.null_count:
            return None
        kind = self._axes.space[found[0]]  # of a repeated one no single value is the operand
        if not isinstance(kind, Number) or not _are_operands(kind, column.values):
            return None
        taken: npt.NDArray[Any] = numbers_of(column.values)[rows]
        return taken

    def array(self, values: list[Any], given: Path, objects: bool) -> npt.NDArray[Any]:
        """Return operands as bulk operators receive them: doubles and integers as such, all else as objects."""
        found = self._dimension(given)
        kind = None if found is None or found[0] in self._axes.space.repeated else self._kind(found[0])
        if isinstance(kind, Number) and not kind.is_decimal and not objects:
            return np.array(values, np.float64 if kind.kind == "double" else np.int64)
        held = np.empty(len(values), object)
        for at, value in enumerate(values):
            held[at] = value
        return held

    # Both

    def _dimension(self, given: Path) -> tuple[Path, Convert] | None:
        """Return the dimension that a name means, and what makes operands of its values; None if it is none."""
        if given not in self._known:
            path = self._axes.space.find(given)
            self._known[given] = None if path is None else (path, self._convert(path))
        return self._known[given]

    def _kind(self, path: Path) -> Any:
        return self._axes.space.scalar(path)

    def _convert(self, path: Path) -> Convert:
        """Return what makes operands of the values of a dimension."""
        codec = codec_of(self._axes.space, AxisKey(path))
        return lambda value: _held(self._kind(path), codec, value)  # a tree of concepts may have grown

    def _misfit(self, path: Path, problem: ValueProblem) -> Misfit:
        expects = codec_of(self._axes.space, AxisKey(path)).expects
        return Misfit(f"field {'.'.join(path)}: {problem.reason}; {expects} is expected")


def _as_given(value: Any, path: Path) -> Any:
    """Return a value of a field that is no dimension, or what is wrong with a time that Python does not hold."""
    if isinstance(value, (_TooFine, _TooFar)):
        return Misfit(f"field {'.'.join(path)}: {value!r} is no time of Python")
    return plain_scalar(value)


def _one(value: Any, convert: Convert) -> Any:
    return None if value is None else convert(value)


def _in_case(value: Any, transform: Transform) -> Any:
    return derive_one(value, transform) if transform and isinstance(value, str) else value


def _held(kind: Any, codec: Codec, value: Any) -> Any:
    try:
        return typed_value(kind, codec, value)
    except OverflowError:
        raise ValueProblem(f"{brief(value)} is beyond what Python holds") from None


def _undeclared(batch: pa.RecordBatch, path: Path) -> Column | None:
    """Return the column of a field that is no dimension, through structs, None if there is none."""
    place = batch.schema.get_field_index(path[0])
    column = batch.column(place) if place >= 0 else None
    for name in path[1:]:
        place = column.type.get_field_index(name) if column is not None and pa.types.is_struct(column.type) else -1
        column = pc.struct_field(column, [place]) if place >= 0 else None
    return None if column is None else Column(column)


def _listed(column: Column, rows: Int64s, whole: bool, is_quantity: bool = False) -> list[Any]:
    """Return the values of a column for some rows as Python values: lists where it is one of lists, or is to be."""
    if column.offsets is None and not whole:
        return _python_values(column.values.take(number_array(rows)), is_quantity)
    held = column.listed()
    assert held.offsets is not None and held.present is not None  # a listed column has both
    starts, stops = held.offsets[rows], held.offsets[rows + 1]
    places = np.concatenate([np.zeros(0, np.int64), *map(np.arange, starts, stops)]).astype(np.int64)
    elements = _python_values(held.values.take(number_array(places)), is_quantity)
    ends = np.cumsum(stops - starts).tolist()
    return [
        elements[end - count : end] if there else None
        for end, count, there in zip(ends, (stops - starts).tolist(), held.present[rows].tolist(), strict=True)
    ]


def _python_values(values: pa.Array, is_quantity: bool) -> list[Any]:
    """Return values as a dictionary would hold them: ranges as intervals, quantities with their units and days, times
    of nanoseconds as something that is no time."""
    kind = values.type
    if is_ranged(kind):
        low, high = (_python_values(pc.struct_field(values, name), is_quantity) for name in ("low", "high"))
        ends = [each and each.get("closed") for each in values.to_pylist()]
        valid = values.is_valid().to_pylist()
        bounds = zip(valid, low, high, ends, strict=True)
        return [_range(least, most, closed or "both") if there else None for there, least, most, closed in bounds]
    if pa.types.is_struct(kind) and is_quantity:
        return quantities_in(values)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        exact = np.array(values.cast(pa.int64()).fill_null(0)) % 1_000 == 0
        coarse = values.cast(pa.timestamp("us", kind.tz), safe=False).to_pylist()
        return [each if fits else _TooFine() for each, fits in zip(coarse, exact.tolist(), strict=True)]
    try:
        found: list[Any] = values.to_pylist()
    except (OverflowError, ValueError):  # a time outside Python's years
        found = [_python_value(each) for each in values]
    return found


def _python_value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return _TooFar()


def _range(low: Any, high: Any, closed: str) -> Interval | tuple[Any, ...]:
    """Return a range; of one that is closed in no way there is, something that is none."""
    return Interval(low, high, closed) if closed in get_args(Closed) else (low, high, closed)  # type: ignore[arg-type]


class _TooFine:
    """A time with more than microseconds."""

    def __repr__(self) -> str:
        return "a time of nanoseconds"


class _TooFar:
    """A time outside the years that Python holds."""

    def __repr__(self) -> str:
        return "a time outside the years 1 to 9999"


def _are_operands(kind: Any, values: pa.Array) -> bool:
    """Return whether the values of a column are operands as they are."""
    if isinstance(kind, Text):
        return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))
    if not isinstance(kind, Number) or kind.is_decimal:
        return False
    return bool(values.type == (pa.float64() if kind.kind == "double" else pa.int64()))
