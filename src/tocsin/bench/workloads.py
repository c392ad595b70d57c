"""Workloads: seeded subscriptions and events, as arrays for an index, as Spark SQL and Arrow for a matcher.

Both levels come from the same draw: the pairs that an index finds on `Workload.boxes` and `Workload.queries`
are the pairs that a matcher must find on `Workload.expressions` and `Workload.events`. Everything is drawn in
chunks with a seed each: a workload of ten subscriptions is the beginning of the one of ten million; memory
stays near the size of the result.

The code of an integer is the integer; the code of a double is its place in the order of all doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.bench.draws import (
    TICKS,
    Predicate,
    Values,
    clusters,
    even_events,
    fraction_events,
    intervals,
    odd_predicates,
    schema_events,
    schema_predicates,
    uniform_events,
    zipf_predicates,
    zipf_ranks,
)
from tocsin.errors import TocsinError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes, Queries
from tocsin.index.boxes import Int32s, Int64s

CHUNK = 65_536
"""How many subscriptions are drawn from one seed."""

EVENT_CHUNK = 4_096
"""How many events are drawn from one seed."""


@dataclass(frozen=True)
class Workload:
    """Subscriptions and events of one kind, repeatable by their seed.

    ``predicates(random, n)`` draws the predicates of ``n`` subscriptions; those of one subscription are on
    different axes. ``values(random, rows)`` draws events as int64 or float64[axes, rows]. ``fractions`` says
    that axes are doubles and that predicates are in ticks of 1/1,000,000.

    >>> w0 = WORKLOADS["W0"]
    >>> w0.expressions(1)["expression"][0].as_py()
    'a0 = 9 AND a1 = 34 AND a8 = 13 AND a31 = 1 AND a14 = 15'
    """

    name: str
    about: str
    axes: int
    predicates: Callable[[np.random.Generator, int], list[Predicate]]
    values: Callable[[np.random.Generator, int], Values]
    fractions: bool = False
    seed: int = 4089
    has_arrays: ClassVar[bool] = True
    """Whether there are `boxes` and `queries`; else only expressions and events."""

    def chunks(self, n: int) -> Iterator[tuple[Int32s, Boxes]]:
        """Yield the numbers and boxes of ``n`` subscriptions, a chunk at a time."""
        for first, size, random in seeded(self.seed, 0, n, CHUNK):
            drawn = self.predicates(random, CHUNK)
            axis, low, high = (np.stack(side, axis=1)[:size] for side in zip(*drawn, strict=True))
            order = np.argsort(axis, axis=1)
            axis, low, high = (np.take_along_axis(side, order, axis=1) for side in (axis, low, high))
            if self.fractions:
                low, high = _tick_codes(low), _tick_codes(high)
            offsets = np.arange(size + 1, dtype=np.int64) * axis.shape[1]
            boxes = Boxes(offsets, axis.ravel().astype(np.int32), low.ravel(), high.ravel())
            yield np.arange(first, first + size, dtype=np.int32), boxes

    def boxes(self, n: int) -> tuple[Int32s, Boxes]:
        """Return the numbers (0 to ``n - 1``) and boxes of ``n`` subscriptions."""
        each = len(self.predicates(np.random.default_rng(0), 1))
        axis = np.empty(n * each, np.int32)
        low, high = np.empty(n * each, np.int64), np.empty(n * each, np.int64)
        for numbers, boxes in self.chunks(n):
            there = slice(int(numbers[0]) * each, int(numbers[-1] + 1) * each)
            axis[there], low[there], high[there] = boxes.axis, boxes.low, boxes.high
        return np.arange(n, dtype=np.int32), Boxes(np.arange(n + 1, dtype=np.int64) * each, axis, low, high)

    def queries(self, rows: int) -> Queries:
        """Return ``rows`` events as points."""
        values = self._values(rows)
        return Queries.points(double_codes(values) if values.dtype == np.float64 else values)  # type: ignore[arg-type]

    def expressions(self, n: int) -> pa.Table:
        """Return ``n`` subscriptions as an Arrow table of ``id`` and ``expression``."""
        names = pa.array([f"a{axis}" for axis in range(self.axes)])
        texts = []
        for _, size, random in seeded(self.seed, 0, n, CHUNK):
            clauses = [
                _clause(names.take(pa.array(axis[:size])), low[:size], high[:size], self.fractions)
                for axis, low, high in self.predicates(random, CHUNK)
            ]
            texts.append(pc.binary_join_element_wise(*clauses, " AND "))
        return pa.table({"id": pa.array(np.arange(n)), "expression": pa.chunked_array(texts, pa.string())})

    def events(self, rows: int) -> pa.Table:
        """Return ``rows`` events as an Arrow table of columns ``a0``, ``a1``, …; a missing value is null."""
        values = self._values(rows)
        return pa.table({f"a{axis}": pa.array(line, mask=line == NULL) for axis, line in enumerate(values)})

    def _values(self, rows: int) -> Values:
        parts = [
            self.values(random, EVENT_CHUNK)[:, :size] for _, size, random in seeded(self.seed, 1, rows, EVENT_CHUNK)
        ]
        parts = parts or [self.values(np.random.default_rng(0), 1)[:, :0]]
        values: Values = np.ascontiguousarray(np.concatenate(parts, axis=1))  # type: ignore[assignment]
        return values


def double_codes(values: npt.NDArray[np.float64]) -> Int64s:
    """Return the codes of doubles: integers in the same order, both zeros the same.

    >>> double_codes(np.array([-1.5, -0.0, 0.0, 5e-324])).tolist()
    [-4609434218613702656, 0, 0, 1]
    """
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.where(bits < 0, -(bits & HIGHEST), bits)


def _tick_codes(ticks: Int64s) -> Int64s:
    """Return the codes of bounds in ticks; open ends stay open."""
    codes = double_codes(ticks / TICKS)
    return np.where((ticks == LOWEST) | (ticks == HIGHEST), ticks, codes)


def seeded(seed: int, stream: int, n: int, size: int) -> Iterator[tuple[int, int, np.random.Generator]]:
    """Yield (first, how many, generator) for each chunk of ``size`` that ``n`` items need."""
    for first in range(0, n, size):
        yield first, min(size, n - first), np.random.default_rng([seed, stream, first])


def _clause(names: pa.Array, low: Int64s, high: Int64s, fractions: bool) -> pa.Array:
    """Return the text of one predicate of each subscription; all of them have the same kind of bounds."""
    if np.array_equal(low, high):
        return pc.binary_join_element_wise(names, _text(low, fractions), " = ")
    if (high == HIGHEST).all():
        below = low if fractions else low - 1
        return pc.binary_join_element_wise(names, _text(below, fractions), " >= " if fractions else " > ")
    if (low == LOWEST).all():
        above = high if fractions else high + 1
        return pc.binary_join_element_wise(names, _text(above, fractions), " <= " if fractions else " < ")
    ends = pc.binary_join_element_wise(_text(low, fractions), _text(high, fractions), " AND ")
    return pc.binary_join_element_wise(names, ends, " BETWEEN ")


def _text(numbers: Int64s, fractions: bool) -> pa.Array:
    """Return numbers as literals; ticks as decimals below one."""
    plain = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise("0.", pc.utf8_lpad(plain, 6, "0"), "") if fractions else plain


@dataclass(frozen=True)
class TextWorkload(Workload):
    """Subscriptions on text: equality, ``IN``, prefix and suffix, each on its column. It has no array level.

    >>> WORKLOADS["text"].expressions(1)["expression"][0].as_py()
    "a0 = 'fe' AND a1 IN ('re', 'le', 'ba') AND a2 LIKE 'le%' AND a3 LIKE '%pe'"
    """

    has_arrays: ClassVar[bool] = False

    def chunks(self, n: int) -> Iterator[tuple[Int32s, Boxes]]:
        """Refuse: the codes of text belong to a space."""
        raise TocsinError("the workload 'text' has no array level; use its expressions and events")

    def boxes(self, n: int) -> tuple[Int32s, Boxes]:
        """Refuse: the codes of text belong to a space."""
        raise TocsinError("the workload 'text' has no array level; use its expressions and events")

    def queries(self, rows: int) -> Queries:
        """Refuse: the codes of text belong to a space."""
        raise TocsinError("the workload 'text' has no array level; use its expressions and events")

    def expressions(self, n: int) -> pa.Table:
        """Return ``n`` subscriptions as an Arrow table of ``id`` and ``expression``."""
        texts = []
        for _, size, random in seeded(self.seed, 0, n, CHUNK):
            word = [_words(random, CHUNK, 1)[:size] for _ in range(6)]
            parts = ["a0 = '", word[0], "' AND a1 IN ('", word[1], "', '", word[2], "', '", word[3]]
            parts += ["') AND a2 LIKE '", word[4], "%' AND a3 LIKE '%", word[5], "'", ""]
            texts.append(pc.binary_join_element_wise(*parts))
        return pa.table({"id": pa.array(np.arange(n)), "expression": pa.chunked_array(texts, pa.string())})

    def events(self, rows: int) -> pa.Table:
        """Return ``rows`` events: two short words and two of three syllables each."""
        parts = [
            pa.table({f"a{axis}": _words(random, EVENT_CHUNK, count)[:size] for axis, count in enumerate((1, 1, 3, 3))})
            for _, size, random in seeded(self.seed, 1, rows, EVENT_CHUNK)
        ]
        empty = pa.table({f"a{axis}": pa.array([], pa.string()) for axis in range(4)})
        return pa.concat_tables([empty, *parts])


def _words(random: np.random.Generator, n: int, syllables: int) -> pa.Array:
    """Return words of so many syllables, out of thirty."""
    sounds = pa.array([consonant + vowel for consonant in "bdfgklmnpr" for vowel in "aeo"])
    spoken = [sounds.take(pa.array(random.integers(len(sounds), size=n))) for _ in range(syllables)]
    return pc.binary_join_element_wise(*spoken, "")


_W0 = clusters(2, 3)
_EVENTS = uniform_events(32, 35)

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("W0", "clusters paper: 5 equalities, 2 of them on fixed axes", 32, _W0, _EVENTS),
        # The printed n_Pfix = 2 of W1 lacks its operator; 2 equalities, 1 '>' and 1 free equality make its 4.
        Workload("W1", "clusters paper: 3 equalities and 1 fixed '>'", 32, clusters(2, 1, above=1), _EVENTS),
        Workload("W2", "clusters paper: 3 equalities, 5 '<', 1 '>'", 32, clusters(2, 1, below=5, above=1), _EVENTS),
        Workload("R", "5 intervals of width 0.3", 20, intervals(20, 5, 300_000), fraction_events(20), True),
        Workload(
            "zipf",
            "3 equalities and 1 '>', axes and values by Zipf's law",
            64,
            zipf_predicates,
            lambda random, rows: zipf_ranks(random, (64, rows), 1000),
        ),
        Workload("schemas", "40 kinds of event, each with 20 of 400 axes", 400, schema_predicates, schema_events),
        Workload("wide", "10 intervals of width 0.5", 20, intervals(20, 10, 500_000), fraction_events(20), True),
        Workload("none", "5 equalities whose sum is odd; in events it is even", 16, odd_predicates, even_events),
        Workload(
            "tenth",
            "3 intervals; one in ten matches",
            20,
            intervals(20, 3, 464_159),
            fraction_events(20),
            True,
        ),
        TextWorkload("text", "equality, IN, prefix, suffix", 4, _W0, _EVENTS),
    )
}
"""Every workload by name."""

DRIFTS: dict[str, tuple[Workload, Workload]] = {
    "schema": (
        Workload("schema-before", "1 fixed and 4 free on axes 0-15", 32, clusters(1, 4, pool=range(16)), _EVENTS),
        Workload(
            "schema-after",
            "the same on axes 16-31",
            32,
            clusters(1, 4, pool=range(16, 32)),
            _EVENTS,
            seed=4090,
        ),
    ),
    "skew": (
        Workload("skew-before", "W0", 32, _W0, _EVENTS),
        Workload(
            "skew-after",
            "W0, axis 0 in 1..2",
            32,
            clusters(2, 3, first_top=2),
            uniform_events(32, 35, 2),
            seed=4090,
        ),
    ),
}
"""The two drifts of the clusters paper, section 6.2.3: what there is before, and what it becomes."""
