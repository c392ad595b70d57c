"""Publications of ranges and sets on Spark: the transitions are those of the library's `Subjects`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tocsin
from tocsin import Interval, Number, Space, Subjects, Text
from tocsin import spark as ts
from tocsin.errors import MissingColumnError, SparkError
from tocsin.spark.changes import apply_changes
from tocsin.spark.manifest import Manifest, commit, read_manifest
from tocsin.spark.transitions_input import BUCKET, HASH, TIE, Reading
from tocsin.spark.transitions_worker import Stepping
from tocsin.spark.workers import REASON

DIMENSIONS = {"x": Number(), "n": Number("int64"), "s": Text()}
RANGES = {name: pa.struct([("low", kind), ("high", kind), ("closed", pa.string())]) for name, kind in
          (("x", pa.float64()), ("n", pa.int64()))}  # fmt: skip
TYPES = {
    "truck": pa.string(),
    "at": pa.int64(),
    "x": RANGES["x"],
    "n": pa.list_(RANGES["n"]),
    "s": pa.list_(pa.string()),
    "tags": pa.list_(pa.string()),
    "gone": pa.bool_(),
}
"""``tags`` are carried, and no dimension: its lists are no sets."""

SCHEMA = (
    "truck string, at bigint, x struct<low: double, high: double, closed: string>, "
    "n array<struct<low: bigint, high: bigint, closed: string>>, s array<string>, tags array<string>, gone boolean"
)


def interval(pick: random.Random, unit: int | float) -> Interval:
    low = pick.randint(-4, 8) * unit
    high, closed = low + pick.choice([0, 0, 2, 3, 7]) * unit, pick.choice(["both", "left", "right", "neither"])
    return Interval(
        *(None if pick.random() < 0.1 else bound for bound in (low, high)),
        closed="both" if low == high else closed,  # type: ignore[arg-type]
    )


def row_of(pick: random.Random, at: int) -> dict[str, Any]:
    """Return an update; its values are of the forms that `Subjects` takes."""
    return {
        "truck": f"k{pick.randint(0, 5)}",
        "at": at,
        "x": pick.choice([None, interval(pick, 0.5), interval(pick, 0.5)]),
        "n": pick.choice([None, frozenset(interval(pick, 1) for _ in range(pick.randint(1, 3)))]),
        "s": frozenset(pick.sample(["a", "ab", "b", "é", ""], pick.randint(1, 3))),
        "tags": pick.choice([None, [], ["a", None]]),
        "gone": pick.random() < 0.15,
    }


def stored(value: Any) -> Any:
    """Return a value as a column holds it."""
    if isinstance(value, Interval):
        return {"low": value.low, "high": value.high, "closed": value.closed}
    return [stored(each) for each in value] if isinstance(value, frozenset) else value


def expression(pick: random.Random) -> str:
    low = pick.randint(-4, 6)
    return pick.choice(
        [
            f"x BETWEEN {low} AND {low + 1.5}",
            f"n > {low} AND n < {low + 2}",
            f"x > {low} AND x < {low + 0.5} AND s = 'a'",
            f"x <= {low} OR n = {low}",
            "s LIKE 'a%' AND n IS NOT NULL",
            "x IS NULL",
            f"s IN ('b', 'é') AND n >= {low}",
        ]
    )


def step(folder: Path, batch: int, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run a batch of the one bucket, as Spark does."""
    columns = {name: pa.array([stored(row[name]) for row in rows], kind) for name, kind in TYPES.items()}
    columns |= {HASH: pa.array([int(row["truck"][1:]) for row in rows], pa.int64())}
    columns |= {TIE: pa.array(range(len(rows)), pa.int64()), BUCKET: pa.array([0] * len(rows), pa.int32())}
    reading = Reading(tuple(TYPES), "truck", "at", "gone", None, False)
    index, state = str(folder / "index"), str(folder / "state")
    build = read_manifest(index).build
    run = Stepping(reading, index, build, None, "long", pa.int64(), "error", "subscription", state, 1, "q", batch)
    return [row for out in run(iter(pa.table(columns).to_batches(max_chunksize=3))) for row in out.to_pylist()]


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_a_bucket_of_ranges_and_sets_gives_the_transitions_of_the_library(tmp_path: Path, unspecified: str) -> None:
    space = Space(DIMENSIONS, unspecified=unspecified)  # type: ignore[arg-type]
    told = 0
    for seed in range(8):
        pick = random.Random(f"regions {unspecified} {seed}")
        subjects, folder = Subjects(space), tmp_path / str(seed)
        index = str(folder / "index")
        commit(index, Manifest(1, space.to_json(), False, "long", "adaptive"))
        held: dict[int, str] = {}
        for batch in range(3):
            expected: Counter[tuple[Any, ...]] = Counter()
            changes: dict[int, str | None] = {pick.randint(0, 7): expression(pick) for _ in range(4)}
            changes |= dict.fromkeys(pick.sample(sorted(held), min(len(held), 1)))
            for id, text in changes.items():
                if id in held:
                    now = subjects.unsubscribe(id) if text is None else subjects.change(id, text)
                else:
                    now = subjects.subscribe(id, text)
                expected += Counter((key, None, id, kind) for kind, key, id in now)
            held = {id: text for id, text in (held | changes).items() if text is not None}
            table = pa.table({"id": list(changes), "expression": pa.array(changes.values(), pa.string())})
            apply_changes(index, read_manifest(index), table, True, {})
            rows = [row_of(pick, 20 * batch + number) for number in range(20)]
            for row in rows:
                if row["gone"]:
                    now = subjects.delete(row["truck"]) if row["truck"] in subjects else []
                else:
                    now = subjects.put(row["truck"], {name: row[name] for name in DIMENSIONS})
                expected += Counter((key, row["at"], id, kind) for kind, key, id in now)
            found = step(folder, batch, pick.sample(rows, len(rows)))
            assert not any(row[REASON] for row in found)
            turns = [(row["truck"], row["at"], row["subscription"], row["transition"]) for row in found]
            assert Counter(turn for turn in turns if turn[3]) == expected, f"seed {seed}, batch {batch}"
            told += expected.total()
    assert told > 500


