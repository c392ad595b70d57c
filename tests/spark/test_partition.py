"""Shards without Spark: who goes where, what summaries take in, and how few shards an event is sent to."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tocsin
from tests.spark.oracle import numbered_events, seeded
from tocsin.bench.workloads import WORKLOADS
from tocsin.index import Boxes
from tocsin.space.axes import Axes
from tocsin.space.filling import Planner
from tocsin.spark.partition import plan_partition, shards_of
from tocsin.spark.segments import segment_folder, write_segment
from tocsin.spark.summaries import MOST_BOXES, MOST_INTERVALS, Router, read_summary, summary_of


def stream_of(events: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as writer:
        writer.write_table(events)
    return bytes(sink.getvalue())


def matcher_of(space: tocsin.Space, table: pa.Table) -> tocsin.Matcher:
    matcher = tocsin.Matcher(space)
    matcher.subscribe_many(table)
    return matcher


def boxes_of(space: tocsin.Space, table: pa.Table) -> tuple[Axes, Boxes]:
    axes = Axes(space)
    return axes, Planner(axes).fill(table["expression"].combine_chunks()).boxes


def pairs_of(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_an_event_is_sent_to_every_shard_that_matches_it(seed: int) -> None:
    generator = seeded("shards", seed)
    events = numbered_events(generator, 60)
    space = tocsin.Space.from_arrow(events.schema)
    table = pa.table({"id": range(100), "expression": [generator.expression().spark for _ in range(100)]})
    shards = generator.random.choice([2, 3, 5, 8])
    tree = plan_partition(
        table.slice(0, generator.random.choice([20, 100])),
        space,
        stream_of(events) if seed % 3 else None,
        shards,
    )
    shard_of = shards_of(tree, space, table["expression"].combine_chunks())
    assert set(shard_of) <= set(range(shards))
    matchers = {
        shard: matcher_of(space, table.filter(pa.array(shard_of == shard))) for shard in np.unique(shard_of).tolist()
    }
    router = Router(
        space, [(shard, summary_of(*boxes_of(space, table.filter(pa.array(shard_of == shard))))) for shard in matchers]
    )
    (batch,) = events.combine_chunks().to_batches()
    routes = router.route(batch, "error")
    found = set()
    for shard, matcher in matchers.items():
        rows = routes.rows[routes.shards == shard]
        here = matcher.match_batch(batch.take(pa.array(rows)))
        found |= {(int(rows[row]), id) for row, id in pairs_of(here)}
    assert found == pairs_of(matcher_of(space, table).match_batch(events))


def test_one_common_equality_sends_an_event_to_one_shard() -> None:
    workload = WORKLOADS["W0"]
    table, events = workload.expressions(4_000), workload.events(500)
    space = tocsin.Space.from_arrow(events.schema)
    tree = plan_partition(table, space, stream_of(events), 4)
    shard_of = shards_of(tree, space, table["expression"].combine_chunks())
    sizes = np.bincount(shard_of, minlength=4)
    assert sizes.max() < 1.5 * sizes.mean()
    parts = [boxes_of(space, table.filter(pa.array(shard_of == shard))) for shard in range(4)]
    router = Router(space, [(shard, summary_of(*part)) for shard, part in enumerate(parts)])
    (batch,) = events.combine_chunks().to_batches()
    routes = router.route(batch, "error")
    assert len(routes.rows) <= 1.1 * len(events)


def test_kinds_of_subscriptions_are_parted_by_what_they_test() -> None:
    space = tocsin.Space({"city": tocsin.Text(), "price": tocsin.Number(), "kind": tocsin.Text()})
    draw = random.Random(3)
    texts = [f"city = 'c{draw.randrange(500):03}' AND price < {draw.randrange(9)}" for _ in range(600)]
    texts += [f"kind IN ('k{draw.randrange(40)}', 'k{draw.randrange(40)}')" for _ in range(300)]
    table = pa.table({"id": range(900), "expression": texts})
    tree = plan_partition(table, space, None, 3)
    shard_of = shards_of(tree, space, table["expression"].combine_chunks())
    assert not set(shard_of[:600]) & set(shard_of[600:]), "a shard of both kinds would see every event"


def test_what_cannot_be_told_apart_is_spread_and_what_cannot_be_read_goes_somewhere() -> None:
    space = tocsin.Space({"n": tocsin.Number("int64")})
    table = pa.table({"id": range(100), "expression": [f"n = 1 AND n < {100 + n}" for n in range(100)]})
    tree = plan_partition(table, space, None, 4)
    assert np.bincount(shards_of(tree, space, table["expression"].combine_chunks()), minlength=4).min() > 5
    assert len(shards_of(tree, space, pa.array(["n = ", None, "m = 3", "n > 3 AND n < 4"]))) == 4


def test_a_summary_is_small_and_names_null_apart(tmp_path: Path) -> None:
    space = tocsin.Space({f"f{n}": tocsin.Number("int64") for n in range(12)})
    draw = random.Random(5)
    texts = [
        " AND ".join(f"(f{n} IS NULL OR f{n} = {draw.randrange(10**6)})" for n in draw.sample(range(12), 3))
        for _ in range(500)
    ]
    written = write_segment(
        str(tmp_path), pa.table({"id": range(500), "expression": texts}), space, "adaptive", shard=7
    )
    assert written.segment is not None and written.segment.shard == 7
    summary = read_summary(segment_folder(str(tmp_path), written.segment) / str(written.segment.summary))
    assert 1 < len(summary["boxes"]) <= MOST_BOXES
    intervals = [told for box in summary["boxes"] for _, told in box]
    assert intervals and all(len(told) <= MOST_INTERVALS for told in intervals)
    assert all(told[0] == [-(2**63), -(2**63)] for told in intervals)


def test_a_bad_event_is_refused_by_the_router_whichever_shard_tests_the_field() -> None:
    space = tocsin.Space({"ip": tocsin.Address(), "n": tocsin.Number("int64")})
    held = {0: "n = 1", 1: "ip = '10.0.0.1'"}
    summaries = [
        (shard, summary_of(*boxes_of(space, pa.table({"expression": [text]})))) for shard, text in held.items()
    ]
    batch = pa.record_batch({"ip": ["10.0.0.1", "?", None], "n": pa.array([2, 1, 1], pa.int64())})
    routes = Router(space, summaries).route(batch, "error")
    assert (routes.rows.tolist(), routes.shards.tolist(), list(routes.refused)) == ([2, 0], [0, 1], [1])
    assert Router(space, []).route(batch, "error").rows.tolist() == []
