"""The workload `boolean`: wide expressions as advertisers write them, AND, OR and NOT mixed.

An audience is a place, then groups: alternatives of two or three conditions, exclusions, single conditions. There are
`SHAPES` shapes, each of 10 to 40 conditions; a subscription is a shape with constants of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.bench.draws import Values
from tocsin.bench.workloads import CHUNK, EVENT_CHUNK, TextWorkload, seeded

DOMAINS = (200, 50, 24, 100, 8, 30, 1000, 500, 12, 7, 300, 60, 20, 90, 40, 400)
"""How many values each axis has, from 1 on: place, language, hour, age, device, …"""

SHAPES = 100
"""How many shapes there are."""

Piece = str | tuple[int, int]
"""A text, or a hole for a constant: its axis, and what it adds to the constant before it (0: it is drawn anew)."""


@dataclass(frozen=True)
class BooleanWorkload(TextWorkload):
    """Audiences of ``least`` to ``most`` conditions each. It has no array level.

    >>> ADS.expressions(1)["expression"][0].as_py()[:50]
    'a0 = 147 AND NOT (a6 BETWEEN 175 AND 375 OR a8 = 8'
    """

    least: int = 10
    most: int = 40

    def of(self, conditions: int) -> BooleanWorkload:
        """Return the workload whose expressions all have so many conditions."""
        return replace(self, least=conditions, most=conditions)

    def expressions(self, n: int) -> pa.Table:
        """Return ``n`` subscriptions as an Arrow table of ``id`` and ``expression``."""
        texts = []
        for _, size, random in seeded(self.seed, 0, n, CHUNK):
            shape_of = random.integers(SHAPES, size=CHUNK)
            written = [
                _written(shape, int((shape_of == number).sum()), random)
                for number, shape in enumerate(shapes(self.least, self.most))
            ]
            place = np.empty(CHUNK, np.int64)
            place[np.argsort(shape_of, kind="stable")] = np.arange(CHUNK)
            texts.append(pa.concat_arrays(written).take(pa.array(place[:size])))
        return pa.table({"id": pa.array(np.arange(n)), "expression": pa.chunked_array(texts, pa.string())})

    def events(self, rows: int) -> pa.Table:
        """Return ``rows`` events; they carry every axis."""
        parts = [
            self.values(random, EVENT_CHUNK)[:, :size] for _, size, random in seeded(self.seed, 1, rows, EVENT_CHUNK)
        ]
        values = np.concatenate([np.empty((len(DOMAINS), 0), np.int64), *parts], axis=1)
        return pa.table({f"a{axis}": pa.array(line) for axis, line in enumerate(values)})


@cache
def shapes(least: int, most: int) -> tuple[tuple[Piece, ...], ...]:
    """Return the shapes of expressions with so many conditions; all but one in ten begin with a place."""
    random = np.random.default_rng([4089, least, most])
    return tuple(
        tuple(_shape(random, int(random.integers(least, most, endpoint=True)), number % 10 != 9))
        for number in range(SHAPES)
    )


def _shape(random: np.random.Generator, conditions: int, placed: bool) -> Iterator[Piece]:
    """Yield the pieces of a conjunction of groups that has so many conditions."""
    if placed:
        yield from ("a0 = ", (0, 0))
    left, first = conditions - placed, not placed
    while left:
        size = min(left, int(random.integers(1, 7)))
        left -= size
        yield "" if first else " AND "
        first = False
        if size == 1:
            yield from _condition(random, wide=True)
            continue
        excluded = random.random() < 0.3
        yield "NOT (" if excluded else "("
        for place in range(size):
            if place:
                # Within alternatives, one in three is a conjunction of two conditions.
                yield " AND " if not excluded and place % 3 == 2 else " OR "
            yield from _condition(random, wide=not excluded)
        yield ")"


def _condition(random: np.random.Generator, wide: bool) -> Iterator[Piece]:
    """Yield one condition: of those that half the events satisfy, or of those that few do."""
    axis = int(random.integers(1, len(DOMAINS)))
    name, size = f"a{axis}", DOMAINS[axis]
    kind = int(random.integers(5))
    if kind == 0 and wide:
        yield from (f"{name} BETWEEN ", (axis, 0), " AND ", (axis, size // 2))
    elif kind == 1 and wide:
        yield from (f"{name} <> ", (axis, 0))
    elif kind == 2 and wide:
        yield from (f"NOT {name} > ", (axis, 0))
    elif kind == 3:
        yield from (f"{name} IN (", (axis, 0), ", ", (axis, 0), ", ", (axis, 0), ")")
    elif kind == 4:
        yield from (f"{name} BETWEEN ", (axis, 0), " AND ", (axis, size // 5))
    else:
        yield from (f"{name} = ", (axis, 0))


def _written(shape: tuple[Piece, ...], rows: int, random: np.random.Generator) -> pa.Array:
    """Return a shape with its holes filled, so many times."""
    drawn, parts = np.empty(0, np.int64), []
    for piece in shape:
        if isinstance(piece, str):
            parts.append(pa.scalar(piece))
            continue
        axis, more = piece
        drawn = drawn + more if more else random.integers(1, DOMAINS[axis], rows, endpoint=True)
        parts.append(pa.array(drawn).cast(pa.string()))
    return pc.binary_join_element_wise(*parts, "")


def _events(random: np.random.Generator, rows: int) -> Values:
    return np.stack([random.integers(1, size, rows, endpoint=True) for size in DOMAINS])


ADS = BooleanWorkload("boolean", "10 to 40 conditions, AND, OR and NOT mixed", len(DOMAINS), lambda *_: [], _events)
"""The workload of advertisers."""
