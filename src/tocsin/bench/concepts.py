"""`tocsin bench concepts`: figures 7 and 8 of the concept-tree paper, and on to a million subscriptions.

Engines and the older strategies hold the same subscriptions and answer the same events, as codes in arrays: what is
compared is the way to find matches, with no text, ids or Arrow on either side. All must find as many pairs.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tocsin.bench.concept_strategies import STRATEGIES, strategy
from tocsin.bench.concept_trees import ConceptWorkload
from tocsin.bench.targets import Target
from tocsin.bench.timing import Answer, Effort
from tocsin.errors import MemoryLimitError, TocsinError
from tocsin.index import Queries, create

ENGINES = ("bitmap", "adaptive")

WAYS = (*ENGINES, *STRATEGIES)
"""All that is compared."""

PAPER_SIZES = (500, 1_000, 2_000, 5_000, 10_000)
LARGE_SIZES = (100_000, 1_000_000)
HEIGHTS = (1, 2, 3, 4, 5)
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""The shares of matching subscriptions of figure 8 (d)."""

EVENTS = 1_000
"""Events of a batch up to 10,000 subscriptions, as in Table 1."""

MORE_EVENTS = 8_192
"""Events of a batch beyond."""

EFFORT = Effort(repetitions=5, seconds=0.1, budget=8.0)
"""How long a figure is measured."""

Cell = tuple[int, int, float, tuple[str, ...]]
"""Height, subscriptions, share of them that match every event, and the ways that are measured."""

PAPER_BYTES = 3_000_000
"""What the paper's index takes at most at 10,000 subscriptions and height 5."""


