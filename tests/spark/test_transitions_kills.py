"""A driver of transitions killed with -9 at random points and started again: no transition is lost, none is doubled."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.killing import batch_files, run_with_kills
from tests.spark.test_transitions import frame_of, table_of, turns
from tests.spark.transitions_oracle import Oracle, Row, Rule, Turn, random_rows, rules
from tocsin import spark as ts
from tocsin.spark.manifest import read_manifest
from tocsin.spark.segments import read_subscriptions

FILES, ROWS = 6, 30


def expected(folder: Path, rows: list[Row], known: dict[str, Rule]) -> Counter[Turn]:
    """Return the definition's transitions, each batch with its files and the version of the index that it recorded."""
    (query,) = (folder / "index" / "streams").iterdir()
    index = str(folder / "index")
    oracle = Oracle(True)
    found: Counter[Turn] = Counter()
    for record in sorted(query.iterdir(), key=lambda file: int(file.name)):
        manifest = read_manifest(index, int(record.read_text().split()[0]))
        tables = [read_subscriptions(index, segment).to_pylist() for segment in manifest.segments]
        held = {each["id"]: known[each["expression"]] for table in tables for each in table}
        changes: dict[int, Rule | None] = dict.fromkeys(oracle.subscriptions.keys() - held.keys())
        found += Counter(oracle.subscribe(changes | held))
        places = [int((folder / "order" / file.name).read_text()) for file in batch_files(folder, int(record.name))]
        found += Counter(oracle.batch([row for place in places for row in rows[place * ROWS : (place + 1) * ROWS]]))
    return found


def check(spark: SparkSession, folder: Path, kills: int, seed: int) -> None:
    pick = random.Random(f"transitions {seed}")
    rows = random_rows(pick, FILES * ROWS, late=True, ties=False)[: FILES * ROWS]
    (folder / "order").mkdir()
    seen: set[str] = set()
    for number in range(FILES):
        part = frame_of(spark, rows[number * ROWS : (number + 1) * ROWS]).coalesce(1)
        part.write.mode("append").parquet(str(folder / "updates"))
        (name,) = {file.name for file in (folder / "updates").glob("*.parquet")} - seen
        seen.add(name)
        os.utime(folder / "updates" / name, (1_700_000_000 + number,) * 2)
        (folder / "order" / name).write_text(str(number))
    held = {number: rules(pick) for number in range(12)}
    known = {rule.text: rule for rule in held.values()}
    index = str(folder / "index")
    sample = frame_of(spark, rows).drop("gone", "clear")
    ts.build_index(table_of(spark, dict(held)), index, events_sample=sample)

    def change() -> None:
        rule = rules(pick)
        known[rule.text] = rule
        ts.update_index(table_of(spark, {pick.randrange(14): rule, pick.randrange(14, 16): None}), index)

    run_with_kills("tests.spark.transitions_driver", folder, kills, pick, change)
    wanted = expected(folder, rows, known)
    assert wanted.total() > FILES * ROWS
    assert turns(spark.read.parquet(str(folder / "out"))) == wanted, f"seed {seed}"


def test_two_kills_lose_no_transition_and_double_none(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_eighteen_kills_lose_no_transition_and_double_none(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, 3, seed)
