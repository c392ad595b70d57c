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


CERTAIN = 5.0
"""Who is so many times slower than another will not be found faster by measuring on."""


class Rate(NamedTuple):
    """Events and pairs a second (medians), half the range over the median, and what was measured."""

    events: float
    pairs: float
    spread: float
    rows: int
    repetitions: int


Answer = Callable[[int], int]
"""Matches the first so many events and returns the number of pairs."""


def rate(answer: Answer, most_rows: int, effort: Effort, beside: float = 0.0) -> Rate:
    """Measure how many events a second a function answers.

    The warm-up finds how many events one repetition takes. A repetition that would exceed the budget is left out, but
    one is always made; and after two that are certainly slower than ``beside`` events a second, no more are made.
    """
    deadline = time.perf_counter() + effort.budget
    answer(1)
    rows, took = _enough_rows(answer, most_rows, effort)
    rows = int(min(most_rows, max(1, rows * effort.seconds / took)))
    times: list[float] = []
    pairs = 0
    while len(times) < effort.repetitions and (not times or time.perf_counter() + times[-1] < deadline):
        seconds, pairs = _timed(answer, rows)
        times.append(seconds)
        if len(times) == 2 and CERTAIN * rows / min(times) < beside:
            break
    return _rate(rows, pairs, times)


def _enough_rows(answer: Answer, most_rows: int, effort: Effort) -> tuple[int, float]:
    """Return how many rows take long enough to tell what a row takes, and how long they took.

    What a call takes whatever its rows must not tell: it ends where eight times the rows take four times as long.
    """
    rows, took, before = 1, _timed(answer, 1)[0], 0.0
    while rows < most_rows and (took < effort.seconds / 4 or took < 4 * before or rows == 1):
        if 8 * took > effort.budget / 2:
            break
        rows, before = min(most_rows, 8 * rows), took
        if took < effort.seconds / 4:
            answer(rows)  # first of its size
        took = _timed(answer, rows)[0]
    return rows, took


def rate_of_rows(answer: Answer, rows: int, effort: Effort) -> Rate:
    """Measure a function that is asked about so many events at once, whatever that takes, after one warm-up."""
    answer(rows)
    times: list[float] = []
    pairs = 0
    while len(times) < effort.repetitions and (not times or sum(times) + times[-1] < effort.budget):
        seconds, pairs = _timed(answer, rows)
        times.append(seconds)
    return _rate(rows, pairs, times)


def batch_answer(matcher: Matcher, events: pa.Table) -> Answer:
    """Return a function that asks a matcher through `Matcher.match_batch`."""
    return lambda rows: int(matcher.match_batch(events.slice(0, rows)).num_rows)


def rate_of_threads(matcher: Matcher, events: pa.Table, alone: Rate, threads: int, effort: Effort) -> float:
    """Return the events a second that so many threads get from one matcher, each asking for the rows of ``alone``, as
    often as takes one of them the time of a repetition.

    One thread and several take turns, so that both meet the same disturbances: it is the rate alone, as many times as
    several had what one had next to them.
    """
    some = events.slice(0, alone.rows)
    times = max(1, round(effort.seconds * alone.events / alone.rows))
    turns = [[_together(matcher, some, times, each) for each in (1, threads)] for _ in range(effort.repetitions)]
    return alone.events * statistics.median(threads * one / several for one, several in turns)


def _together(matcher: Matcher, events: pa.Table, times: int, threads: int) -> float:
    """Return how long so many threads take, each of which asks so many times."""
    ready = threading.Barrier(threads + 1)

    def ask() -> None:
        ready.wait()
        for _ in range(times):
            matcher.match_batch(events)

    workers = [threading.Thread(target=ask) for _ in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    return time.perf_counter() - started


def single_latencies(matcher: Matcher, events: Sequence[dict[str, Any]], seconds: float) -> tuple[float, float]:
    """Return the median and the 99th percentile of single calls of `Matcher.match`, in microseconds.

    It takes about so many seconds at most, a quarter of them to warm up.
    """
    _calls(matcher, events[: max(1, len(events) // 10)], seconds / 4)
    p50, p99 = np.percentile(_calls(matcher, events, seconds), [50, 99]) * 1e6
    return float(p50), float(p99)


def _calls(matcher: Matcher, events: Sequence[dict[str, Any]], seconds: float) -> list[float]:
    """Return how long each call took, the last of them begun within so many seconds."""
    times: list[float] = []
    deadline = time.perf_counter() + seconds
    for event in events:
        started = time.perf_counter()
        matcher.match(event)
        ended = time.perf_counter()
        times.append(ended - started)
        if ended > deadline:
            break
    return times


def _rate(rows: int, pairs: int, times: list[float]) -> Rate:
    middle = statistics.median(times)
    return Rate(rows / middle, pairs / middle, (max(times) - min(times)) / 2 / middle, rows, len(times))


def _timed(answer: Answer, rows: int) -> tuple[float, int]:
    started = time.perf_counter()
    pairs = answer(rows)
    return time.perf_counter() - started, pairs
