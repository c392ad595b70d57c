"""The covering paper's experiments (section V): what `G_k` costs by k, and indexes against the scan.

Commands are random rectangles that subscribe, and with probability p one of those held unsubscribes. They run compiled
as one, whatever the index (`kernels/bench/commands.py`); time is processor time of the thread. As in the paper a
dimension is a bound: ten dimensions are five attributes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tocsin.covering import RelationGraph
from tocsin.index.boxes import Boxes, Int64s
from tocsin.index.containment.grouped import tables_for
from tocsin.index.containment.held import rows_of
from tocsin.kernels.bench.commands import ASKED, FORWARDED, LIVE, REASKED, Edges, run_commands
from tocsin.kernels.containment.boxes import Line
from tocsin.kernels.containment.kd import Tree
from tocsin.kernels.containment.zcurve import BLOCK, Curve

SEED = 2005
DOMAIN = 2**31
"""Attributes are whole numbers below it."""

OVERFLOW, UNDERFLOW = 24, 6
"""The limits of buckets of the k-d tree."""

INDEXES = ("scan", "kd", "zcurve", "adaptive")
LOADS = {"heavy": 0.05, "light": 0.40}
"""The share of unsubscribes under which k is varied."""

MODES = 24
"""Steps of the experiment on k: two loads, two indexes, six values."""

DIMENSIONS = (6, 12, 16)
"""Those of figures 10 to 12."""

SHORTENED = ("scan", 12)
"""This one goes through three quarters of the commands, for the rest of them would be a minute and a half."""

TABLES = {
    "heavy": {1: (813, 6147), 2: (983, 9967), 3: (1140, 13111), 4: (1275, 15816), 5: (1400, 18274), 6: (1508, 20407)},
    "light": {1: (556, 6192), 2: (634, 8952), 3: (714, 11026), 4: (780, 12661), 5: (839, 14050), 6: (889, 15233)},
}
"""Nodes visited and points compared in the paper's tables I and II, in thousands, by k."""


class Commands(NamedTuple):
    """``boxes`` in the order of their subscribes; ``sequence``: int64, the place of one that subscribes, or the
    complement of the place of one that unsubscribes."""

    boxes: Boxes
    sequence: Int64s


def commands(count: int, attributes: int, share: float, seed: int = SEED) -> Commands:
    """Return so many commands, of which a share unsubscribes one held at random.

    >>> drawn = commands(100, 3, 0.4)
    >>> len(drawn.sequence), len(drawn.boxes) == sum(one >= 0 for one in drawn.sequence.tolist())
    (100, True)
    """
    random = np.random.default_rng([seed, attributes, round(1_000 * share)])
    held: list[int] = []
    sequence = np.empty(count, np.int64)
    made = 0
    for place, (leave, which) in enumerate(zip(random.random(count) < share, random.random(count), strict=True)):
        if leave and held:
            chosen = int(which * len(held))
            held[chosen], held[-1] = held[-1], held[chosen]
            sequence[place] = ~held.pop()
        else:
            sequence[place] = made
            held.append(made)
            made += 1
    ends = np.sort(random.integers(0, DOMAIN, (made, attributes, 2)), axis=2)
    axis = np.tile(np.arange(attributes, dtype=np.int32), made)
    offsets = np.arange(made + 1, dtype=np.int64) * attributes
    return Commands(Boxes(offsets, axis, ends[:, :, 0].reshape(-1), ends[:, :, 1].reshape(-1)), sequence)


def replay(name: str, given: Commands, k: int = 1, stops: Sequence[int] = ()) -> Iterator[dict[str, Any]]:
    """Run commands on an index; yield what they came to at each stop, the end if there is none."""
    attributes = int(given.boxes.offsets[1])
    rows, boxes = rows_of(given.boxes), len(given.boxes)
    index, settings = _empty(name, rows, boxes, attributes)
    edges = Edges(
        np.full(k * boxes, -1, np.int32),
        np.full(k * boxes, -1, np.int32),
        np.full(k * boxes, -1, np.int32),
        np.full(boxes, -1, np.int32),
        np.zeros(boxes, np.int32),
        np.zeros(4, np.int64),
    )
    tally = np.zeros((2, 2), np.int64)
    spent, begin = 0.0, 0
    for stop in stops or (len(given.sequence),):
        started = time.thread_time()
        run_commands(index, rows, given.sequence[begin:stop], k, settings, edges, tally)
        spent += time.thread_time() - started
        begin = stop
        yield {
            "index": name,
            "dimensions": 2 * attributes,
            "commands": stop,
            "k": k,
            "seconds": round(spent, 4),
            "live": int(edges.state[LIVE]),
            "forwarded": int(edges.state[FORWARDED]),
            "queries_subscribe": int(edges.state[ASKED]),
            "queries_unsubscribe": int(edges.state[REASKED]),
            **dict(zip(("nv_s", "pc_s", "nv_u", "pc_u"), map(int, tally.ravel()), strict=True)),
        }


