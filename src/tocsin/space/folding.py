"""Ranges of texts beside conditions on their case or their end: decided text by text, where codes cannot.

A row whose text is a range spans everything on the axes of its changed forms. A box that constrains such an axis is
therefore verified: some text of the range must meet all that the box asks of that dimension. Publications and events
with ranges are verified alike; only where the texts of a range come from differs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes, Int64s
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes
from tocsin.space.columns import Path
from tocsin.space.listed import Texts
from tocsin.space.witnesses import Between, Constraint, exists

Entries = tuple[npt.NDArray[np.int32], Int64s, Int64s]
"""The axis, low and high of the entries of one box."""

RangeOf = Callable[[Path], Between | None]
"""Gives the texts of the range that a row has in a dimension; None for a single text, or for all of them."""


def changed_axes(axes: Axes) -> npt.NDArray[np.bool_]:
    """Return which axes are those of texts in another case or reversed."""
    return np.array([isinstance(codec, Texts) and bool(codec.derivation) for codec in axes.codecs], bool)


def satisfiable(axes: Axes, boxes: Boxes, changed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which boxes some text of each dimension meets, where several axes of one dimension are constrained."""
    found = np.ones(len(boxes), bool)
    owner = np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))
    for box in np.unique(owner[changed[boxes.axis]]).tolist():
        part = slice(boxes.offsets[box], boxes.offsets[box + 1])
        entries = boxes.axis[part], boxes.low[part], boxes.high[part]
        for path, asked in constraints(axes, entries, changed).items():
            mine = [axis for axis in np.unique(entries[0]).tolist() if axes.keys[axis].path == path]
            null = all((entries[1][entries[0] == axis] == NULL).any() for axis in mine)
            found[box] &= null or len(asked) < 2 or exists(asked)
    return found


def witnessed(axes: Axes, entries: Entries, changed: npt.NDArray[np.bool_], range_of: RangeOf) -> bool:
    """Return whether a row has texts that meet what a box asks of them together: a box that is `satisfiable`, and whose
    codes have those of the row in common."""
    for path, asked in constraints(axes, entries, changed).items():
        texts = range_of(path)
        if texts is not None and not exists((("", (texts,)), *asked)):
            return False
    return True


def range_of_codes(axes: Axes, low: Int64s, high: Int64s, path: Path) -> Between | None:
    """Return the texts of the range of a stored row, ``low`` and ``high`` int64[axes], whose bounds are keys."""
    own = axes.number(AxisKey(path))
    least, most = int(low[own]), int(high[own])
    return None if least == most or (least == LOWEST and most == HIGHEST) else between(axes, own, least, most)


def constraints(axes: Axes, entries: Entries, changed: npt.NDArray[np.bool_]) -> dict[Path, tuple[Constraint, ...]]:
    """Return what a box asks of each dimension of which it constrains a changed form."""
    axis, low, high = entries
    paths = {axes.keys[each].path for each in axis[changed[axis]].tolist()}
    found: dict[Path, tuple[Constraint, ...]] = {}
    for each in np.unique(axis).tolist():
        key = axes.keys[each]
        if key.path in paths:
            mine = np.flatnonzero((axis == each) & (high >= LOWEST))
            intervals = tuple(between(axes, each, int(low[at]), int(high[at])) for at in mine)
            found[key.path] = (*found.get(key.path, ()), (key.derivation, intervals))
    return found


def between(axes: Axes, axis: int, low: int, high: int) -> Between:
    """Return the texts that an interval of codes stands for."""
    codec = axes.codecs[axis]
    assert isinstance(codec, Texts)
    least, most, below = "", None, False
    if low > LOWEST:
        key, beyond = codec.book.key_near(low)
        least = key.decode() + ("\0" if beyond > 0 else "")
    if high < HIGHEST:
        key, beyond = codec.book.key_near(high)
        most, below = key.decode(), beyond < 0
    return Between(least, most, below)
