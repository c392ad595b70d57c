"""Spark is the oracle: a subscription matches an event if and only if Spark's own `where` keeps it."""

from __future__ import annotations

import os
from collections import defaultdict

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.spark.oracle import frame_of, numbered_events, seeded, spark_answers
from tocsin import spark as ts

SEED = int(os.environ.get("TOCSIN_SEED", "4"))
EXPRESSIONS, ROWS = 2_000, 100


def test_spark_keeps_the_events_that_match(spark: SparkSession) -> None:
    generator = seeded("spark", SEED)
    events = frame_of(spark, numbered_events(generator, ROWS)).coalesce(2).cache()
    expressions = [generator.expression(3 if number % 4 == 0 else 2) for number in range(EXPRESSIONS)]
    table = pa.table({"id": range(EXPRESSIONS), "expression": [each.spark for each in expressions]})
    pairs = ts.match(events, spark.createDataFrame(table), bad="error").select("n", "subscription").toArrow()
    ours: dict[int, set[int]] = defaultdict(set)
    for event, id in zip(pairs["n"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
        assert event not in ours[id], "a pair was given twice"
        ours[id].add(event)
    # Interpreted, since compiling thousands of expressions takes longer than evaluating them on few rows.
    before = {name: spark.conf.get(name) for name in ("spark.sql.codegen.factoryMode", "spark.sql.codegen.wholeStage")}
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    theirs = spark_answers(events, [each.duckdb for each in expressions])
    for name, value in before.items():
        spark.conf.set(name, value)
    differing = [id for id in range(EXPRESSIONS) if ours[id] != theirs[id]]
    rows = {row["n"]: row.asDict() for row in events.collect()} if differing else {}
    shown = [
        f"{expressions[id].spark}\n  kept by {'us' if n in ours[id] else 'Spark'} only: {rows[n]}"
        for id in differing[:5]
        for n in sorted(ours[id] ^ theirs[id])[:1]
    ]
    assert not differing, f"seed {SEED}: {len(differing)} expressions differ\n" + "\n".join(shown)
    assert sum(map(len, theirs)) > EXPRESSIONS * ROWS // 10
