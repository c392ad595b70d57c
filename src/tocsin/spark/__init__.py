"""Matching on Spark: DataFrames in, DataFrames out, batch and streaming, classic and over Spark Connect.

The only room that imports pyspark. It uses the DataFrame API alone: no RDD, no SparkContext.

    from tocsin import spark as ts
    pairs = ts.match(events, subscriptions)
"""

from __future__ import annotations

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("matching on Spark needs pyspark: pip install 'tocsin[spark]'", name=error.name) from None

from tocsin.spark.index import IndexVersion, build_index, update_index
from tocsin.spark.match import match
from tocsin.spark.quarantine import Quarantine, TocsinWarning
from tocsin.spark.redundancy import redundancy, roots_of
from tocsin.spark.session import local_session
from tocsin.spark.transitions import transitions

__all__ = [
    "IndexVersion",
    "Quarantine",
    "TocsinWarning",
    "build_index",
    "local_session",
    "match",
    "redundancy",
    "roots_of",
    "transitions",
    "update_index",
]
