"""`tocsin bench engines`: every engine on every workload, beside a kernel by hand and what people write instead.

Everything is asked through `Matcher.match_batch` and `Matcher.match`, with one thread unless it says two; each engine
gets a matcher of its own, loaded from scratch and dropped before the next. What would exceed the time it may take, by
the plan (`bench/plan.py`), is reported as not run, with what was foretold.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import pyarrow as pa

from tocsin.bench.boolean import ADS
from tocsin.bench.hand import answer_by_hand, hand_names
from tocsin.bench.loaded import bytes_each, engine_names, events_of, load
from tocsin.bench.peers import PEERS, NoPeerError, end_spark
from tocsin.bench.plan import EVENTS, SPARK, Cost, Plan, Step, steps
from tocsin.bench.timing import USUAL, Effort, batch_answer, rate, rate_of_rows, rate_of_threads, single_latencies
from tocsin.bench.workloads import WORKLOADS, Workload

MEASURED: dict[str, Workload] = {**WORKLOADS, ADS.name: ADS}
"""Every workload that is measured, by name."""

ROWS = 65_536
"""How many events a repetition takes at most."""

TRIAL = 16
"""A load is tried with one in so many subscriptions first, to foretell how long all of them take."""

THREADS_ON = ("adaptive",)
"""The engines that are also asked by two threads."""


@dataclass(frozen=True)
class Measurement:
    """One engine on one workload and size. What was not measured is None; ``note`` says why."""

    workload: str
    size: int
    engine: str
    kind: str
    events: float | None = None
    pairs: float | None = None
    spread: float | None = None
    pairs_an_event: float | None = None
    p50: float | None = None
    p99: float | None = None
    load: float | None = None
    bytes_each: float | None = None
    index_bytes_each: float | None = None
    two_threads: float | None = None
    rows: int | None = None
    repetitions: int | None = None
    note: str = ""

    @property
    def was_run(self) -> bool:
        """Whether there is a figure."""
        return self.events is not None

    def to_json(self) -> dict[str, Any]:
        """Return plain values, figures rounded to what they are worth."""
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in asdict(self).items()
        }


def measure(
    cells: Sequence[tuple[str, int]],
    engines: Iterable[str] | None = None,
    peers: Iterable[str] = tuple(PEERS),
    effort: Effort = USUAL,
    seconds: float | None = None,
) -> Iterator[Measurement]:
    """Measure all engines on each (workload, size), the kernel by hand and the peers; yield each as it is done.

    With ``seconds`` all of it takes about that long: each has a share, and what would exceed its own is not run.
    """
    chosen = list(engines if engines is not None else engine_names())
    todo = steps(cells, chosen, hand_names(), peers)
    plan = Plan(todo, seconds)
    best: dict[tuple[str, int], float] = {}
    try:
        for step in todo:
            one = _bounded(step, plan, effort, best.get((step.workload, step.size), 0.0))
            if one.events is not None and one.kind == "engine":
                best[step.workload, step.size] = max(one.events, best.get((step.workload, step.size), 0.0))
            yield one
    finally:
        end_spark()


class _TooLongError(Exception):
    """A trial has shown that the whole would take too long: so much."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost


def compile_all(engines: Iterable[str]) -> None:
    """Compile what is not on disk yet, as far as few subscriptions on values and on ranges use it, so that no engine
    is charged for it."""
    for name, engine in product(("W1", "R"), engines):
        matcher = load(MEASURED[name], 20_000, engine).matcher
        matcher.match_batch(events_of(MEASURED[name], 1_000))
        matcher.match(events_of(MEASURED[name], 1_000).slice(0, 1).to_pylist()[0])


def _bounded(step: Step, plan: Plan, effort: Effort, best: float) -> Measurement:
    """Measure one, unless it would take more than its share; tell the plan what it took or would take."""
    blank = Measurement(*step)
    share = plan.share(step, effort.budget)
    foretold = plan.foretold(step)
    if foretold is not None and foretold.seconds > share and not step.is_needed:
        plan.learn(step, foretold)
        return replace(blank, note=_foretold(foretold, share))
    own = effort._replace(budget=effort.budget if step.is_needed else max(share, 8 * effort.seconds))
    before = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        one = _MEASURING[step.kind](MEASURED[step.workload], blank, own, 0.0 if step.is_needed else best, foretold)
    except _TooLongError as tried:
        plan.learn(step, tried.cost)
        return replace(blank, note=_foretold(tried.cost, own.budget))
    except MemoryError:
        return replace(blank, note="it took more memory than there is")
    finally:
        pa.set_cpu_count(before)
    if one.events is not None:
        fixed = 2 * (one.rows or 0) if step.engine == SPARK else EVENTS
        plan.learn(step, Cost(step.size, one.load or 0.0, 1 / one.events, fixed))
    return one