def test_ranges_and_sets_are_columns_of_a_batch_and_what_holds_no_value_is_refused(spark: SparkSession) -> None:
    def at(low: Any, high: Any, closed: str | None = None) -> dict[str, Any]:
        return {"low": low, "high": high, "closed": closed}

    rows = [
        ("a", 1, at(1.0, 2.0), [at(3, 4)], ["a", "b"], [], False),
        ("a", 2, at(2.0, 3.0, "right"), None, ["b"], None, False),
        ("a", 3, at(None, None), [at(7, 7), at(9, None)], None, None, False),
        ("b", 1, at(5.0, 4.0), None, None, None, False),
        ("b", 2, None, [at(3, 4, "neither")], None, None, False),
        ("b", 3, None, None, [], None, False),
        ("b", 4, None, None, ["a", None], None, False),
        ("b", 5, at(1.0, 2.0, "most"), None, None, None, False),
        ("b", 6, None, [at(1, 1)] * 40, ["a"] * 40, None, False),
        ("c", 1, None, None, [], None, True),
    ]
    updates = spark.createDataFrame(rows, SCHEMA)
    texts = [("two", "x = 2"), ("seven", "n = 7"), ("b", "s = 'b'"), ("both", "x < 1.5 AND s = 'b'")]
    subscriptions = spark.createDataFrame(texts, "id string, expression string")
    quarantine = ts.Quarantine()
    options: dict[str, Any] = {"key": "truck", "order": "at", "deleted": "gone", "quarantine": quarantine}
    found = ts.transitions(updates, subscriptions, space=Space(DIMENSIONS), **options).collect()
    assert sorted((row["at"], row["subscription"], row["transition"]) for row in found) == [
        (1, "b", "enter"),
        (1, "both", "enter"),
        (1, "two", "enter"),
        (2, "both", "leave"),
        (2, "two", "leave"),
        (3, "b", "leave"),
        (3, "seven", "enter"),
        (3, "two", "enter"),
    ]
    (first,) = [row for row in found if row["at"] == 1 and row["subscription"] == "b"]
    assert (first["x"]["low"], first["n"][0]["high"], first["s"], first["tags"]) == (1.0, 4, ["a", "b"], [])
    reasons = {row["at"]: row["reason"] for row in quarantine.events.collect()}
    assert sorted(reasons) == [1, 2, 3, 4, 5, 6]
    assert "the lower bound of [5.0, 4.0] is above the upper" in reasons[1] and "holds no value" in reasons[2]
    assert reasons[3] == "field s: the set is empty; NULL is no value"
    assert reasons[4] == "field s: a member of the set is NULL"
    assert "closed is 'most', not both, left, right or neither" in reasons[5]
    assert reasons[6] == "the sets make 1,600 combinations; the limit is 1,024"


def test_columns_that_are_no_ranges_are_refused_before_anything_runs(spark: SparkSession) -> None:
    subscriptions = spark.createDataFrame([(1, "x > 1")], "id bigint, expression string")
    space = tocsin.Space({"x": Number()})
    for kind in (
        "low: double, high: int",
        "low: double, high: double, closed: int",
        "low: double, high: double, z: int",
    ):
        updates = spark.createDataFrame([], f"k int, x struct<{kind}>")
        with pytest.raises(SparkError, match="a range is a struct of low and high, of one type"):
            ts.transitions(updates, subscriptions, key="k", space=space)
    for schema, error, message in (
        ("k int, x struct<least: double, most: double>", MissingColumnError, "no column x"),
        ("k int, x array<string>", SparkError, r"the column x of the events is text, but the index was built for"),
    ):
        with pytest.raises(error, match=message):
            ts.transitions(spark.createDataFrame([], schema), subscriptions, key="k", space=space)


def test_a_bad_element_of_a_list_refuses_its_row_and_no_other(spark: SparkSession) -> None:
    updates = spark.createDataFrame([(1, ["::1", "?"]), (2, ["::1", None])], "k int, ips array<string>")
    subscriptions = spark.createDataFrame([(7, "ips = '::1'")], "id int, expression string")
    space, quarantine = tocsin.Space({"ips": tocsin.Repeated(tocsin.Address())}), ts.Quarantine()
    found = ts.transitions(updates, subscriptions, key="k", space=space, quarantine=quarantine).collect()
    assert [(row["k"], row["subscription"], row["transition"]) for row in found] == [(2, 7, "enter")]
    assert [(row["k"], row["reason"][:17]) for row in quarantine.events.collect()] == [(1, "field ips: '?' is")]
