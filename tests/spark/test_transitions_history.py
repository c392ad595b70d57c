"""The step of a bucket without Spark: random updates and changes of subscriptions against the definition."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.transitions_oracle import Oracle, Row, Rule, Turn, random_rows, rules
from tocsin.errors import SavedIndexError, SparkError
from tocsin.space import Number, Space, Text
from tocsin.spark import transitions_index
from tocsin.spark.changes import apply_changes
from tocsin.spark.manifest import Manifest, commit, read_manifest
from tocsin.spark.transitions_index import SMALL_RUN
from tocsin.spark.transitions_input import BUCKET, HASH, TIE, Reading
from tocsin.spark.transitions_state import KEPT_BATCHES, Bucket, Run, Stored, merged, settle
from tocsin.spark.transitions_worker import IGNORED, Stepping
from tocsin.spark.workers import REASON

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where files cost no wait for a disk: these tests write thousands."""

SPACE = Space({"truck": Text(), "at": Number("int64"), "x": Number("int64"), "y": Number(), "s": Text()})
TYPES = {
    "truck": pa.string(),
    "at": pa.int64(),
    "x": pa.int64(),
    "y": pa.float64(),
    "s": pa.string(),
    "gone": pa.bool_(),
    "clear": pa.list_(pa.string()),
}


class Driver:
    """One bucket, driven as Spark drives it: a call a batch."""

    def __init__(self, folder: Path, partial: bool) -> None:
        self.folder, self.partial = folder, partial
        space = SPACE.to_json()
        commit(str(folder / "index"), Manifest(1, space, True, "long", "adaptive"))

    def change(self, changes: dict[int, Rule | None]) -> None:
        table = pa.table(
            {
                "id": pa.array(list(changes), pa.int64()),
                "expression": pa.array([rule and rule.text for rule in changes.values()], pa.string()),
            }
        )
        index = str(self.folder / "index")
        apply_changes(index, read_manifest(index), table, True, {})

    def run(self, batch: int, rows: list[Row], collide: bool = False) -> tuple[list[Turn], int]:
        stepping = Stepping(
            reading=Reading(tuple(TYPES), "truck", "at", "gone", "clear" if self.partial else None, self.partial),
            index=str(self.folder / "index"),
            build=read_manifest(str(self.folder / "index")).build,
            version=None,
            id_type="long",
            id_arrow=pa.int64(),
            missing="error",
            column="subscription",
            state=str(self.folder / "state"),
            query="q",
            batch=batch,
        )
        if not self.partial:
            stepping = Stepping(
                **{**stepping.__dict__, "reading": Reading(tuple(TYPES)[:-1], "truck", "at", "gone", None, False)}
            )
        names = stepping.reading.columns
        columns = {name: pa.array([row[name] for row in rows], TYPES[name]) for name in names}
        hashes = [hash_of(row["truck"], collide) for row in rows]
        columns |= {HASH: pa.array(hashes, pa.int64()), TIE: pa.array([row["tie"] for row in rows], pa.int64())}
        columns[BUCKET] = pa.array([0] * len(rows), pa.int32())
        batches = pa.table(columns).to_batches(max_chunksize=3) if rows else []
        found: list[Turn] = []
        ignored = 0
        for out in stepping(iter(batches)):
            for row in out.to_pylist():
                assert row[REASON] is None
                ignored += row[IGNORED] or 0
                if row["transition"]:
                    assert row["batch"] == batch
                    found.append((row["truck"], row["at"], row["subscription"], row["transition"]))
        return found, ignored


def hash_of(key: str, collide: bool) -> int:
    """Return a hash of a key; where they are to collide, one of three."""
    number = int(key[1:])
    return number % 3 - 1 if collide else (number * 0x9E3779B97F4A7C15 + 1) % 2**63 * (-1) ** number


@contextmanager
def sorting_runs_of(rows: int) -> Iterator[None]:
    """Have changes of subscriptions look into sorted columns of runs of so many rows."""
    transitions_index.SMALL_RUN = rows
    try:
        yield
    finally:
        transitions_index.SMALL_RUN = SMALL_RUN


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
def test_every_batch_gives_the_transitions_of_the_definition(
    seed: int, partial: bool, collide: bool, ties: bool
) -> None:
    check(seed, partial, collide, ties, batches=5)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
