"""The index of stored publications: of each run, its columns of single ordered values, sorted by their codes.

Subscriptions that change are asked of it as publications are asked of an index of subscriptions: each box is looked up
on the axis on which the fewest publications lie, and only those are matched. A column is sorted when a change first
asks for it and its run is large enough; the file lies beside the run's and goes with it, so that most of what is stored
is sorted once.

This module must not import pyspark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.index.boxes import HIGHEST, NULL, Boxes, Int64s
from tocsin.matcher import Matcher
from tocsin.space.axes import Axes
from tocsin.space.codes import Direct
from tocsin.space.reading import Readings
from tocsin.spark.transitions_files import open_rows, single, write_rows

SMALL_RUN = 4_096
"""Of a run of fewer rows all are matched: that costs less than to open and search its sorted columns."""

CODE, ROW = "code", "row"


class Wanted(NamedTuple):
    """Where boxes lie: of each, the lowest and highest code on each of some columns, ``int64[columns, boxes]``.

    ``codecs`` are those of the columns, by name; ``names`` tell each column and how it is coded. Where
    ``absent_is_any``, a publication without a value lies everywhere.
    """

    codecs: dict[str, Direct]
    names: dict[str, str]
    low: Int64s
    high: Int64s
    absent_is_any: bool


def wanted_of(matchers: Iterable[Matcher]) -> Wanted | None:
    """Return where the subscriptions of matchers of one space lie; None if one lies where no sorted column tells.

    >>> from tocsin import Number, Space, Text
    >>> matcher = Matcher(Space({"x": Number("int64"), "name": Text()}))
    >>> matcher.subscribe("near", "x IN (3, 7) AND name = 'a'")
    >>> wanted_of([matcher]).low.tolist(), wanted_of([matcher]).high.tolist()
    ([[3]], [[7]])
    >>> matcher.subscribe("a", "name = 'a'")
    >>> wanted_of([matcher]) is None
    True
    """
    codecs: dict[str, Direct] = {}
    names: dict[str, str] = {}
    hulls: list[dict[str, tuple[Int64s, Int64s]]] = []
    counts: list[int] = []
    absent_is_any = False
    for matcher in matchers:
        axes, (_, boxes) = matcher._state.axes, matcher._state.index.contents()
        usable = _usable(axes)
        for name, axis in usable.items():
            codec = axes.codecs[axis]
            assert isinstance(codec, Direct)  # as usable axes are
            codecs[name], names[name] = codec, f"{name}/{matcher.space[name]!r}/{matcher.space.timezone}"
        hulls.append({name: _hull(boxes, axis) for name, axis in usable.items()})
        counts.append(len(boxes))
        absent_is_any |= matcher.space.unspecified == "any"
    low, high = np.full((len(codecs), sum(counts)), NULL), np.full((len(codecs), sum(counts)), HIGHEST)
    ends = np.cumsum([0, *counts])
    for hull, begin, end in zip(hulls, ends[:-1], ends[1:], strict=True):
        for place, name in enumerate(codecs):
            if name in hull:
                low[place, begin:end], high[place, begin:end] = hull[name]
    if not ((low != NULL) | (high != HIGHEST)).any(axis=0).all():
        return None
    return Wanted(codecs, names, low, high, absent_is_any)


def rows_wanted(file: Path, table: pa.Table, stored_as: Callable[[str], str], wanted: Wanted) -> Int64s:
    """Return the rows of a run, ascending, that may lie in a box; ``stored_as`` names a column as the table does."""
    every = np.arange(len(table))
    if len(table) < SMALL_RUN:
        return every
    orders, begins, ends, nulls = [], [], [], []
    for place, name in enumerate(wanted.codecs):
        column = stored_as(name)
        if not _is_single(table, column):
            continue
        codes, order = _sorted_column(file, table[column], wanted, name)
        orders.append(order)
        begins.append(np.searchsorted(codes, wanted.low[place], "left"))
        ends.append(np.searchsorted(codes, wanted.high[place], "right"))
        nulls.append(int(np.searchsorted(codes, NULL, "right")) if wanted.absent_is_any else 0)
    if not orders:
        return every
    counts = np.stack(ends) - np.stack(begins) + np.array(nulls)[:, None]
    best = np.argmin(counts, axis=0)
    if counts[best, np.arange(counts.shape[1])].sum() > len(table) // 2:
        return every
    found = [np.empty(0, np.int64)]
    for which, order in enumerate(orders):
        mine = np.flatnonzero(best == which)
        if len(mine):
            found += [order[: nulls[which]], order[_within(begins[which][mine], ends[which][mine])]]
    return np.unique(np.concatenate(found)).astype(np.int64)


def _usable(axes: Axes) -> dict[str, int]:
    """Return the axes whose codes follow from a column's value alone, by the column's name."""
    special = Readings(axes.space)
    return {
        key.path[0]: axis
        for axis, (key, codec) in enumerate(zip(axes.keys, axes.codecs, strict=True))
        if len(key.path) == 1 and not key.derivation and isinstance(codec, Direct)
        if key.path not in special and not axes.is_repeated(axis)
    }


def _hull(boxes: Boxes, axis: int) -> tuple[Int64s, Int64s]:
    """Return of each box the lowest and highest code on an axis; all codes, if it leaves the axis free."""
    low, high = np.full(len(boxes), HIGHEST), np.full(len(boxes), NULL)
    entries = np.flatnonzero(boxes.axis == axis)
    owner = np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))[entries]
    np.minimum.at(low, owner, boxes.low[entries])
    np.maximum.at(high, owner, boxes.high[entries])
    free = np.ones(len(boxes), bool)
    free[owner] = False
    return np.where(free, NULL, low), np.where(free, HIGHEST, high)


def _is_single(table: pa.Table, name: str) -> bool:
    """Return whether a table has this column, and values in it that are neither ranges nor sets."""
    return name in table.column_names and not pa.types.is_nested(table.schema.field(name).type)


def _sorted_column(file: Path, column: pa.ChunkedArray, wanted: Wanted, name: str) -> tuple[Int64s, Int64s]:
    """Return the codes of a column of a run in ascending order, and the row of each, from the file that keeps them."""
    digest = hashlib.sha256(f"{wanted.names[name]}/{column.type}".encode()).hexdigest()[:16]
    stem = f"{file.name}.{digest}"
    kept = next((each.name for each in file.parent.glob(f"{stem}.*.sorted")), None)
    if kept is None:
        codes = wanted.codecs[name].codes(single(column))
        order = np.argsort(codes, kind="stable")
        made = pa.table({CODE: codes[order], ROW: order.astype(np.int32)})
        kept = write_rows(file.parent, stem, "sorted", made)
    table = open_rows(file.with_name(kept), len(column))
    return table[CODE].to_numpy(), table[ROW].to_numpy()


def _within(begins: Int64s, ends: Int64s) -> Int64s:
    """Return the numbers of all stretches from a begin to its end.

    >>> _within(np.array([2, 7]), np.array([4, 8])).tolist()
    [2, 3, 7]
    """
    lengths = np.maximum(ends - begins, 0)
    before = np.cumsum(lengths) - lengths
    places: Int64s = np.arange(lengths.sum()) - np.repeat(before, lengths) + np.repeat(begins, lengths)
    return places
