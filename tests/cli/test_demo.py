from __future__ import annotations

import json

import duckdb
import numpy as np
from tests.cli.conftest import Tocsin

from tocsin.cli.demo import SPACE, offers, searches
from tocsin.matcher import Matcher


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


def test_the_demo_tells_a_story_and_counts(tocsin: Tocsin) -> None:
    told = tocsin("demo", "--searches", "500", "--offers", "100")
    assert told.code == 0
    assert "500 saved searches, such as" in told.out
    assert "searches ring, such as" in told.out
    counted = tocsin("demo", "--searches", "500", "--offers", "100", "--json")
    facts = json.loads(counted.out)
    assert (facts["searches"], facts["offers"]) == (500, 100)
    assert f"100 offers, {facts['matches']:,} matches in " in told.out


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
