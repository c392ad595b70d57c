"""Matching beside change: subscriptions come and go at a rate in one thread while another matches.

Both go through the public methods of one matcher: `subscribe_many` of a table of expressions and `unsubscribe_many`
of as many ids, a call of each every hundredth of a second; `match_batch` of a table of events, one call after
another, other events each time. Merges run in a third thread. So on two cores matching has one, and changing and
merging share the other: where those two need more than that, or hold Python's lock while matching waits for it,
matching loses.

It is compared with a second matcher of the same subscriptions, which never change: so what is new and not yet merged,
and what was removed, count as loss too, not only what goes on at that moment.

``kept`` is by the clock: what all of that leaves. The rest says where the loss is, and stays true on a busy machine:
``kept_by_processor`` is of the matching thread's own processor time an event, and so of larger data structures and
colder caches alone; ``changing`` and ``merging`` are how many cores those would take at the full rate; ``longest_wait``
is how long a change had to wait, at most, for a merge to let go of the lock that both take, while ``longest_change`` is
the whole call, and ``longest_change_beside`` that of a call during which a merge ran. The same of matches.
What loading left behind is collected before anything is measured.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.bench.loaded import add_boxes, load
from tocsin.bench.workloads import CHUNK, Workload
from tocsin.index.adaptive import MERGING, MOST
from tocsin.index.boxes import Boxes
from tocsin.matcher import Matcher

ROWS = 4_096
"""Events in a call that matches."""

TABLES = 64
"""So many calls match other events each, then those come again. What a single table of events touches would stay in the
cache from call to call as long as nothing else goes on; no stream of events is like that."""

TICK = 0.01
"""Seconds between two changes: each inserts and removes as many as are due."""


ROUNDS = 5
"""How often matching alone and matching beside change take turns; figures are the medians of that many comparisons. The
speed of a shared machine changes within seconds, so that what happens beside change is compared only with what happens
just before and just after."""

SINGLES = 500
"""So many subscriptions come and go singly, for what a single call costs."""


@dataclass(frozen=True)
class Churn:
    """What came of it. Calls are in milliseconds of the clock, single ones in microseconds of processor time;
    ``kept`` is the rate beside change over the rate without; ``changing`` and ``merging`` are in cores."""

    workload: str
    size: int
    wanted: int
    by_expressions: bool
    inserted: float
    removed: float
    before: float
    beside: float
    kept: float
    kept_by_processor: float
    changing: float
    merging: float
    merges: int
    longest_change: float
    longest_change_beside: float
    longest_wait: float
    longest_match: float
    longest_match_beside: float
    median_match: float
    subscribe_us: float
    unsubscribe_us: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}


def churn(
    workload: Workload, size: int, rate: int = 50_000, seconds: float = 5.0, by_expressions: bool = True
) -> Churn:
    """Insert and remove ``rate`` subscriptions a second each, for so many seconds, beside a thread that matches.

    By expressions, what comes is text, read in the same thread; otherwise it is boxes, as after reading.
    """
    step = max(1, round(rate * TICK))
    more = int(rate * seconds) + CHUNK + SINGLES + 2 * MOST + step
    matcher, still = (load(workload, size, "adaptive", alone=True).matcher for _ in range(2))
    events = tables_of(workload)
    engine: Any = matcher._state.index
    watched = engine.engine._changing = _Watched(engine.engine._changing)
    changes = _Changes(matcher, workload, size, more, by_expressions)
    while changes.done < min(2 * MOST, size // 4) and not (merges := _merges(matcher)):
        changes.step(step)  # until what changing needs is compiled, merges included
    for one in (matcher, still):
        one.match_batch(next(events))
    merges, changes.done, changes.spent = _merges(matcher), 0, 0.0
    calls: list[Call] = []
    watched.longest = 0.0
    gc.collect()  # otherwise Python does it at some moment of the run, which takes it 50 ms
    rounds = [_round(still, events, changes, rate, seconds / ROUNDS, calls) for _ in range(ROUNDS)]
    compared = compare([(one.alone, one.beside) for one in rounds])
    matches = [call for one in rounds for call in one.beside.calls]
    elapsed, others = sum(one.elapsed for one in rounds), sum(one.others for one in rounds)
    done, per_second = max(1, changes.done), rate / max(1, changes.done)
    merging = others - changes.spent
    merges = _merges(matcher) - merges
    singles = changes.singly(SINGLES)
    return Churn(
        workload=workload.name,
        size=size,
        wanted=rate,
        by_expressions=by_expressions,
        inserted=done / elapsed,
        removed=done / elapsed,
        before=compared.before,
        beside=compared.beside,
        kept=compared.kept,
        kept_by_processor=compared.kept_by_processor,
        changing=changes.spent * per_second,
        merging=merging * per_second,
        merges=merges,
        longest_change=longest(calls),
        longest_change_beside=longest(call for call in calls if call.merging),
        longest_wait=1e3 * watched.longest,
        longest_match=longest(matches),
        longest_match_beside=longest(call for call in matches if call.merging),
        median_match=1e3 * float(np.median([call.took for call in matches])),
        subscribe_us=1e6 * singles[0],
        unsubscribe_us=1e6 * singles[1],
    )


class Call(NamedTuple):
    """How long a call took, in seconds, and whether a merge ran when it began or ended."""

    took: float
    merging: bool


def longest(calls: Iterable[Call]) -> float:
    """Return how long the longest call took, in milliseconds.

    >>> longest([Call(0.25, False), Call(0.5, True)])
    500.0
    """
    return 1e3 * max((call.took for call in calls), default=0.0)


class Compared(NamedTuple):
    """Matching alone and beside change: events a second, and what is kept by the clock and by processor time."""

    before: float
    beside: float
    kept: float
    kept_by_processor: float


def compare(rounds: Sequence[tuple[Times, Times]]) -> Compared:
    """Return what rounds of matching alone and beside change tell, each figure the median of its rounds.

    >>> alone, beside = Times([Call(0.5, False)], [0.5]), Times([Call(1.0, True)] * 2, [0.5, 0.75])
    >>> compare([(alone, beside)])
    Compared(before=8192.0, beside=4096.0, kept=0.5, kept_by_processor=0.8)
    """
    clock = np.array([[np.mean([call.took for call in times.calls]) for times in one] for one in rounds])
    processor = np.array([[np.mean(times.processor) for times in one] for one in rounds])
    before, beside = np.median(ROWS / clock, axis=0).tolist()
    return Compared(
        before,
        beside,
        float(np.median(clock[:, 0] / clock[:, 1])),
        float(np.median(processor[:, 0] / processor[:, 1])),
    )


class _Round(NamedTuple):
    """Calls that matched alone, and beside change; how long the latter went on, and what other threads used then."""

    alone: Times
    beside: Times
    elapsed: float
    others: float


def tables_of(workload: Workload) -> Iterator[pa.Table]:
    """Yield tables of events, again and again, each of ROWS of them."""
    events = workload.events(TABLES * ROWS)
    return cycle([events.slice(begin, ROWS) for begin in range(0, len(events), ROWS)])


def _round(
    still: Matcher, events: Iterator[pa.Table], changes: _Changes, rate: int, seconds: float, calls: list[Call]
) -> _Round:
    """Match for so many seconds beside change; before it and after it, half as long in all, match what never changes,
    with nothing else going on."""
    before = _undisturbed(still, events, changes, seconds / 4)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        started, spent = time.perf_counter(), time.process_time() - time.thread_time()
        changing = pool.submit(_keep_changing, changes, rate, calls, stop)
        try:
            beside = _matching(changes.matcher, events, seconds)
            elapsed = time.perf_counter() - started
        finally:
            stop.set()
        changing.result()
    others = time.process_time() - time.thread_time() - spent
    after = _undisturbed(still, events, changes, seconds / 4)
    alone = Times(before.calls + after.calls, before.processor + after.processor)
    return _Round(alone, beside, elapsed, others)


def _undisturbed(still: Matcher, events: Iterator[pa.Table], changes: _Changes, seconds: float) -> Times:
    """Match what never changes, once the other matcher has no merge under way."""
    while _is_merging(changes.matcher):
        time.sleep(TICK)
    return _matching(still, events, seconds)


def _is_merging(matcher: Matcher) -> bool:
    engine: Any = matcher._state.index
    return bool(engine._is_merging())


def _merges(matcher: Matcher) -> int:
    return int(matcher.stats()["index"]["merges"])


class _Watched:
    """A lock that knows how long anyone but a merge has waited for it, at most."""

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self.longest = 0.0

    def __enter__(self) -> None:
        began = time.perf_counter()
        self._lock.__enter__()
        if threading.current_thread().name != MERGING:
            self.longest = max(self.longest, time.perf_counter() - began)

    def __exit__(self, *raised: Any) -> None:
        self._lock.__exit__(*raised)


class _Changes:
    """The subscriptions that come, of the same workload by another seed, and the oldest, which go."""

    def __init__(self, matcher: Matcher, workload: Workload, size: int, more: int, by_expressions: bool) -> None:
        self.matcher = matcher
        self.done = 0
        self.spent = 0.0
        self._oldest, self._newest, self._first = 0, size, size
        coming = replace(workload, seed=workload.seed + 1)
        self._ids = pa.array(np.arange(size, size + more))
        self._texts = coming.expressions(more)["expression"].combine_chunks()
        self._boxes = None if by_expressions else coming.boxes(more)[1]

    def step(self, count: int) -> list[Call]:
        """Insert so many, remove as many; return both calls."""
        place = self._newest - self._first
        count = min(count, len(self._ids) - place)
        if not count:
            return []
        ids, texts = self._ids.slice(place, count), self._texts.slice(place, count)
        gone = pa.array(np.arange(self._oldest, self._oldest + count))
        merging = _is_merging(self.matcher)
        began, started = time.thread_time(), time.perf_counter()
        if self._boxes is None:
            self.matcher.subscribe_many(pa.table({"id": ids, "expression": texts}))
        else:
            add_boxes(self.matcher, ids, texts, _slice(self._boxes, place, count))
        between = time.perf_counter()
        self.matcher.unsubscribe_many(gone)
        ended = time.perf_counter()
        self.spent += time.thread_time() - began
        self._oldest += count
        self._newest += count
        self.done += count
        merging = merging or _is_merging(self.matcher)
        return [Call(between - started, merging), Call(ended - between, merging)]

    def singly(self, count: int) -> tuple[float, float]:
        """Subscribe so many one by one, and unsubscribe them; return the median processor time of each."""
        place = self._newest - self._first
        ids, texts = (column.slice(place, count).to_pylist() for column in (self._ids, self._texts))
        calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            *((self.matcher.subscribe, pair) for pair in zip(ids, texts, strict=True)),
            *((self.matcher.unsubscribe, (id,)) for id in ids),
        ]
        spent = []
        for call, given in calls:
            began = time.thread_time()
            call(*given)
            spent.append(time.thread_time() - began)
        return float(np.median(spent[:count])), float(np.median(spent[count:]))


def _keep_changing(changes: _Changes, rate: int, calls: list[Call], stop: threading.Event) -> None:
    """Change as much as is due at each tick; what is behind is made up for, up to a tenth of a second's worth."""
    started = time.perf_counter()
    due_from = -TICK
    while True:
        now = time.perf_counter() - started
        due = max(1, int((now - due_from) * rate))
        calls += changes.step(min(due, max(1, rate // 10)))
        due_from = now
        if stop.wait(TICK):
            return


class Times(NamedTuple):
    """Calls, and how much of its thread's processor time each took."""

    calls: list[Call]
    processor: list[float]


def _matching(matcher: Matcher, events: Iterator[pa.Table], seconds: float) -> Times:
    """Match one table of events after another for so many seconds."""
    times = Times([], [])
    deadline = time.perf_counter() + seconds
    while not times.calls or time.perf_counter() < deadline:
        merging, some = _is_merging(matcher), next(events)
        began, started = time.thread_time(), time.perf_counter()
        matcher.match_batch(some)
        took = time.perf_counter() - started
        times.processor.append(time.thread_time() - began)
        times.calls.append(Call(took, merging or _is_merging(matcher)))
    return times


def _slice(boxes: Boxes, first: int, count: int) -> Boxes:
    begin, end = boxes.offsets[first], boxes.offsets[first + count]
    return Boxes(
        boxes.offsets[first : first + count + 1] - begin,
        boxes.axis[begin:end],
        boxes.low[begin:end],
        boxes.high[begin:end],
    )
