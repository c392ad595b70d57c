"""`tocsin bench engines`: every engine on every workload, beside a kernel by hand and what people write instead.

Everything is asked through `Matcher.match_batch` and `Matcher.match`, with one thread unless it says two; each engine
gets a matcher of its own, loaded from scratch and dropped before the next. What would exceed the time it may take is
reported as not run, with the reason.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from tocsin.bench.boolean import ADS
from tocsin.bench.hand import answer_by_hand, hand_names
from tocsin.bench.loaded import bytes_each, engine_names, load
from tocsin.bench.peers import PEERS, NoPeerError
from tocsin.bench.timing import USUAL, Effort, batch_answer, rate, rate_of_rows, rate_of_threads, single_latencies
from tocsin.bench.workloads import WORKLOADS, Workload

MEASURED: dict[str, Workload] = {**WORKLOADS, ADS.name: ADS}
"""Every workload that is measured, by name."""

BY_HAND = "by hand"
"""The name under which the kernels written by hand appear."""

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
    cells: Iterable[tuple[str, int]],
    engines: Iterable[str] | None = None,
    peers: Iterable[str] = tuple(PEERS),
    effort: Effort = USUAL,
    deadline: float | None = None,
) -> Iterator[Measurement]:
    """Measure all engines on each (workload, size), then the kernel by hand and the peers; yield each as it is done.

    After ``deadline``, on the clock of `time.perf_counter`, nothing more is begun.
    """
    chosen, beside = list(engines if engines is not None else engine_names()), list(peers)
    for name, size in cells:
        workload = MEASURED[name]
        for engine in chosen:
            blank = Measurement(name, size, engine, "engine")
            yield _bounded(blank, deadline, partial(engine_on, workload, blank, effort))
        if name in hand_names():
            blank = Measurement(name, size, BY_HAND, "hand")
            yield _bounded(blank, deadline, partial(hand_on, workload, blank, effort))
        for peer in beside:
            blank = Measurement(name, size, peer, "peer")
            yield _bounded(blank, deadline, partial(peer_on, workload, blank, effort))


def engine_on(workload: Workload, blank: Measurement, effort: Effort) -> Measurement:
    """Measure one engine: load, batches, single events, memory, and two threads where it has them."""
    events = workload.events(ROWS)
    few = min(1.0, 2_048 / blank.size)
    for share in (few, 1 / TRIAL):  # compiles all that is used: few boxes and many may go different ways
        warm = load(workload, blank.size, blank.engine, share=share).matcher
        warm.match_batch(events.slice(0, 100))
        warm.match(events.slice(0, 1).to_pylist()[0])
    tried = load(workload, blank.size, blank.engine, share=1 / TRIAL)
    tried.matcher.match_batch(events.slice(0, 1))
    started = time.perf_counter()
    tried.matcher.match_batch(events.slice(0, 2))
    foretold = (time.perf_counter() - started) / 2 * TRIAL
    if tried.seconds * TRIAL > 2 * effort.budget:
        return replace(blank, note=f"loading would take about {tried.seconds * TRIAL:,.0f} s")
    if foretold > effort.budget:
        return replace(blank, note=f"an event would take about {foretold:,.0f} s")
    del tried, warm
    gc.collect()
    loaded = load(workload, blank.size, blank.engine)
    found = rate(batch_answer(loaded.matcher, events), ROWS, effort)
    singles = events.slice(0, effort.singles).to_pylist()
    p50, p99 = single_latencies(loaded.matcher, singles, effort.budget / 10)
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


def hand_on(workload: Workload, blank: Measurement, effort: Effort) -> Measurement:
    """Measure the kernel written by hand for a workload."""
    found = rate(answer_by_hand(workload, blank.size, ROWS), ROWS, effort)
    return replace(_with_rate(blank, found), note="codes in, no Arrow")


def peer_on(workload: Workload, blank: Measurement, effort: Effort) -> Measurement:
    """Measure what people write instead."""
    try:
        peer = PEERS[blank.engine](workload, blank.size, 8_192)
    except NoPeerError as reason:
        return replace(blank, note=str(reason))
    try:
        found = rate_of_rows(peer.answer, peer.rows, effort) if peer.rows else rate(peer.answer, 8_192, effort)
    finally:
        peer.close()
    measured = _with_rate(blank, found)
    if peer.scale == 1:
        return measured
    scaled = replace(measured, events=found.events / peer.scale, pairs_an_event=found.pairs / found.events * peer.scale)
    return replace(scaled, note=f"scaled from {blank.size / peer.scale:,.0f} subscriptions")


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


def _bounded(blank: Measurement, deadline: float | None, run: Callable[[], Measurement]) -> Measurement:
    if deadline is not None and time.perf_counter() > deadline:
        return replace(blank, note="the time for the whole run was used up")
    before = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        return run()
    except MemoryError:
        return replace(blank, note="it took more memory than there is")
    finally:
        pa.set_cpu_count(before)
        gc.collect()
