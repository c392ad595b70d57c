"""Run as a program: transitions over a folder of files, one file a batch, until no file is left; to be killed."""

from __future__ import annotations

import sys
import warnings

warnings.simplefilter("ignore")

from tests.spark.transitions_oracle import UPDATES  # noqa: E402
from tocsin import spark as ts  # noqa: E402


def main(folder: str) -> None:
    spark = ts.local_session(2, "1g", **{"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"})
    updates = spark.readStream.schema(UPDATES).option("maxFilesPerTrigger", 1).parquet(f"{folder}/updates")
    result = ts.transitions(
        updates,
        f"{folder}/index",
        key="truck",
        order="at",
        deleted="gone",
        partial=True,
        clear="clear",
        state=f"{folder}/state",
        buckets=2,
    )
    query = (
        result.writeStream.format("parquet")
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
