"""The elements of repeated fields as codes: one query each, and what verification programs read of them.

An element may be any value of a range, where a field below an attribute has one. Then its codes are those of the
range, so that whatever some value satisfies is found; whether one value satisfies all of a subscription is decided by
choosing values (see `choices`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import NULL, Int32s, Int64s, Queries
from tocsin.kernels.operators.programs import Facts
from tocsin.space.axes import Axes
from tocsin.space.codes import Codec, Ends
from tocsin.space.columns import Column, Open, Path


class Choice(NamedTuple):
    """One value of a field that has a range: its code on each axis, and the value where codes do not say it all."""

    codes: Mapping[int, int]
    value: Any = None


Chosen = Mapping[Path, Choice]
"""Values chosen of fields that have ranges and stand below attributes."""

NONE_CHOSEN: Chosen = MappingProxyType({})

Elements = dict[int, tuple[Int64s, Int64s]]
"""The lowest and highest codes of elements by axis, one array twice where none is a range."""


def codes_of_elements(codec: Codec, axis: int, elements: Iterable[Any], chosen: Chosen) -> tuple[Int64s, Int64s]:
    """Return the codes of the elements of one dictionary; ValueProblem for the first that does not fit."""
    found: list[int] = []
    tops: list[int] | None = None
    for each in elements:
        if type(each) is Open:
            low, high = codes_of_open(codec, axis, each, chosen)
            tops = list(found) if tops is None else tops
            found.append(low)
            tops.append(high)
            continue
        found.append(NULL if each is None else codec.code(each))
        if tops is not None:
            tops.append(found[-1])
    codes = np.array(found, np.int64)
    return codes, codes if tops is None else np.array(tops, np.int64)


def codes_of_open(codec: Codec, axis: int, element: Open, chosen: Chosen) -> tuple[int, int]:
    """Return the codes of an element that may be any value of a range, or of the one that is chosen."""
    choice = chosen.get(element.member)
    if choice is None or axis not in choice.codes:
        return codec.span(element.ends)
    return choice.codes[axis], choice.codes[axis]


def opened(codec: Codec, axis: int, codes: Int64s, column: Column, chosen: Chosen) -> tuple[Int64s, Int64s]:
    """Return the codes of the elements of a column, given those of single values."""
    if column.open is None:
        return codes, codes
    low, high = codes.copy(), codes.copy()
    for place in np.flatnonzero(column.open != np.array(None)).tolist():
        low[place], high[place] = codes_of_open(codec, axis, column.open[place], chosen)
    return low, high


def filled_in(column: Column, chosen: Chosen) -> Column:
    """Return a column with the values that are chosen of its ranges, where they are known."""
    if column.open is None or not chosen:
        return column
    values = [
        value if each is None else chosen_value(each, chosen)
        for value, each in zip(column.values.to_pylist(), column.open, strict=True)
    ]
    unknown = [None if each is None or chosen_value(each, chosen) is not None else each for each in column.open]
    return column._replace(values=pa.array(values, column.values.type), open=objects(unknown))


def chosen_value(element: Open, chosen: Chosen) -> Any:
    """Return the value that is chosen of a range, None where it is not known."""
    return chosen[element.member].value if element.member in chosen else None


def objects(elements: list[Any]) -> npt.NDArray[np.object_] | None:
    """Return the ranges among elements, for `Column.open`; None if there are none."""
    if not any(type(each) is Open for each in elements):
        return None
    found = np.full(len(elements), None)
    for place, each in enumerate(elements):
        found[place] = each if type(each) is Open else None
    return found


def open_of(column: Column, chosen: Chosen) -> dict[Path, list[Ends | None]]:
    """Return the ranges of the fields below an attribute, a list of all rows for each field that has any and of which
    no value is chosen."""
    found: dict[Path, list[Ends | None]] = {}
    for place, each in enumerate(() if column.open is None else column.open):
        if each is not None and each.member not in chosen:
            found.setdefault(each.member, [None] * column.rows)[column.row_of(place)] = each.ends
    return found


def with_elements(
    axes: Axes, low: Int64s, high: Int64s, elements: Elements, columns: Mapping[Path, Column]
) -> tuple[Queries, Int32s, Facts]:
    """Return one query for each event, and one for each element of each repeated field; the event of each query; and
    what programs read. Of an element that is a range they read the lowest code: such events are decided otherwise."""
    count = low.shape[1]
    if high is low and any(tops is not codes for codes, tops in elements.values()):
        high = low.copy()
    repeated_of = np.full(low.shape[0], -1, np.int32)
    offsets: list[Int64s] = []
    present: list[npt.NDArray[np.bool_]] = []
    flat: list[Int64s] = []
    start = 0
    queries = [(low, high, np.arange(count, dtype=np.int32))]
    done: dict[Path, int] = {}
    for axis, (found, tops) in elements.items():
        path = axes.keys[axis].path
        column = columns[path]
        repeated_of[axis] = len(offsets)
        assert column.offsets is not None and column.present is not None  # a repeated column has both
        offsets.append(column.offsets + start)
        present.append(column.present)
        flat.append(found)
        start += len(found)
        if path not in done:
            rows = np.repeat(np.arange(count, dtype=np.int32), np.diff(column.offsets))
            done[path] = len(queries)
            queries.append(
                (low[:, rows], high[:, rows], rows) if high is not low else (wide := low[:, rows], wide, rows)
            )
        some_low, some_high, _ = queries[done[path]]
        some_low[axis] = found
        some_high[axis] = tops
    absent_is_any = axes.space.unspecified == "any"
    facts = Facts(low, high, repeated_of, np.stack(offsets), np.concatenate(flat), np.stack(present), absent_is_any)
    all_low = np.concatenate([each for each, _, _ in queries], axis=1)
    all_high = all_low if high is low else np.concatenate([each for _, each, _ in queries], axis=1)
    return Queries(all_low, all_high), np.concatenate([each for _, _, each in queries]), facts
