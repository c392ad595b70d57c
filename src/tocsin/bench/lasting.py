"""Figures beyond the rate: opening a saved matcher, two cores within one call, memory by the width of expressions."""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

import pyarrow as pa

from tocsin.bench.boolean import ADS
from tocsin.bench.loaded import bytes_each, load
from tocsin.bench.timing import Effort, batch_answer, rate
from tocsin.bench.workloads import Workload
from tocsin.matcher import Matcher

ROWS = 262_144
"""How many events one call takes at most: enough that its beginning and its end do not count."""


def saved_and_spread(workload: Workload, size: int, effort: Effort) -> dict[str, Any]:
    """Save a matcher; measure opening it up to its first match, and one call over one thread and over two.

    The files are in the page cache, as they are for every process on a host but the first.
    """
    events = workload.events(ROWS)
    event = events.slice(0, 1).to_pylist()[0]
    matcher = load(workload, size, "adaptive").matcher
    matcher.match(event)
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        matcher.save(directory)
        saving = time.perf_counter() - started
        del matcher
        opening = []
        for _ in range(effort.repetitions):
            started = time.perf_counter()
            opened = Matcher.load(directory)
            opened.match(event)
            opening.append(time.perf_counter() - started)
        one, two = _one_and_two(directory, events, effort)
    return {
        "workload": workload.name,
        "size": size,
        "save_s": round(saving, 3),
        "first_match_s": round(statistics.median(opening), 4),
        "one_thread": round(one),
        "two_threads": round(two),
        "speedup": round(two / one, 3),
    }


def _one_and_two(directory: str, events: pa.Table, effort: Effort) -> tuple[float, float]:
    """Return the events a second of one call over one thread and over two, asked in turn so that both meet the same
    disturbances."""
    answers = [batch_answer(Matcher.load(directory, threads=threads), events) for threads in (1, 2)]
    rows = rate(answers[0], events.num_rows, effort).rows
    answers[1](rows)
    times: tuple[list[float], list[float]] = [], []
    for _ in range(effort.repetitions):
        for answer, taken in zip(answers, times, strict=True):
            started = time.perf_counter()
            answer(rows)
            taken.append(time.perf_counter() - started)
    one, two = (rows / statistics.median(taken) for taken in times)
    return one, two


def memory_by_leaves(size: int, leaves: tuple[int, ...] = (10, 20, 40)) -> list[dict[str, Any]]:
    """Return what a wide expression takes by the number of its conditions, and how many boxes it is indexed as.

    Up to 50,000 boxes the index remembers 200 bytes of each, to find equal ones, beyond that of one in 256 (see
    `index.shared`): only sizes on the same side of that can be compared.
    """
    found = []
    for count in leaves:
        matcher = load(ADS.of(count), size, "adaptive").matcher
        whole, index = bytes_each(matcher)
        boxes = matcher.stats()["index"]["boxes"] / size
        found.append(
            {
                "leaves": count,
                "size": size,
                "bytes_each": round(whole),
                "index_bytes_each": round(index),
                "bytes_a_leaf": round(whole / count, 1),
                "boxes_each": round(boxes, 2),
            }
        )
    return found
