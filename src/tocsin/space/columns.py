"""Columns of one field, and several of them as one: under two names, or of all that is below an attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import EventError
from tocsin.index.boxes import Int64s
from tocsin.space.codes import Ends, ValueProblem
from tocsin.space.scalars import brief

Path = tuple[str, ...]
Typed = Callable[[pa.Array], pa.Array]
"""Gives a column as its dimension holds it."""


class Open(NamedTuple):
    """An element of an attribute that may be any value of a range: ``member`` is the field below the attribute that
    has the range."""

    member: Path
    ends: Ends

    def __repr__(self) -> str:
        return str(self.ends)


class Column(NamedTuple):
    """The values of one field: for a repeated field, the elements of all rows with their offsets, and which rows have
    any. ``spans`` says in which rows a field that a formula computes may be anything; ``open`` has an `Open` for each
    element that is a range, whose value is null, and None for the others."""

    values: pa.Array
    offsets: Int64s | None = None
    present: npt.NDArray[np.bool_] | None = None
    spans: npt.NDArray[np.bool_] | None = None
    open: npt.NDArray[np.object_] | None = None

    @property
    def rows(self) -> int:
        """How many events there are."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def listed(self) -> Column:
        """Return the column as one of a repeated field: a value is one element, NULL none."""
        if self.offsets is not None:
            return self
        present = np.array(self.values.is_valid())
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(present)])
        return Column(self.values.drop_null(), offsets, present)

    def open_rows(self) -> Int64s:
        """Return the rows in which an element is a range."""
        if self.open is None or self.offsets is None:
            return np.empty(0, np.int64)
        return np.searchsorted(self.offsets, np.flatnonzero(self.open != np.array(None)), "right") - 1

    def row_of(self, place: int) -> int:
        """Return the row that a value belongs to."""
        return place if self.offsets is None else int(np.searchsorted(self.offsets, place, "right")) - 1


def either(one: Column, other: Column, names: tuple[Path, Path], typed: Typed) -> Column:
    """Return the values of a field that stands under two names; ValueProblem where they differ."""
    if one.offsets is not None or other.offsets is not None:
        return _either_list(one.listed(), other.listed(), names, typed)
    left, right = of_one_type([one, other], typed)
    both = np.flatnonzero(np.array(left.is_valid()) & np.array(right.is_valid()))
    if len(both):
        rows = pa.array(both)
        pairs = zip(left.take(rows).to_pylist(), right.take(rows).to_pylist(), strict=True)
        for row, (value, second) in zip(both.tolist(), pairs, strict=True):
            if value != second:
                raise ValueProblem(two_values(*names, value, second), row)
    return Column(pc.if_else(left.is_valid(), left, right))


def _either_list(one: Column, other: Column, names: tuple[Path, Path], typed: Typed) -> Column:
    assert one.offsets is not None and other.offsets is not None  # the caller made lists of them
    assert one.present is not None and other.present is not None
    values = of_one_type([one, other], typed)
    bounds = one.offsets, other.offsets
    for row in np.flatnonzero(one.present & other.present).tolist():
        left, right = (
            each.slice(at[row], at[row + 1] - at[row]).to_pylist() for each, at in zip(values, bounds, strict=True)
        )
        if left != right:
            raise ValueProblem(two_values(*names, left, right), row)
    kept = Column(values[1], other.offsets, other.present)
    first = Column(values[0], one.offsets, one.present)
    return _gathered([first, kept], np.where(one.present, 0, 1), one.present | other.present)


def _gathered(columns: list[Column], which: Int64s, present: npt.NDArray[np.bool_]) -> Column:
    """Return the elements of one of several columns for each row."""
    starts = np.stack([column.offsets for column in columns if column.offsets is not None])
    rows = np.arange(len(which))
    first, counts = starts[which, rows], starts[which, rows + 1] - starts[which, rows]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    base = np.array([0, len(columns[0].values)])[which] + first
    places = np.repeat(base - offsets[:-1], counts) + np.arange(offsets[-1])
    return Column(pa.concat_arrays([column.values for column in columns]).take(pa.array(places)), offsets, present)


def stacked(columns: list[Column]) -> Column:
    """Return columns of one event each as one of all of them."""
    values = pa.concat_arrays([column.values for column in columns])
    if columns[0].offsets is None:
        return Column(values)
    counts = [len(column.values) for column in columns]
    present = np.concatenate([column.present for column in columns if column.present is not None])
    return Column(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), present, open=_all_open(columns))