def in_bulk(given: Commands, batch: int = 1_000, index: str = "adaptive") -> dict[str, Any]:
    """Run commands on a `RelationGraph` in batches: all subscribes of a batch, then its unsubscribes."""
    graph = RelationGraph(index=index, absorb=False)
    attributes = int(given.boxes.offsets[1])
    started = time.thread_time()
    for begin in range(0, len(given.sequence), batch):
        part = given.sequence[begin : begin + batch]
        come = part[part >= 0]
        if len(come):
            graph.subscribe_many(come.tolist(), given.boxes.take(come))
        graph.unsubscribe_many((~part[part < 0]).tolist())
    return {
        "index": f"{index} in bulk",
        "dimensions": 2 * attributes,
        "commands": len(given.sequence),
        "seconds": round(time.thread_time() - started, 4),
        "live": len(graph),
        "roots": len(graph.roots()),
    }


def reporting_modes(
    count: int = 60_000, most: int = 6, attributes: int = 5, *, advance: Callable[[int], None] = lambda done: None
) -> list[dict[str, Any]]:
    """Figures 8 and 9 and tables I and II: what k costs, under both loads, by k-d tree and Z-curve. ``advance`` is
    called after each of `MODES` steps."""
    rows: list[dict[str, Any]] = []
    for load, share in LOADS.items():
        given = commands(count, attributes, share)
        for name in ("kd", "zcurve"):
            for k in range(1, most + 1):
                (found,) = replay(name, given, k)
                rows.append({"load": load, **found})
                advance(1)
    return rows


def comparison(
    count: int = 100_000,
    dimensions: Sequence[int] = DIMENSIONS,
    indexes: Sequence[str] = INDEXES,
    share: float = 0.15,
    *,
    advance: Callable[[int], None] = lambda done: None,
) -> list[dict[str, Any]]:
    """Figures 10 to 12: the time of all commands so far, by index and dimension; and `adaptive` in bulk. ``advance``
    is called after each index."""
    stops = [count // 10, count // 4, count // 2, 3 * count // 4, count]
    rows: list[dict[str, Any]] = []
    for dimension in dimensions:
        given = commands(count, dimension // 2, share)
        for name in indexes:
            rows += replay(name, given, stops=stops[:-1] if (name, dimension) == SHORTENED else stops)
            advance(1)
        if "adaptive" in indexes:
            rows.append(in_bulk(given))
    return rows


def warm_up() -> None:
    """Compile what the experiments use, or read it from the cache."""
    given = commands(300, 2, 0.3)
    for name in INDEXES:
        list(replay(name, given))
    in_bulk(given, 50)


def _empty(name: str, rows: Any, boxes: int, attributes: int) -> tuple[Any, Int64s]:
    """Return an empty index with room for all boxes, and the settings of its kernels."""
    wide = 2 * attributes
    if name == "scan":
        return Line(np.empty(boxes, np.int32), np.empty(boxes, np.int32)), np.zeros(3, np.int64)
    if name == "kd":
        one, left, right, parent, first, size = (np.empty(2 * boxes + 4, np.int32) for _ in range(6))
        following, splits = np.empty(boxes, np.int32), np.empty(2 * boxes + 4, np.int64)
        tree = Tree(one, splits, left, right, parent, first, size, following, _state(0, -1, 0, 0))
        return tree, np.array([wide, OVERFLOW, UNDERFLOW])
    if name == "zcurve":
        return _curve(boxes, attributes)
    return tables_for(rows, boxes, attributes), np.zeros(3, np.int64)


def _curve(boxes: int, attributes: int) -> tuple[Curve, Int64s]:
    """Return an empty curve whose cells are halves of halves of the domain, as in the paper."""
    levels = 62 // (2 * attributes)
    levels = min(levels, 6)
    high = np.arange(1, 1 << levels, dtype=np.int64) * (DOMAIN >> levels)
    cuts = np.array([~high[::-1] + 1, high] * attributes)
    room = 2 * boxes // (BLOCK // 2) + 64
    keys, slots = np.empty((room, BLOCK), np.int64), np.empty((room, BLOCK), np.int32)
    order = np.zeros(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64)
    curve = Curve(np.arange(2 * attributes, dtype=np.int32), cuts, keys, slots, *order, _state(0, 0, 0, -1))
    return curve, np.array([levels, 0, 0])


def _state(*values: int) -> Int64s:
    return np.array(values, np.int64)
