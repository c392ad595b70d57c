from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Tocsin

EVENTS = '{"price": 350.5, "city": "NYC"}\n'
RULES = """\
id,expression
all,price > 0
nyc,price > 0 AND city = 'NYC'
again,city = 'NYC' AND price > 0
narrow,"price BETWEEN 1 AND 10 AND city = 'NYC'"
odd,price > 3 AND price < 2
"""
FILES = {"rules.csv": RULES, "events.jsonl": EVENTS}


def test_the_forest_is_drawn_with_sizes(tocsin: Tocsin, tmp_path: Path) -> None:
    done = tocsin(
        *("covering", "rules.csv", "--events", "events.jsonl", "--graph", "strict", "--picture", "forest.png"),
        files=FILES,
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "5 subscriptions, 4 different; 1 roots cover 2 others, 1 can never match: 80.0% need not be forwarded",
        "all            ██████████████████████████████ 4",
        "└─ nyc, again  ██████████████████████ 3",
        "   └─ narrow   ████████ 1",
    ]
    assert (tmp_path / "forest.png").read_bytes().startswith(b"\x89PNG")


def test_the_forest_is_printed_as_json(tocsin_here: Tocsin) -> None:
    done = tocsin_here("covering", "rules.csv", "--events", "events.jsonl", "--json", files=FILES)
    counts, tree = map(json.loads, done.out.splitlines())
    assert counts == {"subscriptions": 5, "different": 4, "roots": 1, "covered": 2, "never": 1, "share": 0.8}
    assert tree["owners"] == ["all"] and sum(child["size"] for child in tree["children"]) == 3


def test_long_forests_are_cut_and_bad_rows_told(tocsin_here: Tocsin) -> None:
    rules = "id,expression\n" + "".join(f"r{i},price = {i}\n" for i in range(30)) + "bad,price =\n"
    files = {"rules.csv": rules, "events.jsonl": EVENTS}
    done = tocsin_here("covering", "rules.csv", "--events", "events.jsonl", "--most", "10", files=files)
    assert done.code == 1 and "rules.csv:32" in done.err
    assert len(done.out.splitlines()) == 12 and "and 20 more" in done.out
    done = tocsin_here("covering", "rules.csv", files=files)
    assert done.code == 2 and "--space FILE" in done.err


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(tocsin_here: Tocsin) -> None:
    for file, reason in (("forest.xyz", "ends in .png or .svg"), ("nowhere/forest.png", "there is no folder nowhere")):
        done = tocsin_here("covering", "rules.csv", "--events", "events.jsonl", "--picture", file, files=FILES)
        assert done.code == 2 and reason in done.err