def together(columns: list[Column], typed: Typed) -> Column:
    """Return the elements of several repeated columns as those of one, row by row."""
    values = pa.concat_arrays(of_one_type(columns, typed))
    bounds = [column.offsets for column in columns if column.offsets is not None]
    rows = [np.repeat(np.arange(len(each) - 1), np.diff(each)) for each in bounds]
    order = np.argsort(np.concatenate(rows), kind="stable")
    offsets = np.sum(bounds, axis=0)
    present = np.logical_or.reduce([column.present for column in columns if column.present is not None])
    ranges = _all_open(columns)
    return Column(values.take(pa.array(order)), offsets, present, open=None if ranges is None else ranges[order])


def _all_open(columns: list[Column]) -> npt.NDArray[np.object_] | None:
    """Return the ranges among the elements of columns, one column after another; None if there are none."""
    if all(column.open is None for column in columns):
        return None
    held = [np.full(len(column.values), None) if column.open is None else column.open for column in columns]
    found: npt.NDArray[np.object_] = np.concatenate(held)
    return found


def of_one_type(columns: list[Column], typed: Typed) -> list[pa.Array]:
    """Return the values of columns in one type: their own if they agree, else that of the dimension."""
    plain = [
        each.values.dictionary_decode() if pa.types.is_dictionary(each.values.type) else each.values for each in columns
    ]
    kinds = {each.type for each in plain if not pa.types.is_null(each.type)}
    if len(kinds) <= 1:
        target = next(iter(kinds), pa.null())
        return [each.cast(target) for each in plain]
    found = []
    for column, values in zip(columns, plain, strict=True):
        try:
            found.append(typed(values))
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, column.row_of(problem.row)) from None
    if len({each.type for each in found}) > 1:
        found = [each.cast(pa.large_string()) for each in found]
    return found


def two_values(one: Path, other: Path, value: Any, second: Any) -> str:
    """Return what is wrong where two names of one field say different things."""
    return f"{'.'.join(one)} says {brief(value)} and {'.'.join(other)}, which means the same, {brief(second)}"


def column_at(batch: pa.RecordBatch, path: Path) -> Column | None:
    """Return what stands at a path of a batch; through structs, and through lists to the elements of all."""
    column: Any = None
    offsets: Int64s | None = None
    present: npt.NDArray[np.bool_] | None = None
    for depth, name in enumerate(path):
        if column is not None and pa.types.is_null(column.type):
            break
        found = batch.schema.get_field_index(name) if depth == 0 else _struct_index(column.type, path, depth)
        if found < 0:
            return None
        column = batch.column(found) if column is None else pc.struct_field(column, [found])
        while _is_list(column.type):
            present, offsets, column = _unlisted(column, present, offsets)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return Column(_plain(column), offsets, present)


def has_column(schema: pa.Schema, path: Path) -> bool:
    """Return whether batches of a schema have something at a path, as `column_at` finds it.

    >>> has_column(pa.schema({"s": pa.list_(pa.struct({"x": pa.int64()}))}), ("s", "x"))
    True
    """
    fields: Any = schema
    for depth, name in enumerate(path):
        found = fields.get_field_index(name) if depth == 0 else _struct_index(fields, path, depth)
        if found < 0:
            return False
        fields = fields.field(found).type
        while _is_list(fields):
            fields = fields.value_type
        if pa.types.is_null(fields):
            break
    return True


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without views, and without dictionary unless of plain texts: not all of Arrow takes those."""
    if pa.types.is_dictionary(column.type):
        held = column.type.value_type
        if pa.types.is_string(held) or pa.types.is_large_string(held):
            return column
        return _plain(column.dictionary).take(column.indices)
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _struct_index(kind: pa.DataType, path: Path, depth: int) -> int:
    if not pa.types.is_struct(kind):
        raise EventError(f"the column {'.'.join(path[:depth])} holds {kind}; a struct with {path[depth]} is expected")
    return int(kind.get_field_index(path[depth]))


def _unlisted(
    column: pa.Array, present: npt.NDArray[np.bool_] | None, offsets: Int64s | None
) -> tuple[npt.NDArray[np.bool_], Int64s, pa.Array]:
    """Return the elements of lists with their offsets from the rows, through a level of lists already taken off: there
    a list that is NULL counts as an element that is."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if offsets is not None and column.null_count:
        column = _with_null_elements(column)
    lengths = np.array(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    inner = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if present is None:
        present = np.array(column.is_valid())
    return present, inner if offsets is None else inner[offsets], pc.list_flatten(column)


def _with_null_elements(column: pa.Array) -> pa.Array:
    """Return lists in which those that are NULL are lists of NULL."""
    size = column.type.list_size if pa.types.is_fixed_size_list(column.type) else 1
    places = np.arange(len(column))
    places[np.array(column.is_null())] = len(column)
    return pa.concat_arrays([column, pa.array([[None] * size], column.type)]).take(pa.array(places))
