from __future__ import annotations

import json

from tests.cli.conftest import Done, Tocsin

EVENTS = '{"price": 350, "city": "NYC"}\n'
BAD = """\
id,expression
cheap,prise <= 400
open,price <
odd,price > 3 AND price < 2
cheap,city = 'LA'
fine,price > 1
loose,city IN (1, 2)
long,"price > 1
 AND nowhere = 2"
none,
"""


def test_every_bad_subscription_is_reported_with_line_column_and_reason(tocsin: Tocsin) -> None:
    done = tocsin("check", "rules.csv", "--events", "events.jsonl", files={"rules.csv": BAD, "events.jsonl": EVENTS})
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == [
        "rules.csv:2: column 1: there is no field 'prise'; did you mean price? (id 'cheap')",
        "  prise <= 400",
        "  ^",
        "rules.csv:3: column 7: something is missing after this (id 'open')",
        "  price <",
        "        ^",
        "rules.csv:4: it can never match: its conditions contradict each other (id 'odd')",
        "rules.csv:5: the id is given twice, first on line 2 (id 'cheap')",
        "rules.csv:7: 3 cells, where the header has 2; put an expression that has commas in double quotes",
        "rules.csv:8: column 6: there is no field 'nowhere'; there is city, price"
        " (line 2 of the expression) (id 'long')",
        "   AND nowhere = 2",
        "       ^",
        "rules.csv:10: the expression is missing (id 'none')",
        "1 good, 6 bad, 1 can never match",
    ]


def test_findings_are_printed_as_json(tocsin_here: Tocsin) -> None:
    rules = '{"id": 1, "expression": "price >> 2"}\n\n{"id": 2, "expression": "price < 1 AND price > 1"}\n{"id": }\n'
    files = {"rules.jsonl": rules, "events.jsonl": EVENTS}
    done = tocsin_here("check", "rules.jsonl", "--events", "events.jsonl", "--json", files=files)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1
    assert [(each["file"], each["line"], each["id"], each["kind"]) for each in found] == [
        ("rules.jsonl", 1, 1, "bad"),
        ("rules.jsonl", 3, 2, "never"),
        ("rules.jsonl", 4, None, "bad"),
    ]
    assert isinstance(found[0]["column"], int)
    assert (found[2]["column"], found[2]["reason"]) == (8, "expecting value")


def test_a_good_file_ends_with_0(tocsin: Tocsin) -> None:
    files = {"rules.csv": "id,expression\na,price > 1\n", "events.jsonl": EVENTS}
    assert tocsin("check", "rules.csv", "--events", "events.jsonl", files=files) == Done(
        0, "1 good, 0 bad, 0 can never match\n", ""
    )
    assert tocsin("check", "-", "--events", "events.jsonl", "--subscriptions-format", "csv", "--json",
                  stdin=files["rules.csv"]) == Done(0, "", "")  # fmt: skip


def test_the_space_must_come_from_somewhere(tocsin_here: Tocsin) -> None:
    done = tocsin_here("check", "rules.csv", files={"rules.csv": BAD})
    assert (done.code, done.out) == (2, "")
    assert "--space FILE (see `tocsin space`) or --events FILE" in done.err


def test_hostile_expressions_are_findings_not_crashes(tocsin_here: Tocsin) -> None:
    hostile = [
        "(" * 10_000 + "price" + ")" * 10_000,
        "price = " + "9" * 5_000,
        "a" * 100_000,
        "'",
        "\u0000",
        "NOT " * 5_000,
    ]
    rules = "".join(json.dumps({"id": n, "expression": text}) + "\n" for n, text in enumerate(hostile))
    files = {"rules.jsonl": rules, "events.jsonl": EVENTS}
    done = tocsin_here("check", "rules.jsonl", "--events", "events.jsonl", "--json", files=files)
    assert (done.code, done.err) == (1, "")
    assert {json.loads(line)["id"] for line in done.out.splitlines()} >= {2, 3, 4, 5}
