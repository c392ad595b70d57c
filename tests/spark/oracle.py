"""Spark as the oracle: random expressions as we read them and as Spark evaluates them by itself."""

from __future__ import annotations

import random

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tests.oracle.expressions import Both, Generator

EVENT_COLUMNS = (
    "n bigint, i bigint, j int, d double, c decimal(10,2), w decimal(30,3), s string, u string, b boolean, "
    "t timestamp, z timestamp_ntz, day date, st struct<x: bigint, y: string>, tags array<string>, nums array<bigint>"
)
"""The events of `Generator`, numbered by ``n``; its column of dates is named ``day``."""


BEYOND = "10000000000000000000"
"""Spark's analyser makes ``i < 10000000000000000000`` TRUE and ``i > ...`` FALSE for a bigint, even if i is NULL; for
us it is NULL there, as in SQL and in DuckDB. docs/guides/spark.md names the difference."""


class SparkGenerator(Generator):
    """Makes expressions whose second form is for Spark too: there, a repeated field is asked with ``exists``."""

    def leaf(self) -> Both:
        one = super().leaf()
        while BEYOND in one.spark:
            one = super().leaf()
        if "lambda x" in one.duckdb:
            return one
        return Both(_renamed(one.spark), _renamed(one.spark))

    def _repeated(self) -> Both:
        one = super()._repeated()
        name = "tags" if "list_filter(tags" in one.duckdb else "nums"
        test = one.spark.replace(name, "x")
        # Told apart from other leaves by the words that DuckDB's form has too.
        return Both(one.spark, f"exists({name}, x -> ({test})) /* lambda x */")

    def _timely(self) -> Both:
        one = super()._timely()
        return Both(one.spark, one.spark)


def _renamed(text: str) -> str:
    """Return a predicate with the column of dates called by its name here."""
    for start in ("n ", "n)"):
        if text.startswith(start):
            return "day" + text[1:]
    return text[:-2] + " day" if text.endswith(" n") else text


def numbered_events(generator: Generator, rows: int) -> pa.Table:
    """Return random events with their number in front."""
    events = generator.events(rows)
    names = ["day" if name == "n" else name for name in events.column_names]
    return events.rename_columns(names).add_column(0, "n", pa.array(range(rows), pa.int64()))


def frame_of(spark: SparkSession, events: pa.Table) -> DataFrame:
    """Return events as a DataFrame of the same types: timestamps without a zone stay so."""
    return spark.createDataFrame(events, EVENT_COLUMNS)


def spark_answers(events: DataFrame, expressions: list[str], at_once: int = 250) -> list[set[int]]:
    """Return for each expression the numbers of the events that Spark keeps."""
    found: list[set[int]] = []
    for start in range(0, len(expressions), at_once):
        some = expressions[start : start + at_once]
        columns = [f"({text}) AS x{number}" for number, text in enumerate(some)]
        table = events.selectExpr("n", *columns).toArrow()
        numbers = table["n"].to_pylist()
        for number in range(len(some)):
            kept = table[f"x{number}"].to_pylist()
            found.append({n for n, is_kept in zip(numbers, kept, strict=True) if is_kept})
    return found


def seeded(*parts: object) -> SparkGenerator:
    """Return a generator whose draws these parts decide."""
    return SparkGenerator(random.Random("/".join(map(str, parts))))
