"""Which subscriptions share a shard: a tree of cuts, chosen so that an event is sent to few shards.

The tree is planned on a sample of the subscriptions and of the events, as bounding boxes are in computer graphics: a
node is cut where the cost is least, and the cost of a part is its number of subscriptions times the share of events
that it must see. Cuts keep the parts of about one size, since a shard is what a worker holds in memory. A subscription
goes by the least and the greatest code that its boxes have on an axis.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.index.boxes import HIGHEST, NULL, Boxes, Int64s
from tocsin.operators.registry import Registry
from tocsin.space import Space
from tocsin.space.axes import Axes, AxisKey
from tocsin.space.books import BookFullError
from tocsin.space.events import Encoder
from tocsin.space.filling import Filled, Planner
from tocsin.spark.summaries import bound_of, code_of, is_portable

MOST_AXES = 64
"""Axes looked at for a cut: those that most subscriptions test."""

UNEVEN = 1.5
"""How much larger than its share a part may become by a cut that costs less."""

_CHUNK = 65_536

Tree = dict[str, Any]
"""A leaf, ``{"shards": [3]}`` (several where nothing tells the subscriptions apart), or a cut of an axis:
``{"axis": [path, derivation], "cut": bound, "low": tree, "high": tree}``. What begins below the bound goes low, all
else high; without a bound, what tests the axis goes low."""


class Spans(NamedTuple):
    """The least and the greatest code of subscriptions on some axes: int64[axes, subscriptions]."""

    axes: list[int]
    low: Int64s
    high: Int64s


class _Cut(NamedTuple):
    """A way to cut a node: the place of the axis, the code, who goes low, the shards there, and what it costs."""

    place: int
    code: int | None
    goes_low: npt.NDArray[np.bool_]
    shards: int
    cost: float


def spans_of(rows: npt.NDArray[np.int32], boxes: Boxes, count: int, axes: list[int]) -> Spans:
    """Return the spans of ``count`` subscriptions; box ``i`` belongs to ``rows[i]``."""
    owner = np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))
    low, high = (np.full((len(axes), count), end) for end in (HIGHEST, NULL))
    for place, axis in enumerate(axes):
        here = boxes.axis == axis
        first, last = np.full(len(boxes), HIGHEST), np.full(len(boxes), NULL)
        np.minimum.at(first, owner[here], boxes.low[here])
        np.maximum.at(last, owner[here], boxes.high[here])
        free = np.ones(len(boxes), bool)
        free[owner[here]] = False
        first[free], last[free] = NULL, HIGHEST
        np.minimum.at(low[place], rows, first)
        np.maximum.at(high[place], rows, last)
    return Spans(axes, low, high)


def plan_partition(table: pa.Table, space: Space, sample: bytes | None, shards: int) -> Tree:
    """Return the tree for so many shards, planned on a sample of subscriptions and an Arrow stream of events."""
    axes = Axes(space, Registry(space.operators.values()))
    planner = Planner(axes)
    texts = table["expression"].drop_null().combine_chunks().cast(pa.string())
    while True:
        try:
            filled = planner.fill(texts)
            break
        except BookFullError:
            axes = Axes(space, Registry(space.operators.values()))
            planner, texts = Planner(axes), texts.slice(0, len(texts) // 2)
    uses = np.bincount(filled.boxes.axis, minlength=len(axes))
    chosen = [int(axis) for axis in np.argsort(-uses, kind="stable")[:MOST_AXES] if is_portable(axes, int(axis))]
    spans = spans_of(filled.rows, filled.boxes, len(texts), chosen)
    held = np.unique(filled.rows)
    spans = Spans(chosen, spans.low[:, held], spans.high[:, held])
    low, high = _events(axes, spans, sample)
    return _Planning(axes, spans).node(np.arange(len(held)), low, high, list(range(shards)))


def _events(axes: Axes, spans: Spans, sample: bytes | None) -> tuple[Int64s, Int64s]:
    """Return the codes of events on the axes of spans; without a sample, events are as the subscriptions are."""
    if sample is not None:
        with pa.ipc.open_stream(sample) as reader:
            (batch,) = reader.read_all().combine_chunks().to_batches()
        encoder = Encoder(axes)
        misfits = list(encoder.misfits(batch, missing="unspecified"))
        kept = np.delete(np.arange(batch.num_rows), misfits)
        if len(kept):
            queries = encoder.batch(batch.take(pa.array(kept)), missing="unspecified").queries
            return queries.low[spans.axes], queries.high[spans.axes]
    some = np.arange(0, spans.low.shape[1], max(1, spans.low.shape[1] // 4096))
    return spans.low[:, some], spans.low[:, some]


class _Planning:
    """Cuts nodes: sets of subscriptions, with the events that reach them."""

    def __init__(self, axes: Axes, spans: Spans) -> None:
        self._axes, self._spans = axes, spans

    def node(self, rows: Int64s, low: Int64s, high: Int64s, shards: list[int]) -> Tree:
        """Return the tree of some subscriptions over these shards."""
        cut = self._best(rows, low, high, len(shards)) if len(shards) > 1 and len(rows) else None
        if cut is None:
            return {"shards": shards}
        key = self._axes.keys[self._spans.axes[cut.place]]
        bound = None if cut.code is None else bound_of(self._axes, self._spans.axes[cut.place], cut.code)
        parts = []
        for side, some in ((cut.goes_low, shards[: cut.shards]), (~cut.goes_low, shards[cut.shards :])):
            reached = self._reached(cut.place, rows[side], low, high)
            parts.append(self.node(rows[side], low[:, reached], high[:, reached], some))
        return {"axis": [list(key.path), key.derivation], "cut": bound, "low": parts[0], "high": parts[1]}

    def _best(self, rows: Int64s, low: Int64s, high: Int64s, shards: int) -> _Cut | None:
        """Return the cut that costs least among the even ones; if there are none, the most even."""
        cuts = [cut for place in range(len(self._spans.axes)) for cut in self._cuts(place, rows, low, high, shards)]

        def unevenness(cut: _Cut) -> float:
            below = int(cut.goes_low.sum())
            return max(below / cut.shards, (len(rows) - below) / (shards - cut.shards)) / (len(rows) / shards)

        even = [cut for cut in cuts if unevenness(cut) <= UNEVEN]
        if even:
            return min(even, key=lambda cut: cut.cost)
        return min(cuts, key=unevenness, default=None)

    def _cuts(self, place: int, rows: Int64s, low: Int64s, high: Int64s, shards: int) -> list[_Cut]:
        """Return the ways to cut a node on one axis: by a code, and by whether the axis is tested at all."""
        first, last = self._spans.low[place, rows], self._spans.high[place, rows]
        tests = (first > NULL) | (last < HIGHEST)
        count = int(tests.sum())
        found = []
        if 0 < count < len(rows):
            part = min(shards - 1, max(1, round(shards * count / len(rows))))
            found.append(self._cut(place, None, tests, part, rows, low, high))
        starts = np.sort(first[tests])
        wanted = len(rows) * (shards // 2) // shards
        if wanted < count:
            at = starts[wanted]
            for code in (at, starts[min(count - 1, int(np.searchsorted(starts, at, "right")))]):
                goes_low = tests & (first < code)
                portable = bound_of(self._axes, self._spans.axes[place], int(code)) is not None
                if goes_low.any() and portable:
                    found.append(self._cut(place, int(code), goes_low, shards // 2, rows, low, high))
        return found

    def _cut(
        self,
        place: int,
        code: int | None,
        goes_low: npt.NDArray[np.bool_],
        shards: int,
        rows: Int64s,
        low: Int64s,
        high: Int64s,
    ) -> _Cut:
        cost = sum(
            float(side.sum()) * float(self._reached(place, rows[side], low, high).mean() if low.shape[1] else 1.0)
            for side in (goes_low, ~goes_low)
        )
        return _Cut(place, code, goes_low, shards, cost)

    def _reached(self, place: int, rows: Int64s, low: Int64s, high: Int64s) -> npt.NDArray[np.bool_]:
        """Return which events meet the span of some subscriptions on one axis."""
        first, last = self._spans.low[place, rows].min(), self._spans.high[place, rows].max()
        reached: npt.NDArray[np.bool_] = (high[place] >= first) & (low[place] <= last)
        return reached


def shards_of(tree: Tree, space: Space, texts: pa.Array) -> Int64s:
    """Return the shard of each expression; those that cannot be read go to the first."""
    found = np.zeros(len(texts), np.int64)
    start, size = 0, _CHUNK
    while start < len(texts):
        some = texts.slice(start, size).fill_null("")
        axes = Axes(space, Registry(space.operators.values()))
        try:
            steps = _placed(tree, axes)
            filled = Planner(axes).fill(some.cast(pa.string()))
        except BookFullError:
            size = max(1, size // 2)
            continue
        _walk(tree, steps, filled, some, found[start : start + len(some)])
        start += len(some)
    return found


def _placed(tree: Tree, axes: Axes) -> dict[int, tuple[int, int | None]]:
    """Return for each cut of a tree, by its identity, the axis and the code that it has here."""
    if "shards" in tree:
        return {}
    path, derivation = tree["axis"]
    axis = axes.number(AxisKey(tuple(path), derivation))
    code = None if tree["cut"] is None else code_of(axes, axis, tree["cut"])
    return {id(tree): (axis, code)} | _placed(tree["low"], axes) | _placed(tree["high"], axes)


def _walk(tree: Tree, steps: dict[int, tuple[int, int | None]], filled: Filled, texts: pa.Array, found: Int64s) -> None:
    """Write the shards of filled expressions."""
    axes = sorted({axis for axis, _ in steps.values()})
    spans = spans_of(filled.rows, filled.boxes, len(texts), axes)
    waiting = [(tree, np.arange(len(texts)))]
    while waiting:
        node, rows = waiting.pop()
        if "shards" in node:
            several = node["shards"]
            if len(several) == 1:
                found[rows] = several[0]
            else:
                found[rows] = [several[zlib.crc32(texts[int(row)].as_py().encode()) % len(several)] for row in rows]
            continue
        axis, code = steps[id(node)]
        low, high = (side[axes.index(axis), rows] for side in (spans.low, spans.high))
        tests = (low > NULL) | (high < HIGHEST)
        goes_low = tests if code is None else tests & (low < code)
        waiting += [(node["low"], rows[goes_low]), (node["high"], rows[~goes_low])]
