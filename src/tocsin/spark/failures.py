"""How an error of ours leaves a Python worker, and how its sentence is found again in what Spark reports."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from tocsin.errors import TocsinError

Batches = Iterator[pa.RecordBatch]

_SENTENCE = re.compile(r"^.*?tocsin\.errors\.\w+: (.*)", re.MULTILINE)


@dataclass(frozen=True)
class Guarded:
    """A function for `mapInArrow` of whose errors, where they are ours, Spark reports the sentence and no frames.

    A worker writes the traceback of what it raises, unless its environment says to leave that out, and then ends.
    Errors that are not ours keep their frames.
    """

    function: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        """Return what the function makes of the batches."""
        try:
            yield from self.function(batches)
        except TocsinError as error:
            if TaskContext.get() is not None:
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise error.with_traceback(None) from None


def sentence_of(report: str) -> str | None:
    """Return the sentence of an error of ours in a report of Spark's, None if there is none.

    >>> sentence_of("the query failed: in the worker: tocsin.errors.SavedIndexError: it is damaged\\n at org.apache")
    'it is damaged'
    """
    found = _SENTENCE.search(report)
    return found[1] if found else None
