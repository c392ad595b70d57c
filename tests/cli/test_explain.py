from __future__ import annotations

import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Done, Tocsin

ONE = ["--event", '{"price": 1}']
RULES = ["--subscriptions", "rules.csv"]
FILES = {
    "events.csv": "price,city\n350,NYC\n500,NYC\n",
    "rules.csv": "id,expression\ncheap,price <= 400 AND city = 'NYC'\n7,price > 1\nbroken,price <\n",
}


def test_an_event_and_an_expression_are_explained_as_they_stand(tocsin: Tocsin) -> None:
    done = tocsin("explain", "--event", '{"price": 500, "city": "NYC"}', "--where", "price <= 400 AND city = 'NYC'")
    assert done == Done(0, "the subscription does not match\n  ✗ price <= 400    price is 500, above 400 by 100\n", "")


def test_rows_of_files_are_explained(tocsin: Tocsin) -> None:
    command = ["explain", "--events", "events.csv", "--subscriptions", "rules.csv", "--subscription", "cheap"]
    assert tocsin(*command, "--row", "0", files=FILES).out.startswith("cheap matches\n")
    done = tocsin(*command, "--row", "1", "--json")
    found = json.loads(done.out)
    assert (found["id"], found["matches"]) == ("cheap", False)
    assert found["clauses"][0]["text"] == "price <= 400"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "say which event: either --event JSON, or --events FILE with --row"),
        (["--event", "{}", "--events", "events.csv"], 2, "say which event"),
        (["--event", '{"price": }', "--where", "price > 1"], 2, "--event: line 1, column 11: expecting value"),
        (ONE, 2, "say which subscription: either --where EXPRESSION, or --subscriptions FILE"),
        ([*ONE, *RULES], 2, "say which of the 3 subscriptions in rules.csv"),
        ([*ONE, *RULES, "--subscription", "chip"], 1, "no subscription 'chip'"),
        ([*ONE, *RULES, "--subscription", "broken"], 1, "something is missing"),
        ([*ONE, "--where", "prise > 1"], 1, "there is no field 'prise'; did you mean price?"),
        (["--events", "events.csv", "--row", "9", "--where", "price > 1"], 2, "events.csv has no row 9; it has 2"),
    ],
)
def test_what_is_missing_is_said(tocsin_here: Tocsin, arguments: list[str], code: int, message: str) -> None:
    done = tocsin_here("explain", *arguments, files=FILES)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("ids", "wanted", "said"),
    [
        (pa.array([1.0, 2.5]), "1.0", "1.0 matches"),
        (pa.array([1.0, 2.5]), "1", "1.0 matches"),
        (pa.array([b"\xff\xfe", b"b"]), "b", "does not match"),
        (pa.array([datetime(2026, 1, 1), datetime(2027, 1, 1)]), "2026-01-01T00:00:00", "matches"),
        (pa.array([True, False]), "true", "True matches"),
        (pa.array([1, 2]), "3", "rules.parquet has no subscription '3'; its first are 1, 2"),
        (pa.array(["a", "a"]), "a", "rules.parquet has 2 subscriptions 'a'; ids are unique"),
        (pa.array(["a", "null"]), "null", "the expression of 'null' in rules.parquet is NULL"),
    ],
    ids=["double", "whole double", "bytes", "timestamp", "boolean", "unknown", "twice", "without expression"],
)
def test_a_subscription_is_found_by_its_id_of_any_type(
    tocsin_here: Tocsin, ids: pa.Array, wanted: str, said: str
) -> None:
    expressions = ["price < 5", None if ids[1].as_py() == "null" else "price > 5"]
    pq.write_table(pa.table({"id": ids, "expression": expressions}), "rules.parquet")
    done = tocsin_here("explain", *ONE, "--subscriptions", "rules.parquet", "--subscription", wanted)
    assert said in done.out + done.err
    assert "Traceback" not in done.err


def test_an_id_beside_an_expression_is_refused(tocsin_here: Tocsin) -> None:
    done = tocsin_here("explain", *ONE, "--where", "price > 1", "--subscription", "cheap")
    assert done.code == 2
    assert "with --where leave it out" in done.err
