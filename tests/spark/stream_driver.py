"""Run as a program: a streaming match over a folder of files, one file a batch, until no file is left; to be killed."""

from __future__ import annotations

import sys
import warnings

warnings.simplefilter("ignore")

from tests.spark.oracle import EVENT_COLUMNS  # noqa: E402
from tocsin import spark as ts  # noqa: E402


def main(folder: str) -> None:
    spark = ts.local_session(2, "1g", **{"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"})
    events = (
        spark.readStream.schema(EVENT_COLUMNS)
        .option("maxFilesPerTrigger", 1)
        .option("latestFirst", "false")
        .parquet(f"{folder}/events")
    )
    query = (
        ts.match(events, f"{folder}/index")
        .writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    print("started", flush=True)
    query.awaitTermination()
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
