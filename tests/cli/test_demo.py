from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.conftest import Tocsin

from tocsin.bench import marketplace
from tocsin.bench.searches import SPACE, offers, searches
from tocsin.cli.demo import _fresh
from tocsin.matcher import Matcher
from tocsin.space import Space


def test_the_marketplace_is_matched_as_duckdb_would() -> None:
    random = np.random.default_rng(3)
    subscriptions, events = searches(400, random), offers(300, random)
    matcher = Matcher(SPACE)
    matcher.subscribe_many(subscriptions)
    found = matcher.match_batch(events)
    database = duckdb.connect()
    database.register("offers", events)
    expected = {
        (event, row["id"])
        for row in subscriptions.to_pylist()
        for (event,) in database.execute(
            f"SELECT n FROM (SELECT *, row_number() OVER () - 1 AS n FROM offers) WHERE {row['expression']}"
        ).fetchall()
    }
    assert len(expected) > 50
    assert set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected
    assert len(found) == len(expected)


@pytest.mark.xdist_group("spark")
def test_the_demo_matches_on_spark_and_leaves_tables_and_a_picture(
    tocsin_here: Tocsin, spark: SparkSession, tmp_path: Path
) -> None:
    done = tocsin_here("demo", "--searches", "50000", "--offers", "50000", "--output", "run", "--cores", "2", "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert (facts["searches"], facts["offers"]) == (50_000, 50_000)
    matcher = Matcher(Space.from_arrow(marketplace.offers(0).schema))
    matcher.subscribe_many(marketplace.searches(0))
    found = matcher.match_batch(marketplace.offers(0))
    assert facts["matches"] == len(found) > 1_000
    written = pq.read_table(tmp_path / "run" / "matches").select(["offer", "subscription"])
    pairs = [
        sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
        for table in (written, found)
    ]
    assert pairs[0] == pairs[1]
    assert (tmp_path / "run" / "demo.png").read_bytes()[:4] == b"\x89PNG"
    (tmp_path / "run" / "other").touch()
    refused = tocsin_here("demo", "--output", "run")
    assert (refused.code, refused.err) == (2, "tocsin: run holds other files; name a new directory with --output\n")


def test_a_place_that_cannot_be_written_is_told_before_spark_starts(tocsin_here: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = tocsin_here("demo", "--output", "file/run")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "tocsin: file/run cannot be written: Not a directory; name another directory with --output\n"


def test_two_demos_do_not_share_a_place(tocsin_here: Tocsin, tmp_path: Path) -> None:
    with _fresh(str(tmp_path / "run")) as folder:
        (folder / "offers").mkdir()
        refused = tocsin_here("demo", "--output", "run")
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == (
            "tocsin: another demo is writing to run; wait for it, or name another directory with --output\n"
        )
        assert (folder / "offers").is_dir()
    with _fresh(str(tmp_path / "run")) as folder:
        assert list(folder.iterdir()) == []


def test_a_large_marketplace_is_matched_as_the_scan_would() -> None:
    random = np.random.default_rng(5)
    subscriptions, events = searches(20_000, random), offers(100, random)
    found = []
    for engine in ("scan", "adaptive"):
        matcher = Matcher(SPACE, engine)
        matcher.subscribe_many(subscriptions)
        matches = matcher.match_batch(events)
        found.append(sorted(zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True)))
    assert found[0] == found[1]


def test_loading_is_measured(tocsin: Tocsin) -> None:
    done = tocsin("bench", "load", "--subscriptions", "200", "--engine", "scan", "--json")
    assert [json.loads(line)["subscriptions"] for line in done.out.splitlines()] == [20, 200]
    assert (done.code, done.err) == (0, "")


def _pairs(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
