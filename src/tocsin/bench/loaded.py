"""Matchers filled with a workload, as the measurements need them.

Most workloads have so many templates (R has one for nearly every subscription) that reading their expressions takes
longer than anything measured here, and it takes the same time whatever the engine. So a matcher is filled from the
arrays of the workload: its space, ids, texts and boxes are those that `Matcher.subscribe_many` would give it, and it is
matched through its public methods. Workloads without an array level are subscribed by their expressions.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from tocsin.bench.workloads import Workload
from tocsin.index import engines
from tocsin.language.normal import AxisKey
from tocsin.matcher import Matcher
from tocsin.space.space import Space

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {"propagation-prefetch": ("propagation", {"prefetch": True})}
"""Engines with options that are measured under a name of their own."""


class Loaded(NamedTuple):
    """A matcher, and how long its engine took to take in the boxes (by expressions: to read them as well)."""

    matcher: Matcher
    seconds: float
    by_expressions: bool


def engine_names() -> list[str]:
    """Return the name of every engine and variant that is measured, the default one first.

    >>> engine_names()[0]
    'adaptive'
    """
    return sorted({*engines(), *VARIANTS}, key=lambda name: (name != "adaptive", name))


def new_matcher(workload: Workload, engine: str, **more: Any) -> Matcher:
    """Return an empty matcher on the space of a workload's events."""
    name, options = VARIANTS.get(engine, (engine, {}))
    return Matcher(Space.from_arrow(workload.events(1).schema), name, **options, **more)


def load(workload: Workload, size: int, engine: str, **more: Any) -> Loaded:
    """Return a matcher that holds the first ``size`` subscriptions of a workload.

    >>> from tocsin.bench.workloads import WORKLOADS
    >>> len(load(WORKLOADS["W0"], 100, "scan").matcher)
    100
    """
    matcher = new_matcher(workload, engine, **more)
    expressions = workload.expressions(size)
    if not workload.has_arrays:
        started = time.perf_counter()
        matcher.subscribe_many(expressions)
        return Loaded(matcher, time.perf_counter() - started, True)
    numbers, boxes = workload.boxes(size)
    state = matcher._state
    for axis in range(workload.axes):
        state.axes.number(AxisKey((f"a{axis}",)))
    ids, texts = (expressions[name].combine_chunks() for name in ("id", "expression"))
    taken, _ = matcher._subscriptions.add(ids, texts, np.ones(size, np.int64), np.full(size, -1, np.int32))
    assert np.array_equal(taken, numbers)  # an empty matcher numbers from 0
    started = time.perf_counter()
    state.index.insert(numbers, boxes)
    return Loaded(matcher, time.perf_counter() - started, False)


def bytes_each(matcher: Matcher) -> tuple[float, float]:
    """Return the bytes a subscription takes beyond its id and text: in all, and in the index alone."""
    account = matcher.stats()["bytes"]
    count = max(1, len(matcher))
    return sum(account.values()) / count, account["index"] / count
