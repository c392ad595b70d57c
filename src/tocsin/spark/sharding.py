"""Shards on Spark: subscriptions assigned to them at the build, events routed to them by `match`.

An event that passes through here gets a row for each shard that can match it, with the number of the partition where
that is done. A partition belongs to one shard, so that a task opens one; a shard may have several partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, types

from tocsin.matcher.matcher import Missing
from tocsin.space import Space
from tocsin.spark.failures import Guarded
from tocsin.spark.names import map_in_arrow
from tocsin.spark.partition import Tree, plan_partition, shards_of
from tocsin.spark.remote import ask_each
from tocsin.spark.segments import failed_calls, write_segment
from tocsin.spark.workers import REASON, Batches, Matching, Version, reason_of, router_of, without_bad

PART = "__tocsin_partition"
"""The column that says in which partition an event is matched."""

ASSIGNED_ROWS = 100_000
"""Subscriptions a task assigns to shards."""

TURN_ROWS = 131_072
"""Events for which shards are opened in turn."""

SAMPLED_ROWS = 50_000
"""Subscriptions on which the partition is planned."""


def assigned(chosen: DataFrame, space: Space, sample: bytes | None, shards: int) -> tuple[Tree, DataFrame]:
    """Return the tree of a table of subscriptions, and its rows with their ``shard``, each shard in one partition."""
    rows = int(chosen.count())
    share = min(1.0, SAMPLED_ROWS / max(1, rows))
    some = chosen if share == 1.0 else chosen.sample(False, share, 1)
    planned = ask_each(some.repartition(1), lambda table: plan_partition(table, space, sample, shards))
    tree: Tree = planned[0] if planned else {"shards": [0]}

    def with_shards(batches: Batches) -> Batches:
        held = list(batches)
        if held:
            table = pa.Table.from_batches(held).rename_columns(["id", "expression"])
            yield from _with_shards(table, tree, space).to_batches()

    # By id, so that two rows of one id meet in one task, which sends them to one shard: that refuses the second.
    spread = chosen.repartition(max(1, -(-rows // ASSIGNED_ROWS)), "id")
    schema = types.StructType([*chosen.schema.fields, types.StructField("shard", types.IntegerType())])
    return tree, by_partition(spread.mapInArrow(Guarded(with_shards), schema), shards, "shard")


def _with_shards(table: pa.Table, tree: Tree, space: Space) -> pa.Table:
    """Return subscriptions with their shards; those of one id all go where its first row does."""
    shards = shards_of(tree, space, table["expression"].combine_chunks())
    ids = table["id"].combine_chunks().dictionary_encode().indices.fill_null(-1)
    _, first, which = np.unique(np.asarray(ids), return_index=True, return_inverse=True)
    return table.append_column("shard", pa.array(shards[first][which], pa.int32()))


def by_partition(frame: DataFrame, partitions: int, column: str) -> DataFrame:
    """Return rows in the partitions that a column names; an older Spark than 4.1 hashes it, and may join some."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(partitions, column)
    return frame.repartition(partitions, column)


def write_shards(path: str, table: pa.Table, space: Space, engine: str, sample: bytes | None, prefix: str) -> list[Any]:
    """Write the segments of the shards that a task got."""
    return [
        write_segment(
            path, table.filter(pc.equal(table["shard"], shard)).drop(["shard"]), space, engine, sample, shard, prefix
        ).to_json()
        for shard in sorted(table["shard"].unique().to_pylist())
    ]


@dataclass(frozen=True)
class Routing:
    """A function for `mapInArrow`: events in; a row for each event and shard that can match it out, and refused events
    with the reason."""

    version: Version
    spread: int
    missing: Missing

    def __call__(self, batches: Batches) -> Batches:
        """Route batch after batch."""
        router = None
        for batch in batches:
            if router is None:
                router = router_of(self.version.path, self.version.pin())
            if not batch.num_rows:
                continue
            routes = router.route(batch, self.missing)
            if len(routes.rows):
                parts = routes.shards * self.spread + routes.rows % self.spread
                yield _routed(batch.take(pa.array(routes.rows)), parts, pa.nulls(len(parts), pa.string()))
            if routes.refused:
                rows = pa.array(list(routes.refused), pa.int64())
                reasons = [reason_of(str(error), row) for row, error in routes.refused.items()]
                yield _routed(batch.take(rows), np.zeros(len(rows), np.int64), pa.array(reasons, pa.string()))


def _routed(batch: pa.RecordBatch, parts: Any, reasons: pa.Array) -> pa.RecordBatch:
    names = [*batch.schema.names, PART, REASON]
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(parts, pa.int32()), reasons], names)


def routed(events: DataFrame, routing: Routing, shards: int) -> DataFrame:
    """Return events in partitions that each belong to one shard."""
    added = [types.StructField(PART, types.IntegerType()), types.StructField(REASON, types.StringType())]
    frame = map_in_arrow(events, routing, types.StructType([*events.schema.fields, *added]))
    return by_partition(frame, shards * routing.spread, PART)


@dataclass(frozen=True)
class ShardMatching:
    """A function for `mapInArrow`: events that `Routing` sent here in; as `Matching` out."""

    matching: Matching
    spread: int

    def __call__(self, batches: Batches) -> Batches:
        """Match batch after batch, each row with the shard that its partition belongs to."""
        failed, last = failed_calls(), None
        for batch in batches:
            reasons = batch.column(batch.schema.get_field_index(REASON))
            shards = pc.divide(batch.column(batch.schema.get_field_index(PART)), self.spread)
            events = batch.drop_columns([PART, REASON])
            last = events if events.num_rows else last
            if reasons.null_count < len(reasons):
                refused = pc.is_valid(reasons)
                yield self.matching.refused(events.filter(refused), reasons.filter(refused))
                events, shards = events.filter(pc.invert(refused)), shards.filter(pc.invert(refused))
            for shard in shards.unique().to_pylist():
                some = events.filter(pc.equal(shards, shard))
                yield from self.matching.answers(some, self.matching.found(some, self.matching.version.opened(shard)))
        yield from self.matching.failures(last, failed_calls() - failed)


@dataclass(frozen=True)
class ShardsInTurn:
    """A function for `mapInArrow` that matches events with one shard after another, where all matches of an event are
    to be in one row, or what one shard finds may refuse the event: many events at a time, since each shard is opened
    for them."""

    matching: Matching

    def __call__(self, batches: Batches) -> Batches:
        """Match the batches, some of them together."""
        held: list[pa.RecordBatch] = []
        rows, failed, last = 0, failed_calls(), None
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            last = batch if batch.num_rows else last
            if rows >= TURN_ROWS:
                yield from self._matched(pa.concat_batches(held))
                held, rows = [], 0
        if rows:
            yield from self._matched(pa.concat_batches(held))
        yield from self.matching.failures(last, failed_calls() - failed)

    def _matched(self, batch: pa.RecordBatch) -> Batches:
        matching, version = self.matching, self.matching.version
        routes = router_of(version.path, version.pin()).route(batch, matching.missing)
        rows, ids = [np.empty(0, np.int64)], [pa.nulls(0, matching.id_arrow)]
        bad = {row: reason_of(str(error), row) for row, error in routes.refused.items()}
        for shard in np.unique(routes.shards).tolist():
            here = routes.rows[routes.shards == shard]
            found = matching.found(batch.take(pa.array(here)), version.opened(shard))
            rows.append(here[found.rows])
            ids.append(found.ids)
            bad |= {int(here[row]): reason for row, reason in found.bad.items()}
        yield from matching.answers(batch, without_bad(np.concatenate(rows), pa.concat_arrays(ids), bad))
