"""Repeated timings: a warm-up, several repetitions, the median and how far they lie apart."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.matcher import Matcher


class Effort(NamedTuple):
    """How much is measured: repetitions, about how long each lasts, and what one engine may take in all."""

    repetitions: int = 5
    seconds: float = 0.25
    budget: float = 20.0
    singles: int = 2_000


USUAL = Effort()
"""For figures that are kept."""

QUICK = Effort(repetitions=3, seconds=0.05, budget=5.0, singles=300)
"""For a look; not for figures that are kept."""


class Rate(NamedTuple):
    """Events and pairs a second (medians), half the range over the median, and what was measured."""

    events: float
    pairs: float
    spread: float
    rows: int
    repetitions: int


Answer = Callable[[int], int]
"""Matches the first so many events and returns the number of pairs."""


def rate(answer: Answer, most_rows: int, effort: Effort) -> Rate:
    """Measure how many events a second a function answers.

    The warm-up finds how many events one repetition takes. A repetition that would exceed the budget is left out, but
    one is always made.
    """
    rows, took = 1, 0.0
    answer(1)
    deadline = time.perf_counter() + effort.budget
    while took < effort.seconds / 4 and rows < most_rows:
        rows = min(most_rows, rows * 8)
        answer(rows)
        took = _timed(answer, rows)[0]
        if took * 8 > effort.budget:
            break
    if took:
        rows = int(min(most_rows, max(1, rows * effort.seconds / took)))
    times: list[float] = []
    pairs = 0
    while len(times) < effort.repetitions and (not times or time.perf_counter() + times[-1] < deadline):
        seconds, pairs = _timed(answer, rows)
        times.append(seconds)
    return _rate(rows, pairs, times)


def rate_of_rows(answer: Answer, rows: int, effort: Effort) -> Rate:
    """Measure a function that is asked about so many events at once, whatever that takes, after one warm-up."""
    answer(rows)
    times: list[float] = []
    pairs = 0
    while len(times) < effort.repetitions and sum(times) < effort.budget:
        seconds, pairs = _timed(answer, rows)
        times.append(seconds)
    return _rate(rows, pairs, times)


def batch_answer(matcher: Matcher, events: pa.Table) -> Answer:
    """Return a function that asks a matcher through `Matcher.match_batch`."""
    return lambda rows: int(matcher.match_batch(events.slice(0, rows)).num_rows)


def rate_of_threads(matcher: Matcher, events: pa.Table, alone: Rate, threads: int, effort: Effort) -> float:
    """Return the events a second that so many threads get from one matcher, each asking for the rows of ``alone``, as
    often as takes one of them the time of a repetition."""
    some = events.slice(0, alone.rows)
    times = max(1, round(effort.seconds * alone.events / alone.rows))
    found = []
    for _ in range(effort.repetitions):
        ready = threading.Barrier(threads + 1)

        def ask(ready: threading.Barrier = ready) -> None:
            ready.wait()
            for _ in range(times):
                matcher.match_batch(some)

        workers = [threading.Thread(target=ask) for _ in range(threads)]
        for worker in workers:
            worker.start()
        ready.wait()
        started = time.perf_counter()
        for worker in workers:
            worker.join()
        found.append(threads * times * alone.rows / (time.perf_counter() - started))
    return statistics.median(found)


def single_latencies(matcher: Matcher, events: Sequence[dict[str, Any]], seconds: float) -> tuple[float, float]:
    """Return the median and the 99th percentile of single calls of `Matcher.match`, in microseconds."""
    for event in events[: max(1, len(events) // 10)]:
        matcher.match(event)
    times = []
    deadline = time.perf_counter() + seconds
    for event in events:
        started = time.perf_counter()
        matcher.match(event)
        times.append(time.perf_counter() - started)
        if started > deadline:
            break
    p50, p99 = np.percentile(times, [50, 99]) * 1e6
    return float(p50), float(p99)


def _rate(rows: int, pairs: int, times: list[float]) -> Rate:
    middle = statistics.median(times)
    return Rate(rows / middle, pairs / middle, (max(times) - min(times)) / 2 / middle, rows, len(times))


def _timed(answer: Answer, rows: int) -> tuple[float, int]:
    started = time.perf_counter()
    pairs = answer(rows)
    return time.perf_counter() - started, pairs
