"""What was refused and why: bad events and bad subscriptions, beside the result and never lost."""

from __future__ import annotations

import warnings
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, types

from tocsin.errors import SparkError
from tocsin.spark.manifest import Manifest


class TocsinWarning(UserWarning):
    """Something was left out of an answer; the message says what, and where it went."""


class Quarantine:
    """Where refused rows go: pass one to `match` and read it afterwards.

    ``events`` has the columns of the events and ``reason``; ``subscriptions`` has ``id``, ``expression`` and
    ``reason``. Both are DataFrames: of a streaming match, ``events`` is streaming too. ``counts`` says how many matches
    and refused events there were when an action on the result of `match` has ended.
    """

    def __init__(self) -> None:
        self._events: DataFrame | None = None
        self._subscriptions: DataFrame | None = None
        self._observation: Observation | None = None

    def _fill(self, events: DataFrame, subscriptions: DataFrame, observation: Observation | None) -> None:
        self._events, self._subscriptions, self._observation = events, subscriptions, observation

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
        """How many ``matches`` and ``refused`` events the last action on a batch result counted; it waits for one."""
        if self._observation is None:
            raise SparkError("counts are of batch results; a stream reports them in its progress, as observedMetrics")
        found: dict[str, int] = self._observation.get
        return found

    def _filled(self, frame: DataFrame | None) -> DataFrame:
        if frame is None:
            raise SparkError("this quarantine belongs to no match yet; pass it as match(..., quarantine=...)")
        return frame


def refused_subscriptions(session: SparkSession, path: str, manifest: Manifest) -> DataFrame:
    """Return the subscriptions that an index refused: id, expression, reason."""
    fields = [("id", manifest_id_type(manifest)), ("expression", types.StringType()), ("reason", types.StringType())]
    schema = types.StructType([types.StructField(name, kind) for name, kind in fields])
    if not manifest.quarantine:
        return session.createDataFrame([], schema)
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