def test_many_batches_give_the_transitions_of_the_definition(
    seed: int, partial: bool, collide: bool, ties: bool
) -> None:
    check(seed, partial, collide, ties, batches=30)


def check(seed: int, partial: bool, collide: bool, ties: bool, batches: int) -> None:
    pick = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, sorting_runs_of(pick.choice([1, 4, SMALL_RUN])):
        driver, oracle = Driver(Path(folder), partial), Oracle(partial)
        rows = random_rows(pick, batches * pick.randint(1, 8), late=True, ties=ties)
        cuts = sorted(pick.randint(0, len(rows)) for _ in range(batches - 1))
        open_pairs: set[tuple[object, object]] = set()
        for batch, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
            turns: list[Turn] = []
            if batch == 0 or pick.random() < 0.4:
                changes = {pick.randint(0, 9): pick.choice([None, rules(pick), rules(pick)]) for _ in range(4)}
                driver.change(changes)
                turns += oracle.subscribe(changes)
            ignored = oracle.ignored
            turns += oracle.batch(rows[start:end])
            found = driver.run(batch, rows[start:end], collide)
            assert Counter(found[0]) == Counter(turns), f"seed {seed}, batch {batch}"
            assert found[1] == oracle.ignored - ignored
            for key, _, id, kind in found[0]:  # in the order given, enter and leave of a pair alternate
                assert ((key, id) in open_pairs) == (kind == "leave")
                (open_pairs.remove if kind == "leave" else open_pairs.add)((key, id))
            shuffled = pick.sample(rows[start:end], end - start)
            if batch == batches // 2:  # what comes after a batch does not change what it gives when run again
                driver.change({99: rules(pick)})
            assert Counter(driver.run(batch, shuffled, collide)[0]) == Counter(found[0])
            if batch == batches // 2:
                driver.change({99: None})


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_the_last_state_does_not_depend_on_when_rows_arrive(seed: int, partial: bool) -> None:
    pick = random.Random(seed)
    rows = random_rows(pick, 25, late=False, ties=False)
    subscriptions = {number: rules(pick) for number in range(8)}
    ends = []
    for _ in range(2):
        pick.shuffle(rows)
        cut = pick.randint(0, len(rows))
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            driver = Driver(Path(folder), partial)
            driver.change(dict(subscriptions))
            pairs: set[tuple[object, object]] = set()
            for batch, part in enumerate((rows[:cut], rows[cut:])):
                for key, _, id, kind in driver.run(batch, part)[0]:
                    (pairs.remove if kind == "leave" else pairs.add)((key, id))
        ends.append(pairs)
    assert ends[0] == ends[1]


def test_cost_follows_the_updates_runs_shrink_by_half_and_old_files_go(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path)
    written = 0
    for batch in range(2 * KEPT_BATCHES):
        keys = [(batch * 7 + number) % 2000 for number in range(10)]
        rows = pa.table({"#": keys, "key": keys, "!": [True] * 10, "@": [batch] * 10, "=x": [batch] * 10})
        before = bucket.before(batch)
        bucket.commit(batch, before, ("index", 1, "a"), rows)
        after = bucket.before(batch + 1)
        assert after is not None
        sizes = [run.rows for run in after.runs]
        assert all(old > 2 * new for old, new in itertools.pairwise(sizes))
        written += after.runs[-1].rows
    assert written < 2 * KEPT_BATCHES * 10 * 10
    assert len(list(tmp_path.glob("*.json"))) <= KEPT_BATCHES + 11
    assert len(list(tmp_path.glob("*.arrow"))) <= KEPT_BATCHES + 30
    everything = bucket.all_rows(after)
    assert everything is not None
    assert len(everything) == len(set(everything["key"].to_pylist()))


def test_deleted_publications_are_forgotten_where_no_row_can_come_late(tmp_path: Path) -> None:
    for forget in (True, False):
        bucket = Bucket(tmp_path / str(forget))
        for batch in range(8):
            rows = pa.table({"#": [1, 2], "key": ["a", "b"], "!": [batch % 2 == 0, False], "@": [batch] * 2})
            bucket.commit(batch, bucket.before(batch), ("index", 1, "a"), rows, forget)
            stored = bucket.before(batch + 1)
            assert stored is not None
            assert sum(run.rows for run in stored.runs) == (2 if not forget else 1 - batch % 2)
        assert bucket.all_rows(stored) is None or not len(bucket.all_rows(stored))