@dataclass(frozen=True)
class Measured:
    """One way at one height, size and match rate. ``micros``: microseconds an event; None where it was not run."""

    way: str
    height: int
    size: int
    broad: float = 0.0
    micros: float | None = None
    spread: float | None = None
    pairs_an_event: float | None = None
    bytes: int | None = None
    load: float | None = None
    events: int | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values, figures rounded to what they are worth."""
        plain = asdict(self).items()
        return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in plain}


class DisagreementError(TocsinError):
    """Two ways found different numbers of pairs: one of them is wrong, and no figure of this run is worth anything."""


def cells(largest: int, ways: Sequence[str] = WAYS) -> list[Cell]:
    """Return what a run measures, up to a number of subscriptions.

    >>> [cell[:3] for cell in cells(500)]
    [(1, 500, 0.0), (5, 500, 0.0)]
    """
    engines = tuple(way for way in ways if way in ENGINES)
    found: list[Cell] = [(height, size, 0.0, tuple(ways)) for height in (1, 5) for size in PAPER_SIZES]
    found += [(height, 10_000, 0.0, tuple(ways)) for height in (2, 3, 4)]
    found += [(5, 10_000, share, engines) for share in RATES[1:]]
    for size in LARGE_SIZES:
        found += [(1, size, 0.0, engines), (5, size, 0.0, tuple(ways))]
    return [cell for cell in found if cell[1] <= largest]


def measure(wanted: Iterable[Cell], effort: Effort = EFFORT, deadline: float | None = None) -> Iterator[Measured]:
    """Measure each cell and yield each way's figures; after ``deadline`` (on `time.perf_counter`) nothing more is
    begun."""
    for height, size, share, ways in wanted:
        workload = ConceptWorkload(height, share)
        rows = EVENTS if size <= PAPER_SIZES[-1] else MORE_EVENTS
        queries = workload.queries(rows)
        found: dict[str, int] = {}
        for way in ways:
            blank = Measured(way, height, size, share)
            if deadline is not None and time.perf_counter() > deadline:
                yield replace(blank, note="the time for the whole run was used up")
                continue
            one, pairs = measured(blank, workload, queries, effort)
            if one.micros is not None:
                found[way] = pairs
            yield one
            gc.collect()
        if len(set(found.values())) > 1:
            raise DisagreementError(
                f"height {height}, {size:,} subscriptions: pairs of the same events differ: {found}"
            )


def measured(blank: Measured, workload: ConceptWorkload, queries: Queries, effort: Effort) -> tuple[Measured, int]:
    """Load one way and measure it; return also the pairs of the first hundred events, by which ways are compared."""
    started = time.perf_counter()
    try:
        holder, size = _loaded(blank.way, workload, blank.size)
    except MemoryLimitError as reason:
        return replace(blank, note=f"given up: {reason}"), 0
    seconds = time.perf_counter() - started

    def answer(rows: int) -> int:
        return len(holder.overlap(Queries.points(np.ascontiguousarray(queries.low[:, :rows]))).rows)

    rows = queries.rows if blank.way in ENGINES else _affordable(answer, queries.rows, effort)
    pairs = answer(rows)
    times = [_cpu_seconds(answer, rows)]
    while len(times) < effort.repetitions and sum(times) < effort.budget:
        times.append(_cpu_seconds(answer, rows))
    middle = statistics.median(times)
    return (
        replace(
            blank,
            micros=1e6 * middle / rows,
            spread=(max(times) - min(times)) / 2 / middle,
            pairs_an_event=pairs / rows,
            bytes=size,
            load=seconds,
            events=rows,
        ),
        answer(100),
    )


def _affordable(answer: Answer, most: int, effort: Effort) -> int:
    """Return how many events fit into the seconds of a repetition, for ways that treat one after another."""
    answer(1)
    return int(min(most, max(20, 20 * effort.seconds / max(_cpu_seconds(answer, 20), 1e-6))))


def _cpu_seconds(answer: Answer, rows: int) -> float:
    """Return the processor time of this thread, in which all ways do all their work: others do not disturb it."""
    started = time.thread_time()
    answer(rows)
    return time.thread_time() - started


def _loaded(way: str, workload: ConceptWorkload, size: int) -> tuple[Any, int]:
    """Return what answers, and the bytes it takes."""
    if way in STRATEGIES:
        one = strategy(way, workload, size)
        return one, one.nbytes
    index = create(way)
    index.insert(*workload.boxes(size))
    return index, int(index.stats()["bytes"])


def targets(run: Sequence[Measured]) -> list[Target]:
    """Hold the figures against what is asked of them; what was not measured is left open."""
    at = {(one.way, one.height, one.size): one for one in run if one.micros is not None and not one.broad}

    def micros(way: str, height: int, size: int) -> float | None:
        one = at.get((way, height, size))
        return one.micros if one else None

    found = []
    times = [(height, time) for height in HEIGHTS if (time := micros("bitmap", height, 10_000))]
    said = ", ".join(f"{time:.2f}" for _, time in times)
    flat = max(time for _, time in times) / min(time for _, time in times) if len(times) == len(HEIGHTS) else None
    found.append(
        Target(
            "time does not depend on the height: bitmap at 10,000, heights 1 to 5, within a factor of 2",
            f"{said} µs an event" if flat else "not in this run",
            None if flat is None else flat <= 2,
        )
    )
    walked, held = micros("walk", 5, 10_000), at.get(("bitmap", 5, 10_000))
    found.append(_faster("bitmap at height 5, 10,000: 70x walking the tree", walked, micros("bitmap", 5, 10_000), 70))
    found.append(
        Target(
            "bitmap at height 5, 10,000: at most 3 MB",
            f"{held.bytes / 1e6:.2f} MB" if held and held.bytes else "not in this run",
            held.bytes <= PAPER_BYTES if held and held.bytes else None,
        )
    )
    for size, times_faster in ((10_000, 1), (100_000, 1), (1_000_000, 10)):
        for height in (5, 1):
            wanted = times_faster if height == 5 else 1
            label = f"adaptive at height {height}, {size:,}: {'as fast as' if wanted == 1 else f'{wanted}x'} bitmap"
            found.append(_faster(label, micros("bitmap", height, size), micros("adaptive", height, size), wanted))
    return found


def _faster(label: str, slow: float | None, fast: float | None, wanted: float) -> Target:
    if slow is None or fast is None:
        return Target(label, "not in this run", None)
    return Target(label, f"{slow / fast:.3g}x ({slow:.3g} to {fast:.3g} µs an event)", slow / fast >= wanted)
