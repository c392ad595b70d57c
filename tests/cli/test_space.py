from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Tocsin

from tocsin.space import Number, Repeated, Space, Text, Time

EVENTS = '{"price": 1.5, "seller": {"city": "NYC"}, "tags": ["a"]}\n'


def test_the_space_of_a_table_is_drawn(tocsin_here: Tocsin) -> None:
    done = tocsin_here("space", "events.jsonl", files={"events.jsonl": EVENTS})
    rows = [line.split() for line in done.out.splitlines()]
    assert done.code == 0
    assert rows[2:] == [["price", "number", "double"], ["seller.city", "text"], ["tags", "repeated", "text"]]


def test_the_printed_space_is_what_the_library_loads(tocsin_here: Tocsin, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text(tocsin_here("space", "-", "--json", stdin=EVENTS).out)
    expected = Space({"price": Number(), "seller": {"city": Text()}, "tags": Repeated(Text())})
    assert Space.load(tmp_path / "space.json") == expected


def test_times_of_csv_are_recognised(tocsin_here: Tocsin, tmp_path: Path) -> None:
    events = "day,at\n2024-05-01,2024-05-01 10:00:00\n"
    done = tocsin_here("space", "-", "--events-format", "csv", "--json", stdin=events)
    (tmp_path / "space.json").write_text(done.out)
    assert Space.load(tmp_path / "space.json") == Space({"day": Time("date"), "at": Time("timestamp_ntz")})
