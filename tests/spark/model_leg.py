"""Pairs that a model has checked in the library, sent through Spark too: many small cases in one job.

A model test makes a list of cases, each with its own space, and compares what Spark gives with what the model says:

    from tests.spark.model_leg import Case, match_on_spark

    cases = [Case(space, {0: "price < 5", 1: "city = 'x'"}, pa.table({"price": [3, 7], "city": ["x", None]}))]
    found = match_on_spark(spark, tmp_path, cases)          # the fixture `spark` of tests/conftest.py
    assert found == [{(0, 0), (0, 1)}]                      # (row of the event, id of the subscription), a set a case

    updates = pa.table({"key": ["a", "a"], "at": [1, 2], "x": [1, 9]})
    found = transitions_on_spark(spark, tmp_path, [Case(space, {0: "x < 5"}, updates)])
    assert found == [Counter({("a", 1, 0, "enter"): 1, ("a", 2, 0, "leave"): 1})]

Indexes are written here without Spark, by what its tasks call. Of each case only the manifest is read by a small job;
then all cases are matched by one. So twenty cases of ten events and ten subscriptions, 2,000 pairs, take some seconds.
Put all cases of a test into one call. An expression that the space refuses is an error: leave it out before. An event
that is refused has no pairs; `refused_on_spark` tells the rows.

Columns must have the types that Spark gives an Arrow table: a timestamp without a zone needs ``ddl``, the table's
columns as Spark writes them (``at timestamp_ntz, x double``). In a table of updates ``key`` is the publication, ``at``
the order; a boolean column ``gone`` deletes, and with ``partial`` a NULL leaves a column as it is. Ranges are structs
of ``low``, ``high`` and perhaps ``closed``, sets are arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

import tocsin
from tocsin import spark as ts
from tocsin.operators.registry import provide
from tocsin.spark.manifest import Manifest, commit
from tocsin.spark.segments import write_segment

ROW, CASE = "row of the case", "case"
Pair = tuple[int, int]
Turn = tuple[Any, Any, int, str]


@dataclass(frozen=True)
class Case:
    """Subscriptions and events (or updates) of one space."""

    space: tocsin.Space
    subscriptions: dict[int, str]
    events: pa.Table
    operators: tuple[Any, ...] = ()
    ddl: str | None = None
    missing: Any = "unspecified"
    partial: bool = False


def match_on_spark(spark: SparkSession, folder: Path, cases: Sequence[Case]) -> list[set[Pair]]:
    """Return the pairs that `ts.match` gives for each case: rows of its events and ids of its subscriptions."""
    found: list[set[Pair]] = [set() for _ in cases]
    for case, row, id in _collected(_matched(spark, folder, cases, [])):
        assert (row, id) not in found[case], "a pair came twice"
        found[case].add((row, id))
    return found


def refused_on_spark(spark: SparkSession, folder: Path, cases: Sequence[Case]) -> list[dict[int, str]]:
    """Return the rows of each case that `ts.match` refuses, with the reason."""
    found: list[dict[int, str]] = [{} for _ in cases]
    refused: list[DataFrame] = []
    _matched(spark, folder, cases, refused)
    for case, row, reason in _collected(refused):
        found[case][row] = reason
    return found


def transitions_on_spark(spark: SparkSession, folder: Path, cases: Sequence[Case]) -> list[Counter[Turn]]:
    """Return the transitions that `ts.transitions` gives for each case: key as a text, order, subscription, enter or
    leave."""
    frames = []
    for number, case in enumerate(cases):
        turned = ts.transitions(
            spark.createDataFrame(case.events, case.ddl).coalesce(1),
            _index(folder, number, case),
            key="key",
            order="at",
            deleted="gone" if "gone" in case.events.column_names else None,
            partial=case.partial,
            missing=case.missing,
            operators=case.operators,
        )
        frames.append(
            turned.select(F.lit(number).alias(CASE), F.col("key").cast("string"), "at", "subscription", "transition")
        )
    found: list[Counter[Turn]] = [Counter() for _ in cases]
    for number, *turn in _collected(frames):
        found[number][tuple(turn)] += 1
    return found


def _matched(spark: SparkSession, folder: Path, cases: Sequence[Case], refused: list[DataFrame]) -> list[DataFrame]:
    frames = []
    for number, case in enumerate(cases):
        numbered = case.events.append_column(ROW, pa.array(range(len(case.events)), pa.int64()))
        ddl = case.ddl and f"{case.ddl}, `{ROW}` bigint"
        events, quarantine = spark.createDataFrame(numbered, ddl).coalesce(1), ts.Quarantine()
        found = ts.match(
            events,
            _index(folder, number, case),
            missing=case.missing,
            operators=case.operators,
            quarantine=quarantine,
        )
        frames.append(found.select(F.lit(number).alias(CASE), ROW, "subscription"))
        refused.append(quarantine.events.select(F.lit(number).alias(CASE), ROW, "reason"))
    return frames


def _index(folder: Path, number: int, case: Case) -> str:
    """Write the index of a case and return its path."""
    path = str(folder / f"case {number}")
    if not Path(path).exists():
        provide((*case.space.operators.values(), *case.operators))
        ids, texts = list(case.subscriptions), list(case.subscriptions.values())
        table = pa.table({"id": pa.array(ids, pa.int64()), "expression": pa.array(texts, pa.string())})
        written = write_segment(path, table, case.space, "adaptive")
        assert not written.refused, written.reasons
        segments = (written.segment,) if written.segment else ()
        commit(path, Manifest(1, case.space.to_json(), False, "long", "adaptive", segments, written.tested))
    return path


def _collected(frames: list[DataFrame]) -> list[Any]:
    """Return the rows of all frames, by one job."""
    return list(map(tuple, reduce(DataFrame.unionAll, frames).collect())) if frames else []
