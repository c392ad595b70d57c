"""Matchers filled with a workload, as the measurements need them.

Reading expressions takes the same time whatever the engine, and most workloads have so many templates (R has one for
nearly every subscription) that it takes longer than anything measured here. So what does not depend on the engine is
made once for all of them: space, ids, texts, programs and boxes, as `Matcher.subscribe_many` would make them; from the
arrays of the workload where it has some, else from its expressions. Each engine then takes in the boxes by itself, and
is asked through the public methods of its matcher.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.bench.workloads import Workload
from tocsin.index import Boxes, engines
from tocsin.index.boxes import Int32s
from tocsin.language.symbolic import AxisKey
from tocsin.matcher import Matcher
from tocsin.matcher.placing import numbered
from tocsin.space.space import Space

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {"propagation-prefetch": ("propagation", {"prefetch": True})}
"""Engines with options that are measured under a name of their own."""


class Loaded(NamedTuple):
    """A matcher, and how long its engine took to take in the boxes."""

    matcher: Matcher
    seconds: float


class Read(NamedTuple):
    """Subscriptions that are read but not indexed: who they are, and their boxes. ``matcher`` has no box itself."""

    matcher: Matcher
    numbers: Int32s
    boxes: Boxes


def engine_names() -> list[str]:
    """Return the name of every engine and variant that is measured, the default one first.

    >>> engine_names()[0]
    'adaptive'
    """
    return sorted({*engines(), *VARIANTS}, key=lambda name: (name != "adaptive", name))


def load(workload: Workload, size: int, engine: str, *, share: float = 1.0, alone: bool = False) -> Loaded:
    """Return a matcher that holds the first ``size`` subscriptions of a workload, or a share of their boxes.

    ``alone``: it shares nothing with other matchers, so that it may be changed.

    >>> from tocsin.bench.workloads import WORKLOADS
    >>> len(load(WORKLOADS["W0"], 100, "scan").matcher)
    100
    """
    given = (_read.__wrapped__ if alone else _read)(workload, size)
    name, options = VARIANTS.get(engine, (engine, {}))
    matcher = Matcher(given.matcher.space, name, **options)
    index, state = matcher._state.index, given.matcher._state
    matcher._subscriptions = given.matcher._subscriptions
    matcher._state = type(state).of(state.axes, state.programs, index)
    some = max(1, round(share * len(given.numbers)))
    boxes = given.boxes if share == 1 else given.boxes.take(np.arange(some))
    started = time.perf_counter()
    index.insert(given.numbers[:some], boxes)
    return Loaded(matcher, time.perf_counter() - started)


@lru_cache(maxsize=1)
def boxes_of(workload: Workload, size: int) -> Boxes:
    """Return the boxes of the first ``size`` subscriptions; who asks for the same ones next gets the same arrays."""
    return workload.boxes(size)[1]


@lru_cache(maxsize=2)
def events_of(workload: Workload, rows: int) -> pa.Table:
    """Return the first events of a workload; who asks for the same ones next gets the same table."""
    return workload.events(rows)


@lru_cache(maxsize=1)
def _read(workload: Workload, size: int) -> Read:
    matcher = Matcher(Space.from_arrow(workload.events(1).schema), "scan")
    expressions = workload.expressions(size)
    ids, texts = (expressions[name].combine_chunks() for name in ("id", "expression"))
    if not workload.has_arrays:
        filled = matcher._fill(texts)
        assert not filled.problems, filled.problems
        numbers, _ = numbered(matcher._state, matcher._subscriptions, ids, texts, filled)
        matcher._subscriptions.publish(np.empty(0, np.int32))
        return Read(matcher, numbers, filled.boxes)
    for axis in range(workload.axes):
        matcher._state.axes.number(AxisKey((f"a{axis}",)))
    return Read(matcher, _known(matcher, ids, texts), boxes_of(workload, size))


def add_boxes(matcher: Matcher, ids: pa.Array, texts: pa.Array, boxes: Boxes) -> None:
    """Add subscriptions of one box each, as `Matcher.subscribe_many` does when it has read them."""
    with matcher._writing:
        matcher._state.index.insert(_known(matcher, ids, texts), boxes)


def _known(matcher: Matcher, ids: pa.Array, texts: pa.Array) -> Int32s:
    """Make subscriptions of one box each known; return the numbers that their boxes are to have."""
    numbers, _ = matcher._subscriptions.add(ids, texts, np.ones(len(ids), np.int64), np.full(len(ids), -1, np.int32))
    matcher._subscriptions.publish(np.empty(0, np.int32))
    return numbers


def bytes_each(matcher: Matcher) -> tuple[float, float]:
    """Return the bytes a subscription takes beyond its id and text: in all, and in the index alone."""
    account = matcher.stats()["bytes"]
    count = max(1, len(matcher))
    return sum(account.values()) / count, account["index"] / count
