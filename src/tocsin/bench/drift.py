"""`tocsin bench drift`: both experiments of the clusters paper, section 6.2.3, scaled.

Subscriptions live for a while: the oldest go, new ones come, and from the second step on the new ones follow another
workload. In `schema` they turn to the sixteen axes that none was about; in `skew` one fixed axis has 2 values instead
of 35, in subscriptions and events alike. At each step the index is changed and matched in turn by one thread, as in the
paper. There are two rates, both by the processor time of that thread, so that whatever else the machine does is not
counted: that of matching alone, which says how well the index is organised, and the paper's, which counts the changes
and the maintenance that they cause as well. Merges of `adaptive` run beside it in another thread, as they do in use.
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
"""Over so many steps all subscriptions are replaced; two steps before and after them change nothing in kind."""

BATCHES = 20
"""In so many parts the changes of a step come."""

ROWS = 2_048
"""Events matched after each part."""


class Rates(NamedTuple):
    """Events a second, over the processor time of matching, and over that of matching and changing."""

    matching: float
    whole: float


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
    name: str, size: int = 300_000, strategies: tuple[str, ...] = tuple(STRATEGIES), budget: float = 60.0
) -> dict[str, Any]:
    """Run one experiment for each strategy; return the share replaced and the events a second at each step.

    ``anew`` has the rate of an index that was begun with what the drift leads to: what recovering can reach.
    ``budget`` bounds the processor time of one strategy: what it does not reach is left out, and said in ``notes``.
    """
    before, after = DRIFTS[name]
    steps = [0, 0, *range(1, STEPS + 1), STEPS, STEPS]
    found: dict[str, Any] = {
        "experiment": name,
        "size": size,
        "replaced": [round(100 * step / STEPS) for step in steps],
        "matching": {},
        "events": {},
        "anew": {},
        "notes": {},
    }
    for strategy in strategies:
        list(_run(STRATEGIES[strategy], before, after, min(size, 4_000), [0, 1]))  # compiles what is used
        if "(" not in strategy:
            anew = _run(STRATEGIES[strategy], after, after, size, [0, 0, 0])
            found["anew"][strategy] = round(max(rates.matching for rates in anew), 1)
        matching, whole = found["matching"].setdefault(strategy, []), found["events"].setdefault(strategy, [])
        started = time.thread_time()
        for rates in _run(STRATEGIES[strategy], before, after, size, steps):
            matching.append(round(rates.matching, 1))
            whole.append(round(rates.whole, 1))
            if time.thread_time() - started > budget:
                found["notes"][strategy] = (
                    f"stopped after {len(whole)} of {len(steps)} steps: {budget:g} s were used up"
                )
                break
    return found


def summary(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each strategy its rate of matching at the beginning, the lowest, that of the end, that of an index
    begun anew with what the drift leads to, and the share of this that was reached; and the rate of the end with
    changes counted."""
    rows = []
    for strategy, rates in found["matching"].items():
        first, last = float(np.median(rates[:2])), float(np.median(rates[-2:]))
        anew = found["anew"].get(strategy.partition(" ")[0], first)
        rows.append(
            {
                "experiment": found["experiment"],
                "strategy": strategy,
                "first": first,
                "lowest": min(rates),
                "last": last,
                "anew": anew,
                "recovered": round(last / anew, 3),
                "with changes": float(np.median(found["events"][strategy][-2:])),
                "note": found["notes"].get(strategy, ""),
            }
        )
    return rows


def _run(
    start: Callable[[Int32s, Boxes, Queries], Index], before: Workload, after: Workload, size: int, steps: list[int]
) -> Iterator[Rates]:
    """Yield the events a second of each step."""
    _, old = before.boxes(size + 3 * size // STEPS)
    _, new = after.boxes(size + 3 * size // STEPS)
    queries = {False: before.queries(ROWS), True: after.queries(ROWS)}
    index = start(np.arange(size, dtype=np.int32), old.take(np.arange(size)), queries[False])
    part = max(1, size // STEPS // BATCHES)
    oldest, taken = 0, {False: size, True: 0}
    drifting = False
    index.overlap(queries[False])
    for step in steps:
        drifting = drifting or step > 0
        source = new if drifting else old
        changing = asking = 0.0
        for _ in range(BATCHES):
            chosen = np.arange(taken[drifting], taken[drifting] + part)
            taken[drifting] += part
            coming = source.take(chosen)
            numbers = np.arange(oldest + size, oldest + size + part, dtype=np.int32)
            began = time.thread_time()
            index.remove(np.arange(oldest, oldest + part, dtype=np.int32))
            index.insert(numbers, coming)
            between = time.thread_time()
            index.overlap(queries[drifting])
            asking += time.thread_time() - between
            changing += between - began
            oldest += part
        events = BATCHES * ROWS
        yield Rates(events / max(asking, 1e-9), events / max(asking + changing, 1e-9))
    close = getattr(index, "close", None)
    if close is not None:
        close()
