"""Run as a program: the same work over Spark Connect, its answers on standard output as JSON."""

from __future__ import annotations

import json
import os
import sys
import warnings

os.environ["PYSPARK_PYTHON"] = sys.executable
warnings.simplefilter("ignore")

from pyspark.sql import SparkSession  # noqa: E402

from tests.spark.oracle import frame_of, numbered_events, seeded  # noqa: E402
from tocsin import spark as ts  # noqa: E402


def main(folder: str) -> None:
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2")
    spark = builder.getOrCreate()
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
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
