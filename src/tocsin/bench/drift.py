"""`tocsin bench drift`: both experiments of the clusters paper, section 6.2.3, scaled.

Subscriptions live for a while: the oldest go, new ones come, and from the second step on the new ones follow another
workload. In `schema` they turn to the sixteen axes that none was about; in `skew` one fixed axis has 2 values instead
of 35, in subscriptions and events alike. At each step the index is changed and matched in turn by one thread, as in the
paper. There are two rates, both by the processor time of that thread, so that whatever else the machine does is not
counted: that of matching alone, which says how well the index is organised, and the paper's, which counts the changes
and the maintenance that they cause as well. In the last steps, when nothing of the old kind is left, an index is begun
anew with the same boxes and goes through the same changes and questions beside it, batch by batch: what recovering can
reach. Merges of `adaptive` run beside it in another thread, as they do in use.
Strategies: an engine as it is, and the same without maintenance ("no change"), which keeps the organisation it had at
the beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tocsin.bench.workloads import DRIFTS, Workload
from tocsin.index import Boxes, Index, Queries, create
from tocsin.index.boxes import Int32s
from tocsin.index.dynamic import Dynamic

STEPS = 10
"""Over so many steps all subscriptions are replaced; two steps before and three after change nothing in kind."""

LAST = 3
"""How many steps follow: in them an index is held against one that is begun anew."""

BATCHES = 20
"""In so many parts the changes of a step come."""

ROWS = 2_048
"""Events matched after each part."""


class Rates(NamedTuple):
    """Events a second, over the processor time of matching, and over that of matching and changing; the first of these
    also of an index begun anew, 0 where there is none."""

    matching: float
    whole: float
    anew: float


class Unmaintained(Dynamic):
    """`dynamic` that keeps its tables and clusters as they are once it is frozen."""

    frozen = False

    def _inserted(self, targets: Int32s) -> None:
        if not self.frozen:
            super()._inserted(targets)

    def _removed(self) -> None:
        if not self.frozen:
            super()._removed()


def _unmaintained(numbers: Int32s, boxes: Boxes, queries: Queries) -> Index:
    index = Unmaintained()
    _settled(index, numbers, boxes, queries)
    index.maintain()
    index.frozen = True
    return index


def _settled(index: Any, numbers: Int32s, boxes: Boxes, queries: Queries) -> Index:
    """Fill an index that has seen events, as one that has run for long."""
    index.overlap(queries)
    index.insert(numbers, boxes)
    index.overlap(queries)
    held: Index = index
    return held


STRATEGIES: dict[str, Callable[[Int32s, Boxes, Queries], Index]] = {
    "adaptive": lambda *start: _settled(create("adaptive"), *start),
    "adaptive (no change)": lambda *start: _settled(create("adaptive", background=False), *start),
    "dynamic": lambda *start: _settled(create("dynamic"), *start),
    "dynamic (no change)": _unmaintained,
}
"""How an index is kept, by name: each from the boxes and events of the beginning."""


def experiment(
    name: str, size: int = 300_000, strategies: tuple[str, ...] = tuple(STRATEGIES), budget: float = 20.0
) -> dict[str, Any]:
    """Run one experiment for each strategy; return the share replaced and the events a second at each step.

    ``anew`` has the rates of an index begun anew beside it in the last steps. ``budget`` bounds the processor time of
    matching for one strategy: at each step it is asked as long as its share lasts, and once in any case.
    """
    before, after = DRIFTS[name]
    steps = [0, 0, *range(1, STEPS + 1), *[STEPS] * LAST]
    found: dict[str, Any] = {
        "experiment": name,
        "size": size,
        "replaced": [round(100 * step / STEPS) for step in steps],
        "matching": {},
        "events": {},
        "anew": {},
    }
    for strategy in strategies:
        list(_run(STRATEGIES[strategy], before, after, min(size, 4_000), [0, 1], 1, budget))  # compiles what is used
        twin = len(steps) - LAST if "(" not in strategy else len(steps)
        rates = list(_run(STRATEGIES[strategy], before, after, size, steps, twin, budget / len(steps)))
        found["matching"][strategy] = [round(rate.matching, 1) for rate in rates]
        found["events"][strategy] = [round(rate.whole, 1) for rate in rates]
        if twin < len(steps):
            found["anew"][strategy] = [round(rate.anew, 1) for rate in rates[twin:]]
    return found


def summary(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each strategy its rate of matching at the beginning, the lowest, that of the end, that of an index
    begun anew beside it, and the share of this that was reached (the median of the last steps, None for those without
    maintenance); and the rate of the end with changes counted."""
    rows = []
    for strategy, rates in found["matching"].items():
        first, last = float(np.median(rates[:2])), float(np.median(rates[-LAST:]))
        begun = found["anew"].get(strategy)
        anew = float(np.median(begun)) if begun else None
        share = float(np.median(np.divide(rates[-LAST:], begun))) if begun else None
        rows.append(
            {
                "experiment": found["experiment"],
                "strategy": strategy,
                "first": first,
                "lowest": min(rates),
                "last": last,
                "anew": anew,
                "recovered": round(share, 3) if share is not None else None,
                "with changes": float(np.median(found["events"][strategy][-LAST:])),
            }
        )
    return rows


def _run(
    start: Callable[[Int32s, Boxes, Queries], Index],
    before: Workload,
    after: Workload,
    size: int,
    steps: list[int],
    twin_from: int,
    seconds: float,
) -> Iterator[Rates]:
    """Yield the rates of each step, which are asked for so many seconds each at most; from one step on also those of an
    index begun anew."""
    _, old = before.boxes(size + LAST * size // STEPS)
    _, new = after.boxes(size + LAST * size // STEPS)
    queries = {False: before.queries(ROWS), True: after.queries(ROWS)}
    indexes = [start(np.arange(size, dtype=np.int32), old.take(np.arange(size)), queries[False])]
    part = max(1, size // STEPS // BATCHES)
    oldest, taken = 0, {False: size, True: 0}
    for place, step in enumerate(steps):
        drifting = step > 0
        if place == twin_from:
            indexes.append(start(*indexes[0].contents(), queries[drifting]))
        changing, asking, asked = 0.0, np.zeros(len(indexes)), 0
        for batch in range(BATCHES):
            chosen = np.arange(taken[drifting], taken[drifting] + part)
            taken[drifting] += part
            coming = (new if drifting else old).take(chosen)
            numbers = np.arange(oldest + size, oldest + size + part, dtype=np.int32)
            for index in indexes[::-1]:
                began = time.thread_time()
                index.remove(np.arange(oldest, oldest + part, dtype=np.int32))
                index.insert(numbers, coming)
                changed = time.thread_time() - began
            changing += changed  # of the first, which comes last
            oldest += part
            if batch and asking[0] > seconds:
                continue
            asked += ROWS
            for i, index in enumerate(indexes):
                began = time.thread_time()
                index.overlap(queries[drifting])
                asking[i] += time.thread_time() - began
        each = np.maximum(asking, 1e-9) / asked
        whole = 1 / (each[0] + changing / (BATCHES * ROWS))
        yield Rates(float(1 / each[0]), float(whole), float(1 / each[1]) if len(each) > 1 else 0.0)
    for index in indexes:
        close = getattr(index, "close", None)
        if close is not None:
            close()
