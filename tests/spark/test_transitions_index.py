"""Changed subscriptions find the stored publications that they match in an index, as a look at all of them does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin.errors import SavedIndexError
from tocsin.index.array_files import SMALL
from tocsin.matcher import Matcher
from tocsin.space import Boolean, Number, Space, Text, Time
from tocsin.spark import transitions_index
from tocsin.spark.segments import Opened
from tocsin.spark.transitions_index import Wanted, wanted_of
from tocsin.spark.transitions_pairs import Change, turns_of_subscriptions
from tocsin.spark.transitions_state import KEPT_BATCHES, Bucket, Stored, settle

DIMENSIONS = {
    "x": Number("int64"),
    "y": Number(),
    "day": Time("date"),
    "lit": Boolean(),
    "s": Text(),
    "k": Number("int64"),
}


def fill(bucket: Bucket, pick: random.Random, batches: int, keys: int) -> Stored:
    """Store publications; some of them again and again, some deleted."""
    for batch in range(batches):
        some = sorted(pick.sample(range(keys), keys // (batch + 1)))
        columns = {
            "#": [key * 7 for key in some],
            "key": some,
            "!": [pick.random() < 0.9 for _ in some],
            "@": [batch] * len(some),
            "=x": [pick.choice([None, *range(40)]) for _ in some],
            "=y": [pick.choice([None, -0.0, float("nan"), float("inf"), pick.uniform(0, 10)]) for _ in some],
            "=day": pa.array([pick.choice([None, *range(19_000, 19_010)]) for _ in some], pa.int32()).cast(pa.date32()),
            "=lit": [pick.choice([None, True, False]) for _ in some],
            "=s": [pick.choice([None, "a", "b"]) for _ in some],
        }
        bucket.commit(batch, bucket.before(batch), ("index", 1, "a"), pa.table(columns))
    stored = bucket.before(batches)
    assert stored is not None
    return stored


def expression(pick: random.Random) -> str:
    low, wide = pick.randint(0, 40), pick.randint(0, 2)
    return pick.choice(
        [
            f"x BETWEEN {low} AND {low + wide}",
            f"x IN ({low}, {low + 1}) AND s = 'a'",
            f"y > {low / 4} AND y < {low / 4 + 0.2}",
            f"x = {low} OR y BETWEEN 3 AND 3.1",
            "day = DATE '2022-01-08' AND x < 5",
            "y IS NULL AND x > 37",
            "y > 1e308 AND x = 3",
            f"k < {10 * (low + 1)}",
            f"NOT (x < {low}) AND NOT (x > {low + 1}) AND lit",
        ]
    )


def matcher_of(pick: random.Random, space: Space, count: int) -> Matcher:
    matcher = Matcher(space)
    for number in range(count):
        matcher.subscribe(number, expression(pick))
    return matcher


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_what_the_index_leaves_out_matches_nothing_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unspecified: str
) -> None:
    monkeypatch.setattr(transitions_index, "SMALL_RUN", 1)
    fewer = told = 0
    for seed in range(12):
        pick = random.Random(f"index {unspecified} {seed}")
        bucket = Bucket(tmp_path / str(seed))
        stored = fill(bucket, pick, 4, 300)
        space = Space(DIMENSIONS, unspecified=unspecified)  # type: ignore[arg-type]
        matchers = matcher_of(pick, space, pick.randint(0, 3)), matcher_of(pick, space, pick.randint(1, 3))
        wanted = wanted_of(matchers)
        assert wanted is not None
        change = Change([Opened("", matchers[0], None)], [Opened("", matchers[1], None)], wanted)
        turns = []
        for rows in (bucket.all_rows(stored), bucket.candidates(stored, "k", wanted)):
            assert rows is not None
            found = turns_of_subscriptions(rows, "k", change, "error", pa.int64())
            keys = rows["key"].take(pa.array(found.row)).to_pylist()
            turns.append(sorted(zip(keys, found.subscription.to_pylist(), found.entered.tolist(), strict=True)))
            fewer += len(rows) * (-1 if len(turns) == 1 else 1)
        assert turns[0] == turns[1], f"seed {seed}"
        told += len(turns[0])
    assert told > 100
    assert fewer < 0


def test_a_box_on_no_sorted_column_has_all_publications_looked_at() -> None:
    matcher = Matcher(Space(DIMENSIONS))
    matcher.subscribe(1, "x = 1")
    assert wanted_of([matcher]) is not None
    matcher.subscribe(2, "s = 'a' OR x = 3")
    assert wanted_of([matcher]) is None


def test_sorted_columns_are_made_once_and_go_with_their_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transitions_index, "SMALL_RUN", 1)
    pick = random.Random("once")
    bucket = Bucket(tmp_path)
    stored = fill(bucket, pick, 1, 100)
    matcher = Matcher(Space(DIMENSIONS))
    matcher.subscribe(1, "x = 1")
    wanted = wanted_of([matcher])
    assert wanted is not None
    first = bucket.candidates(stored, "k", wanted)
    (kept,) = tmp_path.glob("*.arrow.*")
    made = kept.stat().st_mtime_ns
    assert bucket.candidates(stored, "k", wanted) == first
    assert kept.stat().st_mtime_ns == made
    fill(bucket, pick, 2, 100)  # merges into another run
    for batch in range(2, 2 * KEPT_BATCHES):
        bucket.commit(batch, bucket.before(batch), ("index", 1, "a"), None)
    assert not kept.exists()


def answers(folder: Path, wanted: Wanted) -> list[Any]:
    """Return all that a bucket of a state is asked for, and what the state is of."""
    bucket = Bucket(next(folder.glob("*/0000")))
    settled = settle(str(folder), {"key": "k", "buckets": 1})
    told: list[Any] = [settled]
    for batch in (3, 2):  # the next one, and one that is run again
        stored = bucket.before(batch)
        found = bucket.find(stored, np.arange(0, 700, 7), pa.array(range(100)))
        tables = [bucket.all_rows(stored), bucket.candidates(stored, "k", wanted), *found.pieces]
        told += [found.place.tolist(), *(repr(table and table.to_pydict()) for table in tables)]  # NaN is itself
    return told


@pytest.mark.parametrize("way", ["flip", "cut", "zeros", "remove"])
def test_damage_to_a_state_is_told_with_the_file_or_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(transitions_index, "SMALL_RUN", 1)
    pick = random.Random(f"damage {way}")
    state = tmp_path / "state"
    query = settle(str(state), {"key": "k", "buckets": 1})["id"]
    bucket = Bucket(state / query / "0000")
    fill(bucket, pick, 3, 3_000)
    matcher = Matcher(Space(DIMENSIONS))
    matcher.subscribe(1, "x = 1")
    wanted = wanted_of([matcher])
    assert wanted is not None
    right = answers(state, wanted)
    files = sorted(file for file in state.rglob("*") if file.is_file())
    assert {file.suffix for file in files} == {".json", ".arrow", ".sorted", ""}
    assert max(file.stat().st_size for file in files) > SMALL, "a large one, which is verified once"
    told = 0
    for file in files:
        contents = file.read_bytes()
        for _ in range(1 if way == "remove" else 3):
            file.unlink()
            if way != "remove":
                file.write_bytes(damaged(contents, way, pick))
            try:
                assert answers(state, wanted) == right, (file, way)
            except SavedIndexError as error:
                assert file.name in str(error)
                told += 1
            for other in state.rglob("*.sorted"):
                other.unlink() if other not in files else None
            file.write_bytes(contents)
    assert told >= len(files) // 2


def damaged(contents: bytes, way: str, pick: random.Random) -> bytes:
    at = pick.randrange(len(contents))
    if way == "flip":
        return contents[:at] + bytes([contents[at] ^ (1 << pick.randrange(8))]) + contents[at + 1 :]
    return contents[:at] if way == "cut" else contents[:at] + bytes(len(contents[at : at + 64])) + contents[at + 64 :]