def test_a_bucket_that_missed_a_batch_of_its_siblings_says_so(tmp_path: Path) -> None:
    for bucket in ("0000", "0001"):
        Bucket(tmp_path / bucket).commit(0, None, ("index", 1, "a"), None)
    Bucket(tmp_path / "0000").commit(1, None, ("index", 1, "a"), None)
    with pytest.raises(SavedIndexError, match="not read to its end"):
        Bucket(tmp_path / "0001").before(2)
    Bucket(tmp_path / "0001").commit(1, None, ("index", 1, "a"), None)
    assert Bucket(tmp_path / "0001").before(5) == Stored(1, ("index", 1, "a"))  # batches 2 to 4 had no row


def test_a_batch_that_was_asked_for_and_never_stored_stops_the_next(tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"key": "k", "order": None, "buckets": 1}
    query = settle(str(tmp_path), wanted, 0)["id"]
    bucket = Bucket(tmp_path / query / "0000")
    assert bucket.before(0) is None
    settle(str(tmp_path), wanted, 1)  # both are asked for before one of them is read
    bucket.commit(0, None, ("index", 1, "a"), None)
    assert bucket.before(1) == Stored(0, ("index", 1, "a"))
    with pytest.raises(SavedIndexError, match=r"batch 1 was not read to its end .*, or not at all.*asked/1"):
        bucket.before(2)
    bucket.commit(1, bucket.before(1), ("index", 1, "a"), None)
    assert bucket.before(2) == Stored(1, ("index", 1, "a"), before=0)
    settle(str(tmp_path), wanted | {"key": "other"}, 2)  # refused: of other updates
    assert bucket.before(3) == Stored(1, ("index", 1, "a"), before=0)
    settle(str(tmp_path), wanted, KEPT_BATCHES + 2)
    assert [file.name for file in (tmp_path / query / "asked").iterdir()] == [str(KEPT_BATCHES + 2)]


def test_damaged_state_is_told(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path)
    rows = pa.table({"#": [1], "key": ["a"], "!": [True], "@": [1]})
    bucket.commit(0, None, ("index", 1, "a"), rows)
    (run,) = tmp_path.glob("0000000000.*.arrow")
    run.write_bytes(b"ARROW1 and then nothing")
    with pytest.raises(SavedIndexError, match=f"{run.name}: 23 bytes, but"):
        bucket.all_rows(bucket.before(1))
    with pytest.raises(SavedIndexError, match="missing, though it is needed"):
        bucket.open(Run("0000000009.1-00000000.arrow", 1))
    (tmp_path / "0000000000.json").write_text("{")
    with pytest.raises(SavedIndexError, match="damaged"):
        bucket.before(1)


def test_a_state_that_is_lost_or_another_is_not_begun_anew(tmp_path: Path) -> None:
    driver = Driver(tmp_path, True)
    driver.change({1: Rule("x > 0", lambda row: row["x"] > 0)})
    row: Row = {"truck": "k1", "at": 1, "x": 1, "y": None, "s": None, "gone": None, "clear": None, "tie": 0}
    assert driver.run(0, [row])[0] == [("k1", 1, 1, "enter")]
    assert driver.run(3, [row | {"at": 2}])[0] == []
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    with pytest.raises(SavedIndexError, match=r"batch 3 of this stream has run, but .* holds nothing of it; give the"):
        driver.run(4, [row | {"at": 3}])
    assert driver.run(0, [row])[0] == [("k1", 1, 1, "enter")]


def test_keys_of_one_hash_stay_apart_when_runs_are_merged() -> None:
    old = pa.table({"#": [1, 1, 1], "key": ["a", "b", "c"], "=x": [1, 2, 3]})
    new = pa.table({"#": [1, 1], "key": ["c", "a"], "=x": [4, 5]})
    found = merged([old, new])
    assert dict(zip(found["key"].to_pylist(), found["=x"].to_pylist(), strict=True)) == {"a": 5, "b": 2, "c": 4}


def test_a_stream_s_function_outside_of_a_stream_is_refused(tmp_path: Path) -> None:
    driver = Driver(tmp_path, False)
    reading = Reading(("truck",), "truck", None, None, None, False)
    step = Stepping(reading, str(tmp_path / "index"), "a", None, "long", pa.int64(), "error", "subscription", "state")
    with pytest.raises(SparkError, match="no batch of a stream is running"):
        list(step(iter([])))
    assert driver.partial is False
