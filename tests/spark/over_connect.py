"""Run as a program: the same work over Spark Connect, its answers on standard output as JSON."""

from __future__ import annotations

import json
import os
import random
import sys
import warnings
from pathlib import Path
from typing import cast

os.environ["PYSPARK_PYTHON"] = sys.executable
warnings.simplefilter("ignore")

from pyspark import SparkContext  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql.connect.session import SparkSession as RemoteSession  # noqa: E402

from tests.spark import test_transitions as turning  # noqa: E402
from tests.spark.oracle import frame_of, numbered_events, seeded  # noqa: E402
from tests.spark.transitions_oracle import UPDATES, random_rows, rules  # noqa: E402
from tocsin import spark as ts  # noqa: E402


def main(folder: str) -> None:
    spark = connected()
    generator = seeded("connect")
    events = frame_of(spark, numbered_events(generator, 100))
    rows = [(n, generator.expression().spark) for n in range(100)]
    subscriptions = spark.createDataFrame([*rows, (100, "absent = 1")], "id bigint, expression string")
    quarantine = ts.Quarantine()
    found = ts.match(events, subscriptions, quarantine=quarantine).select("n", "subscription")
    pairs = sorted((row["n"], row["subscription"]) for row in found.collect())
    refused = [row["id"] for row in quarantine.subscriptions.collect()]
    counts = quarantine.counts

    index = f"{folder}/index"
    ts.build_index(subscriptions.where("id < 60"), index, events_sample=events)
    ts.update_index(subscriptions.where("id >= 60"), index)
    arrays = ts.match(events, index, output="array").select("n", "subscription").collect()
    events.write.parquet(f"{folder}/events")
    stream = spark.readStream.schema(events.schema).parquet(f"{folder}/events")
    query = (
        ts.match(stream, index)
        .writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    streamed = spark.read.parquet(f"{folder}/out").select("n", "subscription").collect()
    answer = {
        "session": f"{type(spark).__module__}",
        "pairs": pairs,
        "refused": refused,
        "counts": counts,
        "arrays": sorted((row["n"], id) for row in arrays for id in row["subscription"]),
        "stream": sorted((row["n"], row["subscription"]) for row in streamed),
    }
    print(json.dumps(answer | turns(spark, folder)))
    spark.stop()


def connected() -> SparkSession:
    """Return a session over Spark Connect to a server in this process, on a port that the system chooses.

    ``SparkSession.builder.remote("local[2]")`` does the same on port 15002, which another server may have taken.
    """
    settings = {
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    RemoteSession._start_connect_server("local[2]", settings)
    service = getattr(SparkContext._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    port = getattr(service, "MODULE$").localPort()
    os.environ |= {"SPARK_LOCAL_REMOTE": "1", "SPARK_CONNECT_MODE_ENABLED": "1"}
    session = RemoteSession.builder.remote(f"sc://localhost:{port}").config(map=settings).getOrCreate()
    return cast(SparkSession, session)


def turns(spark: SparkSession, folder: str) -> dict[str, object]:
    """Return the transitions of a batch, and of a stream whose subscriptions change before its second batch."""
    pick = random.Random("connect")
    rows = random_rows(pick, 20, late=False, ties=False)
    held, changes = ({number: rules(pick) for number in range(6)} for _ in range(2))
    updates = turning.frame_of(spark, rows)
    batch = turning.turns(ts.transitions(updates, turning.table_of(spark, held), **turning.options(True)))
    index = f"{folder}/rules"
    ts.build_index(turning.table_of(spark, held), index, events_sample=updates.drop("gone", "clear"))
    for part in (rows[:10], rows[10:]):
        turning.append(spark, part, Path(folder))
        stream = spark.readStream.schema(UPDATES).parquet(f"{folder}/updates")
        result = ts.transitions(stream, index, state=f"{folder}/state", buckets=2, **turning.options(True))
        turning.run(result, Path(folder) / "turns")
        ts.update_index(turning.table_of(spark, changes), index)
    stream = turning.turns(spark.read.parquet(f"{folder}/turns/out"))
    return {"batch_turns": sorted(batch, key=str), "stream_turns": sorted(stream, key=str)}


if __name__ == "__main__":
    main(sys.argv[1])
