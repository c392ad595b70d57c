"""What was refused and why: bad events and bad subscriptions, beside the result and never lost."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.errors import SparkError
from tocsin.spark.manifest import Manifest
from tocsin.spark.remote import ask
from tocsin.spark.sealed import read_sealed
from tocsin.spark.workers import FAILED


class TocsinWarning(UserWarning):
    """Something was left out of an answer; the message says what, and where it went."""


class Quarantine:
    """Where refused rows go: pass one to `match` and read it afterwards.

    ``events`` has the columns of the events and ``reason``; ``subscriptions`` has ``id``, ``expression`` and
    ``reason``. Both are DataFrames: of a streaming match, ``events`` is streaming too. ``counts`` says how many rows a
    batch result has and how many events were refused.
    """

    def __init__(self) -> None:
        self._events: DataFrame | None = None
        self._subscriptions: DataFrame | None = None
        self._counting: DataFrame | None = None
        self._counts: dict[str, int] | None = None

    def _fill(self, events: DataFrame, subscriptions: DataFrame, counting: DataFrame | None) -> None:
        self._events, self._subscriptions, self._counting, self._counts = events, subscriptions, counting, None

    @property
    def events(self) -> DataFrame:
        """The events that did not fit the space, with the reason."""
        return self._filled(self._events)

    @property
    def subscriptions(self) -> DataFrame:
        """The subscriptions that the index does not hold, with the reason."""
        return self._filled(self._subscriptions)

    @property
    def counts(self) -> dict[str, int]:
        """How many ``matches`` there are in a whole batch result (of `transitions`: how many ``transitions``, and
        updates that were ``ignored``), how many rows were ``refused``, and how many calls of operators ``failed``.

        These are of no action of the caller's, which may have read a part of the result or have failed: the first time
        they are asked for they are counted by a job of their own, which matches all events once more.
        """
        self._filled(self._events)
        if self._counting is None:
            raise SparkError("counts are of batch results; a stream reports them in its progress, as observedMetrics")
        if self._counts is None:
            self._counts = self._counting.collect()[0].asDict()
        return dict(self._counts)

    def _filled(self, frame: DataFrame | None) -> DataFrame:
        if frame is None:
            raise SparkError("this quarantine belongs to no match yet; pass it as match(..., quarantine=...)")
        return frame


def is_refused(reason: Column) -> Column:
    """Return whether a row is a refused one, by its reason."""
    return reason.isNotNull() & ~reason.startswith(FAILED)


def counted(reason: Column, rows: Column, name: str) -> list[Column]:
    """Return what is counted of a result: the ``rows`` that are not NULL, under a name; what was refused and failed."""
    failed = F.when(reason.startswith(FAILED), reason.substr(len(FAILED) + 1, 20).cast("bigint"))
    return [
        F.count(rows).alias(name),
        F.count(F.when(is_refused(reason), F.lit(1))).alias("refused"),
        F.coalesce(F.sum(failed), F.lit(0)).alias("failed"),
    ]


def refused_subscriptions(session: SparkSession, path: str, manifest: Manifest) -> DataFrame:
    """Return the subscriptions that an index refused: id, expression, reason."""
    fields = [("id", manifest_id_type(manifest)), ("expression", types.StringType()), ("reason", types.StringType())]
    schema = types.StructType([types.StructField(name, kind) for name, kind in fields])
    if not manifest.quarantine:
        return session.createDataFrame([], schema)
    ask(session, lambda: [len(read_sealed(Path(path) / "quarantine" / name)) for name in manifest.quarantine])
    return session.read.schema(schema).parquet(*(f"file:{path}/quarantine/{name}" for name in manifest.quarantine))


def manifest_id_type(manifest: Manifest) -> types.DataType:
    """Return the Spark type of an index's ids."""
    fields: Any = {
        "type": "struct",
        "fields": [{"name": "id", "type": manifest.id_type, "nullable": False, "metadata": {}}],
    }
    return types.StructType.fromJson(fields)["id"].dataType


def warn_of_refused(count: int, held: int, reasons: list[str], where: str, note: str = "") -> None:
    """Warn that subscriptions were refused; a ``note`` is added as it is."""
    shown = "\n".join(f"  {reason}" for reason in reasons)
    more = f"\n  ... and {count - len(reasons)} more" if count > len(reasons) else ""
    warnings.warn(
        f"{count} of {count + held} subscriptions are bad and were left out; they are in {where}\n{shown}{more}{note}",
        TocsinWarning,
        stacklevel=4,
    )
