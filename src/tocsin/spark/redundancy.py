"""How redundant a table of subscriptions is: which of them do the work of all, and for how many each stands.

Each task finds the roots among the subscriptions of its partition; what they cover is dropped there. The roots of all
partitions, far fewer, are compared once more in one task. That is exact: what covers a subscription is covered by a
root of its own partition. Codes of texts are a task's own, so between the steps subscriptions travel as expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, types

from tocsin.covering import RelationGraph, forest
from tocsin.errors import MissingColumnError, SparkError
from tocsin.matcher import Matcher, Problem
from tocsin.matcher.relations import relation_graph
from tocsin.space import Space
from tocsin.space.space import nearest_of
from tocsin.spark.failures import Guarded

STANDS_FOR = "stands_for"
"""The column that says for how many subscriptions a root stands, itself among them."""


class Roots(NamedTuple):
    """Subscriptions that no other covers: their ids, their expressions, and for how many each stands."""

    ids: list[object]
    expressions: list[str]
    stands_for: list[int]


def roots_of(space: Space, ids: list[object], expressions: list[str], weights: list[int] | None = None) -> Roots:
    """Return the roots of some subscriptions, such as those of a shard: an event that satisfies none of them satisfies
    none of the others, so that a matcher of the roots is a first filter of the shard.

    ``weights``: for how many each stands already. Expressions that cannot be read, and those that can never match, are
    left out.

    >>> from tocsin import Number
    >>> roots_of(Space({"price": Number()}), ["a", "b", "c"], ["price < 9", "price < 5", "price < 5"])
    Roots(ids=['a'], expressions=['price < 9'], stands_for=[3])
    """
    matcher = Matcher(space, "scan")
    problems: list[Problem] = []
    places = pa.table({"id": list(range(len(ids))), "expression": pa.array(expressions, pa.string())})
    matcher.subscribe_many(places, problems=problems)
    graph = relation_graph(matcher, RelationGraph())
    found = Roots([], [], [])
    for tree in forest(graph):
        root = int(tree.owners[0])  # type: ignore[call-overload]
        found.ids.append(ids[root])
        found.expressions.append(expressions[root])
        below = [int(owner) for _, one in tree.walk() for owner in one.owners]  # type: ignore[call-overload]
        found.stands_for.append(len(below) if weights is None else sum(weights[owner] for owner in below))
    return found


def redundancy(subscriptions: DataFrame, space: Space) -> DataFrame:
    """Return the subscriptions that no other covers: ``id``, ``expression``, and how many each ``stands_for``.

    ``subscriptions`` has columns ``id`` and ``expression``. The rows are as many as a broker would forward; their
    ``stands_for`` add up to all subscriptions that can be read and can match. Of equal ones one is named.
    """
    for name in ("id", "expression"):
        if name not in subscriptions.columns:
            advice = nearest_of(name, subscriptions.columns)
            raise MissingColumnError(f"subscriptions need a column {name}; {advice}")
    if subscriptions.isStreaming:
        raise SparkError("how redundant subscriptions are is asked of a table, not of a stream")
    given = subscriptions.select("id", "expression").where("id IS NOT NULL AND expression IS NOT NULL")
    schema = types.StructType([*given.schema.fields, types.StructField(STANDS_FOR, types.LongType())])
    finding = Guarded(FindRoots(space))
    return given.mapInArrow(finding, schema).coalesce(1).mapInArrow(finding, schema)


class FindRoots:
    """What a task does: all rows of its partition in, the roots out."""

    def __init__(self, space: Space) -> None:
        self._space = space.to_json()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read a partition and return its roots."""
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held)
        weights = table[STANDS_FOR].to_pylist() if STANDS_FOR in table.column_names else None
        ids, expressions = table["id"].to_pylist(), table["expression"].to_pylist()
        found = roots_of(Space.from_json(self._space), ids, expressions, weights)
        yield pa.record_batch(
            {
                "id": pa.array(found.ids, table.schema.field("id").type),
                "expression": pa.array(found.expressions, table.schema.field("expression").type),
                STANDS_FOR: pa.array(found.stands_for, pa.int64()),
            }
        )