def engine_on(
    workload: Workload, blank: Measurement, effort: Effort, best: float, foretold: Cost | None
) -> Measurement:
    """Measure one engine: load, batches, single events, memory, and two threads where it has them.

    Parts of the load go first, so that all that is used is compiled: few boxes and many may go different ways. Where
    nothing foretells what the whole takes, they do.
    """
    events = events_of(workload, ROWS)
    few = min(1.0, 2_048 / blank.size)
    for share in (1 / TRIAL,) if foretold else (few, 1 / TRIAL):
        warm = load(workload, blank.size, blank.engine, share=share).matcher
        warm.match_batch(events.slice(0, 100 if share == few else 2))
        warm.match(events.slice(0, 1).to_pylist()[0])
    if foretold is None:
        cost = _tried(workload, blank, events)
        if cost.seconds > 2 * effort.budget:
            raise _TooLongError(cost)
    del warm
    gc.collect()
    loaded = load(workload, blank.size, blank.engine)
    found = rate(batch_answer(loaded.matcher, events), ROWS, effort, best)
    singles = events.slice(0, effort.singles).to_pylist()
    p50, p99 = single_latencies(loaded.matcher, singles, min(2.0, effort.budget / 10))
    whole, index = bytes_each(loaded.matcher)
    two = None
    if blank.engine in THREADS_ON:
        two = rate_of_threads(loaded.matcher, events, found, 2, effort)
    return replace(
        _with_rate(blank, found),
        p50=p50,
        p99=p99,
        load=loaded.seconds,
        bytes_each=whole,
        index_bytes_each=index,
        two_threads=two,
    )


def _tried(workload: Workload, blank: Measurement, events: pa.Table) -> Cost:
    """Return what all subscriptions will take by what one in `TRIAL` takes."""
    tried = load(workload, blank.size, blank.engine, share=1 / TRIAL)
    tried.matcher.match_batch(events.slice(0, 1))
    started = time.perf_counter()
    tried.matcher.match_batch(events.slice(0, 2))
    return Cost(blank.size, TRIAL * tried.seconds, (time.perf_counter() - started) / 2 * TRIAL)


def hand_on(workload: Workload, blank: Measurement, effort: Effort, best: float, foretold: Cost | None) -> Measurement:
    """Measure the kernel written by hand for a workload."""
    found = rate(answer_by_hand(workload, blank.size, ROWS), ROWS, effort)
    return replace(_with_rate(blank, found), note="codes in, no Arrow")


def peer_on(workload: Workload, blank: Measurement, effort: Effort, best: float, foretold: Cost | None) -> Measurement:
    """Measure what people write instead."""
    try:
        peer = PEERS[blank.engine](workload, blank.size, 8_192)
    except NoPeerError as reason:
        return replace(blank, note=str(reason))
    try:
        if peer.at_once:
            found = rate_of_rows(peer.answer, peer.rows, effort)
        else:
            found = rate(peer.answer, peer.rows, effort, best)
    finally:
        peer.close()
    measured = replace(_with_rate(blank, found), load=peer.load)
    if peer.scale == 1:
        return measured
    scaled = replace(measured, events=found.events / peer.scale, pairs_an_event=found.pairs / found.events * peer.scale)
    return replace(scaled, note=f"scaled from {blank.size / peer.scale:,.0f} subscriptions")


_MEASURING = {"engine": engine_on, "hand": hand_on, "peer": peer_on}


def _foretold(cost: Cost, share: float) -> str:
    """Return why something was not run."""
    return (
        f"foretold: {1 / max(cost.event, 1e-9):,.3g} events/s at least, {cost.load:,.3g} s to load; "
        f"more than its {share:,.2g} s of the run"
    )


def _with_rate(blank: Measurement, found: Any) -> Measurement:
    return replace(
        blank,
        events=found.events,
        pairs=found.pairs,
        spread=found.spread,
        pairs_an_event=found.pairs / found.events,
        rows=found.rows,
        repetitions=found.repetitions,
    )
