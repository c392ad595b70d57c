"""Run as a program, on the Spark that Delta was made for: tables of Delta in, matched, tables of Delta out."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import pyarrow as pa  # noqa: E402
import pyspark  # noqa: E402
from pyspark.sql import DataFrame  # noqa: E402

import tocsin  # noqa: E402
from tocsin import spark as ts  # noqa: E402
from tocsin.cli.spark import open_session  # noqa: E402

EVENTS = [(n, ("lamp", "sofa", None)[n % 3], float(n % 50)) for n in range(400)]
HELD = {1: "price < 10", 2: "item = 'lamp' AND price >= 40", 3: "item IS NULL"}
CHANGED = {1: None, 4: "price = 7 OR item = 'sofa'"}


def expected(events: list[tuple[int, str | None, float]], held: dict[int, str]) -> list[list[int]]:
    matcher = tocsin.Matcher(tocsin.Space({"item": tocsin.Text(), "price": tocsin.Number()}))
    matcher.subscribe_many(pa.table({"id": list(held), "expression": list(held.values())}))
    return sorted([n, id] for n, item, price in events for id in matcher.match({"item": item, "price": price}))


def main(folder: str, jars: str) -> None:
    spark = open_session("2", jars=jars, delta=True)
    for setting in ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"):
        spark.conf.set(setting, "2")
    offers, alerts, index, out = (f"{folder}/{name}" for name in ("offers", "alerts", "index", "out"))
    schema = "n bigint, item string, price double"
    spark.createDataFrame(EVENTS[:200], schema).write.format("delta").save(offers)
    table = spark.createDataFrame(list(HELD.items()), "id bigint, expression string")
    table.write.format("delta").option("delta.enableChangeDataFeed", "true").save(alerts)

    def run() -> list[list[int]]:
        stream = spark.readStream.format("delta").load(offers)
        writer = ts.match(stream, index).writeStream.format("delta").option("checkpointLocation", f"{folder}/state")
        writer.trigger(availableNow=True).start(out).awaitTermination()
        return sorted([row["n"], row["subscription"]] for row in spark.read.format("delta").load(out).collect())

    ts.build_index(
        spark.read.format("delta").load(alerts), index, events_sample=spark.read.format("delta").load(offers)
    )
    first = run()
    for id, text in CHANGED.items():
        spark.sql(f"DELETE FROM delta.`{alerts}` WHERE id = {id}")
        if text is not None:
            changed = spark.createDataFrame([(id, text)], table.schema)
            changed.write.format("delta").mode("append").save(alerts)
    feed = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(alerts)

    def apply(rows: DataFrame, batch: int) -> None:
        said = "CASE WHEN _change_type = 'delete' THEN NULL ELSE expression END AS expression"
        changes = rows.where("_change_type <> 'update_preimage'").selectExpr("id", said, "_commit_version AS at")
        ts.update_index(changes, index, order="at", source="alerts", batch=batch)

    followed = feed.writeStream.foreachBatch(apply).option("checkpointLocation", f"{folder}/followed")
    followed.trigger(availableNow=True).start().awaitTermination()
    spark.createDataFrame(EVENTS[200:], schema).write.format("delta").mode("append").save(offers)
    second = run()
    now = {id: text for id, text in (HELD | CHANGED).items() if text is not None}
    answer = {
        "spark": pyspark.__version__,
        "first": first == expected(EVENTS[:200], HELD),
        "second": second == sorted(first + expected(EVENTS[200:], now)),
        "pairs": [len(first), len(second)],
    }
    Path(folder, "answer.json").write_text(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:3])
