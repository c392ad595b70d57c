"""`bitmap`: one bit a box. A query begins with all of them, and every axis takes away those that it does not satisfy.

Map to the concept-tree paper:

| paper | here |
|---|---|
| 4.1, hierarchy tree index, Algorithms 1 to 3 | `kernels.bitmap.trees`: `nest`, `tree_cells`, `fill_tree` |
| 4.2, string index and its any-row, Algorithm 4 | a tree without edges; `match_ranges` has the any-row |
| 4.2, GEM grid, formula (1), Algorithm 5 | `kernels.bitmap.grids`: `span_buckets`, `fill_grid` |
| 5, match, Algorithm 6 | `kernels.bitmap.match.match_points`, `kernels.bitmap.ranges.match_ranges` |
| 5.1 and 5.2, treeMatch and stringMatch, Algorithms 7 and 8 | `intersect`, `keep_listed`, `pass_tree` |
| 5.3, gemMatch, Algorithm 9, parts A to F | `pass_bucket`; for ranges `pass_buckets` |

An index sees boxes on axes of codes, where a concept is the interval of the pre-order numbers below it. So the
hierarchy is recovered: intervals that nest are a forest. Which of the three structures an axis gets follows from its
intervals, unless the caller says.

Corrections of the printed algorithm: (1) an event with two attributes below one root, and (2) a subscription with two:
attributes are axes of their own here, and the values of a repeated one come as queries of their own; (3) a missing
value is a code like others and satisfies only what is said of it, so that a box constrained on that axis goes;
(4) parts C, D and E are one row a bucket, whose boxes are held against the value by both ends; (5) and (6) buckets are
cut at the ends of the intervals themselves and the outer two are open: any range fits, from the lowest code to the
highest.

Departures: the union up the path is made when rows are filled, not for each query, and includes the boxes that the axis
leaves free, so that a query reads one row an axis whatever the height; a node with few boxes keeps a list instead of a
row, or 100,000 concepts would take 12 GB of bits for a million boxes; the grid keeps the two unions of cells that a
bucket needs instead of T * T cells, so that a query reads two rows instead of T * T / 2. Rows never change: boxes come
in parts, which are merged as they multiply, so that readers never wait; a removed box only loses its bit in ``live``,
which is where a query begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tocsin.errors import BoxNumberError, EngineError
from tocsin.index.bitmap_parts import Kind, Part, build
from tocsin.index.boxes import Boxes, Int32s, Pairs, Queries
from tocsin.index.protocol import Index
from tocsin.kernels.bitmap.match import match_points
from tocsin.kernels.bitmap.ranges import match_ranges, match_unfiled

FRESH = 128
"""How many boxes may wait without bit arrays; each query looks at all of them."""

RATIO = 4
"""A part is merged with the next as long as it has not this many times its boxes."""


class State(NamedTuple):
    """All that a reader needs: parts, the largest first, and the boxes that wait."""

    parts: tuple[Part, ...]
    numbers: Int32s
    boxes: Boxes


class Bitmap(Index):
    """Bit arrays on trees, tables and grids.

    ``buckets``: the T of the grids, else it follows from the boxes. ``kinds``: which of ``"tree"``, ``"table"`` and
    ``"grid"`` an axis is to be; a tree or table whose intervals cross is refused. ``fresh``: how many boxes may wait
    without bit arrays.

    >>> index = Bitmap()
    >>> index.insert(np.array([7, 8], np.int32), Boxes.of([{0: [(1, 5)]}, {0: [(2, 3)], 1: [(0, 9)]}]))
    >>> index.overlap(Queries.points(np.array([[3, 9], [4, 4]])))
    Pairs(rows=array([0, 0], dtype=int32), numbers=array([7, 8], dtype=int32))
    """

    name: ClassVar[str] = "bitmap"

    def __init__(
        self, *, buckets: int | None = None, kinds: Mapping[int, Kind] | None = None, fresh: int = FRESH
    ) -> None:
        if buckets is not None and buckets < 1:
            raise EngineError(f"a grid has at least one bucket, not {buckets}")
        for axis, kind in (kinds or {}).items():
            if kind not in ("tree", "table", "grid"):
                raise EngineError(f"axis {axis} cannot be a {kind!r}; choose 'tree', 'table' or 'grid'")
        self._buckets = buckets
        self._kinds = dict(kinds or {})
        self._fresh = fresh
        self._state = State((), np.empty(0, np.int32), Boxes.of([]))

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes: a few wait, many become a part, merged with those that are not much larger."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        parts, waiting, waiting_boxes = self._state
        _refuse_repeats(numbers)
        if len(numbers) and numbers.min() < 0:
            raise BoxNumberError(f"box numbers are 0 to 2**31 - 1, not {numbers.min()}")
        clash = np.isin(numbers, waiting)
        for part in parts:
            clash |= part.slots_of(numbers) >= 0
        if clash.any():
            raise BoxNumberError(f"box numbers given twice: {numbers[clash][:5].tolist()}")
        numbers = np.concatenate([waiting, numbers])
        boxes = Boxes.concatenate([waiting_boxes, boxes])
        if len(numbers) <= self._fresh:
            self._state = State(parts, numbers, boxes)
        else:
            self._state = State(self._merged(parts, numbers, boxes), np.empty(0, np.int32), Boxes.of([]))

    def remove(self, numbers: Int32s) -> None:
        """Take the bits of boxes away; a part that has lost a quarter of its boxes is built anew."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        parts, waiting, waiting_boxes = self._state
        _refuse_repeats(numbers)
        here = np.isin(waiting, numbers)
        unknown = ~np.isin(numbers, waiting)
        kept = []
        for part in parts:
            slots = part.slots_of(numbers)
            unknown &= slots < 0
            slots = slots[slots >= 0]
            kept.append(part.without(slots) if len(slots) else part)
        if unknown.any():
            raise BoxNumberError(f"no such box numbers: {numbers[unknown][:5].tolist()}")
        renewed = tuple(self._renewed(part) for part in kept if part.count)
        rest = np.flatnonzero(~here)
        self._state = State(renewed, waiting[rest], waiting_boxes.take(rest) if here.any() else waiting_boxes)

    def overlap(self, queries: Queries) -> Pairs:
        """Match with each part and with the boxes that wait."""
        parts, numbers, boxes = self._state
        low = np.ascontiguousarray(queries.low, np.int64)
        high = low if queries.are_points else np.ascontiguousarray(queries.high, np.int64)
        found = []
        for part in parts:
            if high is low:
                found.append(Pairs(*match_points(part.bitmaps, part.live, low)))
            else:
                found.append(Pairs(*match_ranges(part.bitmaps, part.live, low, high)))
        if len(numbers):
            found.append(Pairs(*match_unfiled(numbers, boxes, low, high)))
        found = [pairs for pairs in found if len(pairs.rows)]
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([np.empty(0, np.int32), *(pairs.rows for pairs in found)])
        order = np.argsort(rows, kind="stable")
        return Pairs(rows[order], np.concatenate([rows[:0], *(pairs.numbers for pairs in found)])[order])

    def contents(self) -> tuple[Int32s, Boxes]:
        """Put the boxes together again from the intervals that they share."""
        parts, waiting, waiting_boxes = self._state
        held = [part.contents() for part in parts]
        numbers = np.concatenate([waiting, *(some for some, _ in held)])
        order = np.argsort(numbers)
        return numbers[order], Boxes.concatenate([waiting_boxes, *(boxes for _, boxes in held)]).take(order)

    def stats(self) -> Mapping[str, Any]:
        """Say what is held, and what each part made of each axis."""
        parts, waiting, waiting_boxes = self._state
        return {
            "engine": self.name,
            "boxes": len(self),
            "bytes": sum(part.nbytes for part in parts) + waiting.nbytes + sum(array.nbytes for array in waiting_boxes),
            "waiting": len(waiting),
            "parts": [
                {
                    "boxes": part.size,
                    "removed": part.size - part.count,
                    "rows": len(part.bitmaps.rows),
                    "kinds": dict(part.kinds),
                }
                for part in parts
            ],
        }

    def __len__(self) -> int:
        return sum(part.count for part in self._state.parts) + len(self._state.numbers)

    def _merged(self, parts: tuple[Part, ...], numbers: Int32s, boxes: Boxes) -> tuple[Part, ...]:
        """Return the parts with one more, in which those are taken up that are not much larger than it."""
        kept = list(parts)
        gathered = [(numbers, boxes)]
        count = len(numbers)
        while kept and kept[-1].count < RATIO * count:
            count += kept[-1].count
            gathered.append(kept.pop().contents())
        numbers = np.concatenate([some for some, _ in gathered])
        return (*kept, self._build(numbers, Boxes.concatenate([some for _, some in gathered])))

    def _renewed(self, part: Part) -> Part:
        return self._build(*part.contents()) if part.count < part.size * 3 // 4 else part

    def _build(self, numbers: Int32s, boxes: Boxes) -> Part:
        return build(numbers, boxes, self._kinds, self._buckets)


def _refuse_repeats(numbers: Int32s) -> None:
    rising = np.sort(numbers)
    if (rising[1:] == rising[:-1]).any():
        raise BoxNumberError("a box number is given twice within one call")


ENGINE = Bitmap
