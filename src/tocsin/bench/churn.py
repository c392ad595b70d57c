"""Matching beside change: subscriptions come and go at a rate in one thread while another matches."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.bench.loaded import add_boxes, load
from tocsin.bench.workloads import CHUNK, Workload
from tocsin.index.boxes import Boxes
from tocsin.matcher import Matcher

ROWS = 4_096
"""Events in a call that matches."""

TICK = 0.01
"""Seconds between two changes: each inserts and removes as many as are due."""


@dataclass(frozen=True)
class Churn:
    """What came of it. Calls are in milliseconds; ``kept`` is the rate beside change over the rate without."""

    workload: str
    size: int
    wanted: int
    by_expressions: bool
    inserted: float
    removed: float
    before: float
    beside: float
    kept: float
    longest_change: float
    longest_match: float
    median_match: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}


def churn(
    workload: Workload, size: int, rate: int = 50_000, seconds: float = 5.0, by_expressions: bool = False
) -> Churn:
    """Insert and remove ``rate`` subscriptions a second each, for so many seconds, beside a thread that matches.

    By expressions, what comes is text, read in the same thread; otherwise it is boxes, as after reading.
    """
    more = int(rate * seconds) + CHUNK
    matcher = load(workload, size, "adaptive", alone=True).matcher
    events = workload.events(ROWS)
    changes = _Changes(matcher, workload, size, more, by_expressions)
    changes.step(max(1, rate // 100))  # compiles what changing needs
    matcher.match_batch(events)
    before = _matching(matcher, events, seconds / 2)
    calls: list[float] = []
    stop = threading.Event()
    worker = threading.Thread(target=_keep_changing, args=(changes, rate, calls, stop))
    changes.done = 0
    worker.start()
    started = time.perf_counter()
    beside = _matching(matcher, events, seconds)
    elapsed = time.perf_counter() - started
    done = changes.done
    stop.set()
    worker.join()
    return Churn(
        workload=workload.name,
        size=size,
        wanted=rate,
        by_expressions=by_expressions,
        inserted=done / elapsed,
        removed=done / elapsed,
        before=ROWS / float(np.mean(before)),
        beside=ROWS / float(np.mean(beside)),
        kept=float(np.mean(before) / np.mean(beside)),
        longest_change=1e3 * max(calls, default=0.0),
        longest_match=1e3 * max(beside),
        median_match=1e3 * float(np.median(beside)),
    )


class _Changes:
    """The subscriptions that come, and the oldest, which go."""

    def __init__(self, matcher: Matcher, workload: Workload, size: int, more: int, by_expressions: bool) -> None:
        self.matcher = matcher
        self.done = 0
        self._oldest, self._newest, self._first = 0, size, size
        expressions = workload.expressions(size + more).slice(size)
        self._ids, self._texts = (expressions[name].combine_chunks() for name in ("id", "expression"))
        self._boxes = None if by_expressions else workload.boxes(size + more)[1]

    def step(self, count: int) -> list[float]:
        """Insert so many, remove as many; return how long each call took."""
        place = self._newest - self._first
        count = min(count, len(self._ids) - place)
        if not count:
            return []
        ids, texts = self._ids.slice(place, count), self._texts.slice(place, count)
        gone = pa.array(np.arange(self._oldest, self._oldest + count))
        started = time.perf_counter()
        if self._boxes is None:
            self.matcher.subscribe_many(pa.table({"id": ids, "expression": texts}))
        else:
            add_boxes(self.matcher, ids, texts, _slice(self._boxes, self._newest, count))
        between = time.perf_counter()
        self.matcher.unsubscribe_many(gone)
        ended = time.perf_counter()
        self._oldest += count
        self._newest += count
        self.done += count
        return [between - started, ended - between]


def _keep_changing(changes: _Changes, rate: int, calls: list[float], stop: threading.Event) -> None:
    """Change as much as is due at each tick; what is behind is made up for, up to a tenth of a second's worth."""
    started = time.perf_counter()
    due_from = 0.0
    while not stop.is_set():
        now = time.perf_counter() - started
        due = int((now - due_from) * rate)
        if due:
            calls += changes.step(min(due, rate // 10))
            due_from = now
        stop.wait(TICK)


def _matching(matcher: Matcher, events: pa.Table, seconds: float) -> list[float]:
    """Match again and again for so many seconds; return how long each call took."""
    times: list[float] = []
    deadline = time.perf_counter() + seconds
    while not times or time.perf_counter() < deadline:
        started = time.perf_counter()
        matcher.match_batch(events)
        times.append(time.perf_counter() - started)
    return times


def _slice(boxes: Boxes, first: int, count: int) -> Boxes:
    begin, end = boxes.offsets[first], boxes.offsets[first + count]
    return Boxes(
        boxes.offsets[first : first + count + 1] - begin,
        boxes.axis[begin:end],
        boxes.low[begin:end],
        boxes.high[begin:end],
    )
