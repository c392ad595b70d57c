"""A part of `bitmap`: boxes whose bit arrays are built once and never change.

Each axis that a box constrains is a *tree* (its distinct intervals nest), a *table* (they are single codes: a tree
without edges) or a *grid* (two of them cross). `build` finds out which, chooses the rows that are worth their memory,
and fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tocsin.errors import EngineError
from tocsin.index.boxes import NULL, Boxes, Int32s, Int64s
from tocsin.index.numbers import ascending_once
from tocsin.kernels.bitmap.grids import fill_grid, span_buckets
from tocsin.kernels.bitmap.match import AXIS, AXIS_FIELDS, EARLY_GRID, GRID, GROUP, INTERVALS, TREE, Bitmaps
from tocsin.kernels.bitmap.trees import choose_rows, fill_tree, nest, set_bits, tree_cells

Kind = Literal["tree", "table", "grid"]

LIST_SHARE = 256
"""A node gets a row when the lists that it spares a query have a box in so many: setting bits one by one costs about
as much as reading four words each."""

MOST_ROWS = 512
"""The rows of a tree beyond which longer lists are taken into account."""

LEAST_BUCKETS, MOST_BUCKETS = 16, 128
"""The bounds of an adaptive T: two rows a bucket, so 4 to 32 bytes a box and axis."""

DOUBT_COST = 4_096
"""How many buckets are worth having where no other axis leaves fewer boxes: with so many, looking at the boxes in
doubt one by one takes as long as reading a row."""

DIRECT = 4
"""An axis whose cells lie this close, on average, finds its places in a direct table."""


@dataclass(frozen=True)
class Filed:
    """One axis: its distinct intervals in pre-order, the entries that have them, and how codes lead to places.

    ``slots`` and ``interval``: of each entry, by slot. ``met``: the share of all boxes that a code is expected to
    leave. A grid has ``starts``, the lowest code of each bucket, and is ``early`` if trees leave boxes in most groups.
    A tree has parents and rows.
    """

    axis: int
    kind: Kind
    low: Int64s
    high: Int64s
    slots: Int32s
    interval: Int32s
    met: float
    parent: Int32s
    has_row: npt.NDArray[np.bool_]
    starts: Int64s
    early: bool = False


@dataclass(frozen=True)
class Part:
    """Boxes in bit arrays, and which of them are still there. ``live``: uint64[words], replaced when one goes."""

    bitmaps: Bitmaps
    live: npt.NDArray[np.uint64]
    count: int
    kinds: Mapping[int, str]

    @property
    def size(self) -> int:
        """How many boxes there were when it was built."""
        return len(self.bitmaps.numbers)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.bitmaps) + self.live.nbytes

    def slots_of(self, numbers: Int32s) -> Int64s:
        """Return the slot of each number that is here, -1 for the others."""
        held = self.bitmaps.numbers
        slots = np.searchsorted(held, numbers).clip(0, max(len(held) - 1, 0))
        here = held[slots] == numbers
        here &= (self.live[slots >> 6] >> (slots & 63).astype(np.uint64)) & np.uint64(1) != 0
        return np.where(here, slots, -1)

    def without(self, slots: Int64s) -> Part:
        """Return this part without the boxes in some slots."""
        live = self.live.copy()
        np.bitwise_and.at(live, slots >> 6, ~(np.uint64(1) << (slots & 63).astype(np.uint64)))
        return Part(self.bitmaps, live, self.count - len(slots), self.kinds)

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return the boxes that are still there, by number."""
        of = self.bitmaps
        bits = np.unpackbits(self.live.view(np.uint8), count=self.size, bitorder="little")
        axes = np.repeat(of.axes[:, AXIS], of.axes[:, INTERVALS]).astype(np.int32)
        low, high = of.ends[of.entries].T.copy()
        boxes = Boxes(of.offsets, axes[of.entries], low, high)
        slots = np.flatnonzero(bits)
        return of.numbers[slots], boxes if len(slots) == self.size else boxes.take(slots)


