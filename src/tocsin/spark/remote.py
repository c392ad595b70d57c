"""Calls that run on a worker, where the index's files are: the driver of a Spark Connect session may not see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import BarrierTaskContext
from pyspark.sql import DataFrame, SparkSession

from tocsin import errors
from tocsin.errors import SparkError, TocsinError

Batches = Iterator[pa.RecordBatch]


def ask(session: SparkSession, function: Callable[[], Any]) -> Any:
    """Return what a function returns on a worker, as JSON values; raise what it raises if that is ours.

    The function may run more than once.
    """
    (answer,) = ask_each(session.range(0, 1, 1, 1), lambda table: function())
    return answer


def ask_each(rows: DataFrame, function: Callable[[pa.Table], Any]) -> list[Any]:
    """Return what a function makes of the rows of each partition that has any; raise the first error of ours."""
    names = rows.columns

    def answering(batches: Batches) -> Batches:
        held = list(batches)  # read to the end, or Spark would not use this worker again
        if held:
            table = pa.Table.from_batches(held).rename_columns(names)
            yield pa.RecordBatch.from_pydict({"answer": [_answer(function, table)]})

    answers = [json.loads(row["answer"]) for row in rows.mapInArrow(answering, "answer string").collect()]
    for answer in answers:
        if "error" in answer:
            raise _rebuilt(answer["error"], answer["message"])
    return [answer["value"] for answer in answers]


def together() -> None:
    """Wait, in a task of a barrier stage (``mapInArrow(..., barrier=True)``), until all its tasks have come so far."""
    BarrierTaskContext.get().barrier()


def _answer(function: Callable[[pa.Table], Any], table: pa.Table) -> str:
    """Return the JSON of a function's value, or of the error of ours that it raised."""
    try:
        return json.dumps({"value": function(table)})
    except TocsinError as error:
        return json.dumps({"error": type(error).__name__, "message": str(error)})
    except OSError as error:
        return json.dumps({"error": "SavedIndexError", "message": f"the index cannot be read or written: {error}"})


def _rebuilt(kind: str, message: str) -> TocsinError:
    """Return an error of the class that a worker raised.

    >>> _rebuilt("SavedIndexError", "damaged")
    SavedIndexError('damaged')
    """
    found = getattr(errors, kind, SparkError)
    return found(message) if found is not errors.BadSubscriptionsError else errors.SubscriptionError(message)
