"""Running a streaming match to a sink, with its progress: batches, rates, matches, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from tocsin.errors import SparkError
from tocsin.spark.failures import sentence_of
from tocsin.spark.session import is_failure, reason_of_failure

_POLL_SECONDS = 1


@dataclass(frozen=True)
class Progress:
    """What a batch of a stream did, and how fast."""

    batch: int
    events: int
    matches: int
    refused: int
    seconds: float

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds else 0.0

    @classmethod
    def of(cls, report: Any) -> Progress:
        """Return the progress of one of Spark's reports.

        >>> report = {"batchId": 3, "numInputRows": 10, "batchDuration": 500, "observedMetrics": {}}
        >>> Progress.of(report).rate
        20.0
        """
        metrics = [found for name, found in (report.get("observedMetrics") or {}).items() if name.startswith("tocsin")]
        return cls(
            batch=report["batchId"],
            events=report["numInputRows"],
            matches=sum(each["matches"] for each in metrics),
            refused=sum(each["refused"] for each in metrics),
            seconds=report.get("batchDuration", 0) / 1000,
        )


def run_stream(
    matched: DataFrame,
    place: str,
    checkpoint: str,
    *,
    format: str = "parquet",
    every: str | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    options: dict[str, str] | None = None,
) -> Progress:
    """Write a streaming match to a directory (or a topic of Kafka) and report each batch; return the totals.

    Without ``every``, what there is now is matched and the stream ends; with it (``"10 seconds"``) the stream runs
    until it is interrupted. The checkpoint is where it goes on when it is started again.
    """
    writer = matched.writeStream.format(format).option("checkpointLocation", checkpoint).options(**(options or {}))
    writer = writer.option("topic", place) if format == "kafka" else writer.option("path", place)
    writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
    seen = -1
    total = Progress(-1, 0, 0, 0, 0.0)
    try:
        query = writer.start()
        try:
            ended = False
            while not ended:
                ended = bool(query.awaitTermination(_POLL_SECONDS))
                for each in query.recentProgress:
                    progress = Progress.of(json.loads(each.json))
                    if progress.batch > seen and progress.events:
                        seen, total = progress.batch, _added(total, progress)
                        report(progress)
        finally:
            if query.isActive:
                query.stop()
    except Exception as error:
        if not is_failure(error):
            raise
        raise SparkError(_explained(error)) from error
    return total


def _added(total: Progress, step: Progress) -> Progress:
    return Progress(
        step.batch,
        total.events + step.events,
        total.matches + step.matches,
        total.refused + step.refused,
        total.seconds + step.seconds,
    )


def _explained(error: Exception) -> str:
    """Return why a stream failed: the sentence of a worker's error where that is ours, else the first of Spark's.

    >>> _explained(ValueError("the query failed\\n  File x\\ntocsin.errors.SavedIndexError: it is damaged\\n at org"))
    'the stream has failed: it is damaged'
    """
    return f"the stream has failed: {sentence_of(str(error)) or reason_of_failure(error)}"