def build(numbers: Int32s, boxes: Boxes, kinds: Mapping[int, Kind], buckets: int | None) -> Part:
    """Return a part of these boxes. ``kinds`` names what an axis must be; ``buckets`` is the T of all grids, if
    chosen."""
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers)
        numbers, boxes = numbers[order], boxes.take(order)
    size = len(numbers)
    words = -(-size // (64 * GROUP)) * GROUP
    filed = _filed(boxes, size, kinds, buckets)
    live = np.zeros(words, np.uint64)
    set_bits(live, np.arange(size, dtype=np.int32))
    return Part(_filled(numbers, boxes, filed, live), live, size, {one.axis: one.kind for one in filed})


def _filed(boxes: Boxes, size: int, kinds: Mapping[int, Kind], buckets: int | None) -> list[Filed]:
    """Return the axes, trees before grids, and among grids first the one that leaves the fewest boxes."""
    slots = np.repeat(np.arange(size, dtype=np.int32), np.diff(boxes.offsets))
    narrow = boxes.axis.astype(np.int16) if boxes.axis.max(initial=0) < 2**15 else boxes.axis
    by_axis = np.argsort(narrow, kind="stable")
    axes, firsts = np.unique(boxes.axis[by_axis], return_index=True)
    trees: list[Filed] = []
    grids: list[Filed] = []
    for axis, some in zip(axes.tolist(), np.split(by_axis, firsts[1:]), strict=False):
        intervals = _distinct(boxes.low[some], boxes.high[some])
        one = _tree(axis, size, slots[some], *intervals, kinds.get(axis))
        (grids if one.kind == "grid" else trees).append(one)
    left = float(np.prod([one.met for one in trees])) if trees else 1.0
    return [*trees, *_gridded(sorted(grids, key=lambda one: one.met), left, buckets)]


def _distinct(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s, Int32s]:
    """Return the distinct intervals in pre-order, and which of them each entry has."""
    order = np.lexsort((~high, low))
    low, high = low[order], high[order]
    first = np.ones(len(low), np.bool_)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    interval = np.empty(len(low), np.int32)
    interval[order] = np.cumsum(first) - 1
    return low[first], high[first], interval


def _tree(
    axis: int, size: int, slots: Int32s, low: Int64s, high: Int64s, interval: Int32s, wanted: Kind | None
) -> Filed:
    """Return an axis as a tree or table, if its intervals nest and no grid is wanted; else as a grid to be cut."""
    parent: Int32s = nest(low, high)
    crossing = not len(parent)
    kind: Kind = "grid" if crossing or wanted == "grid" else "tree" if (low < high).any() else "table"
    if crossing and wanted in ("tree", "table"):
        raise EngineError(f"axis {axis} cannot be a {wanted}: two of its intervals cross; leave the choice to the data")
    free = 1 - len(slots) / size  # low where a box has several intervals here: it only orders and sizes
    if kind == "grid":
        width = np.searchsorted(low, high, side="right") - np.arange(len(low))
        met = max(0.0, free) + (1 - max(0.0, free)) * float(width.mean()) / len(low)
        return Filed(axis, kind, low, high, slots, interval, min(met, 1.0), parent[:0], np.zeros(0, np.bool_), low[:0])
    counts = np.bincount(interval, minlength=len(low))
    threshold = max(1, size // LIST_SHARE)
    has_row, sum_met = choose_rows(parent, counts, threshold)
    while np.count_nonzero(has_row) > MOST_ROWS:
        threshold *= 2
        has_row, sum_met = choose_rows(parent, counts, threshold)
    met = max(0.0, free) + sum_met / len(slots) / size
    return Filed(axis, kind, low, high, slots, interval, min(met, 1.0), parent, has_row, low[:0])


def _gridded(grids: list[Filed], left: float, buckets: int | None) -> list[Filed]:
    """Cut the axes of grids into buckets of about as many ends each: the fewer boxes others leave, the fewer."""
    cut = []
    early = left * 64 * GROUP > 1
    for one in grids:
        wanted = buckets or 1 << max(0, round(DOUBT_COST * left) - 1).bit_length()
        wanted = buckets or min(max(wanted, LEAST_BUCKETS), MOST_BUCKETS)
        above = one.high[one.high < np.iinfo(np.int64).max] + 1
        ends = ascending_once(np.concatenate([one.low, above]))
        ends = ends[ends > NULL]
        if len(ends) >= wanted:
            ends = ends[np.linspace(0, len(ends), wanted, endpoint=False, dtype=np.int64)[1:]]
        starts = np.concatenate([np.array([NULL], np.int64), ends])
        cut.append(Filed(**{**vars(one), "starts": starts, "early": early}))
        left *= one.met
    return cut


class _Filling:
    """Bit arrays that are being filled, axis by axis; tables grow."""

    def __init__(self, filed: list[Filed], live: npt.NDArray[np.uint64]) -> None:
        spans = [span_buckets(one.low, one.high, one.starts) if one.kind == "grid" else None for one in filed]
        count = 0
        for one, spanned in zip(filed, spans, strict=True):
            in_tree = 1 + int(np.count_nonzero(one.has_row))
            count += in_tree if spanned is None else len(one.starts) + int(np.count_nonzero(spanned[1]))
        self.rows = np.zeros((count, len(live)), np.uint64)
        self.used = 0
        self.lines: list[tuple[int, ...]] = []
        self.tables: dict[str, list[Any]] = {name: [] for name in ("start", "place", "direct", "row", "rest", "above")}
        self.lengths = dict.fromkeys(self.tables, 0)
        intervals = 0
        for one, spanned in zip(filed, spans, strict=True):
            free = live.copy()
            constrained = np.zeros_like(live)
            set_bits(constrained, one.slots)
            free &= ~constrained
            self._add(
                one,
                intervals,
                *(self._tree(one, intervals, free) if spanned is None else self._grid(one, free, *spanned)),
            )
            intervals += len(one.low)

    def _add(self, one: Filed, intervals: int, cells: Int64s, places: Int32s, row: Any, rest: Any, above: Any) -> None:
        first_place = self.lengths["row"]
        places = (places + first_place).astype(np.int32)
        direct = _direct(cells, places)
        at = self.lengths["direct"] if len(direct) else -1
        kind = TREE if one.kind != "grid" else EARLY_GRID if one.early else GRID
        line = (one.axis, kind, self.lengths["start"], len(cells), first_place, intervals, len(one.low), at)
        self.lines.append((*map(int, line), int(one.high.min()), int(one.low.max())))
        for name, array in zip(self.tables, (cells, places, direct, row, rest, above), strict=True):
            self.tables[name].append(array)
            self.lengths[name] += len(array)

    def _tree(self, one: Filed, intervals: int, free: npt.NDArray[np.uint64]) -> tuple[Any, ...]:
        """Fill the rows of a tree; the place outside all nodes is its first, and node ``i`` is the one after ``i``."""
        self.rows[self.used] = free
        own_start, own_slots = _lists(one)
        row, above = fill_tree(self.rows, self.used, one.parent, one.has_row, own_start, own_slots)
        cells, nodes = tree_cells(one.low, one.high, one.parent)
        row = np.concatenate([np.array([self.used], np.int32), row])
        numbered = np.where(one.has_row, -1, np.arange(len(one.low)) + intervals)
        rest = np.concatenate([np.array([-1]), numbered]).astype(np.int32)
        self.used += 1 + int(np.count_nonzero(one.has_row))
        return cells, nodes + 1, row, rest, np.where(above < 0, -1, above + intervals).astype(np.int32)

    def _grid(self, one: Filed, free: Any, spans: Int32s, in_doubt: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
        """Fill the rows of a grid: two a bucket, or one where it leaves no box in doubt."""
        buckets = len(one.starts)
        row = np.arange(self.used, self.used + buckets, dtype=np.int32)
        rest = np.where(in_doubt, self.used + buckets + np.cumsum(in_doubt) - 1, -1).astype(np.int32)
        self.rows[self.used : self.used + buckets] = free
        fill_grid(self.rows, np.stack([row, rest]), spans, one.slots, one.interval)
        self.used += buckets + int(np.count_nonzero(in_doubt))
        places = np.arange(buckets, dtype=np.int32)
        return one.starts, places, row, rest, np.full(len(one.low), -1, np.int32)

    def joined(self, name: str, dtype: Any) -> Any:
        """Return a table of all axes as one array."""
        return np.concatenate([np.empty(0, dtype), *self.tables[name]]).astype(dtype)


def _filled(numbers: Int32s, boxes: Boxes, filed: list[Filed], live: npt.NDArray[np.uint64]) -> Bitmaps:
    filling = _Filling(filed, live)
    lists = [
        _lists(one) if one.kind != "grid" else (np.zeros(len(one.low) + 1, np.int32), one.slots[:0]) for one in filed
    ]
    lengths = [np.diff(start) for start, _ in lists]
    by_axis = {one.axis: place for place, one in enumerate(filed)}
    firsts = np.cumsum([0, *(len(one.low) for one in filed)])
    entries = np.empty(len(boxes.axis), np.int32)
    for one in filed:
        entries[boxes.axis == one.axis] = one.interval + firsts[by_axis[one.axis]]
    return Bitmaps(
        numbers=numbers,
        rows=filling.rows,
        axes=np.array(filling.lines, np.int64).reshape(-1, AXIS_FIELDS),
        cell_start=filling.joined("start", np.int64),
        cell_place=filling.joined("place", np.int32),
        direct=filling.joined("direct", np.int32),
        place_row=filling.joined("row", np.int32),
        place_rest=filling.joined("rest", np.int32),
        above=filling.joined("above", np.int32),
        own_start=np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths])).astype(np.int32),
        own_slots=np.concatenate([np.empty(0, np.int32), *(slots for _, slots in lists)]),
        ends=np.concatenate([np.empty((0, 2), np.int64), *(np.stack([one.low, one.high], axis=1) for one in filed)]),
        offsets=boxes.offsets,
        entries=entries,
    )


def _lists(one: Filed) -> tuple[Int32s, Int32s]:
    """Return the slots of each interval of an axis, ascending, and where each one's begin."""
    start = np.concatenate([np.zeros(1, np.int32), np.cumsum(np.bincount(one.interval, minlength=len(one.low)))])
    return start.astype(np.int32), one.slots[np.argsort(one.interval, kind="stable")]


def _direct(cells: Int64s, places: Int32s) -> Int32s:
    """Return the place of every code from the second cell up to the last, if they lie close together."""
    if len(cells) < 3:
        return places[:0]
    span = int(cells[-1]) - int(cells[1])
    return np.repeat(places[1:-1], np.diff(cells[1:])) if span <= DIRECT * len(cells) + 64 else places[:0]
