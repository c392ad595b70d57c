from __future__ import annotations

import json

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
