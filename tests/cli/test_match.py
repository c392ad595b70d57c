from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.cli.conftest import Done, Tocsin

from tocsin.cli.files import read_table
from tocsin.cli.inputs import Input

OFFERS = """\
{"item": "bicycle", "price": 350, "city": "NYC"}
{"item": "bicycle", "price": 500, "city": "NYC"}
{"item": "desk lamp", "price": 15, "city": "LA"}
"""
SEARCHES = """\
id,expression
cheap,price <= 400 AND city = 'NYC'
lamps,item LIKE '%lamp'
coast,"city IN ('LA', 'SF') OR price < 20"
"""
FILES = {"offers.jsonl": OFFERS, "searches.csv": SEARCHES}
MATCHES = [(0, "cheap"), (2, "coast"), (2, "lamps")]


def pairs(text: str) -> list[tuple[int, str]]:
    return [tuple(json.loads(line).values()) for line in text.splitlines()]


def test_matches_are_drawn_as_a_table(tocsin: Tocsin) -> None:
    done = tocsin("match", "offers.jsonl", "searches.csv", files=FILES)
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["event", "subscription"]
    assert rows[2:] == [[str(event), id] for event, id in MATCHES]


def test_matches_are_printed_as_json_with_columns_of_the_events(tocsin: Tocsin) -> None:
    done = tocsin("match", "offers.jsonl", "searches.csv", "--json", "--with", "price", "--with", "city", files=FILES)
    assert done.code == 0
    assert json.loads(done.out.splitlines()[0]) == {"event": 0, "subscription": "cheap", "price": 350, "city": "NYC"}


def test_events_come_through_a_pipe_and_results_go_into_files(tocsin: Tocsin, tmp_path: Path) -> None:
    for name, to in (("out.parquet", []), ("out.csv", []), ("out", ["--to", "arrow"])):
        done = tocsin("match", "-", "searches.csv", "--output", name, *to, stdin=OFFERS, files=FILES)
        assert done == Done(0, "", "")
    assert pa.parquet.read_table(tmp_path / "out.parquet").to_pydict() == {
        "event": [0, 2, 2],
        "subscription": ["cheap", "coast", "lamps"],
    }
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == '0,"cheap"'
    with pa.ipc.open_stream((tmp_path / "out").read_bytes()) as stream:
        assert stream.read_all().num_rows == 3


def test_every_format_of_events_and_every_engine_gives_the_same_matches(tocsin_here: Tocsin, tmp_path: Path) -> None:
    table = pa.Table.from_pylist([json.loads(line) for line in OFFERS.splitlines()])
    pa.parquet.write_table(table, tmp_path / "offers.parquet")
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    csv = "item,price,city\nbicycle,350,NYC\nbicycle,500,NYC\ndesk lamp,15,LA\n"
    array = f"[{','.join(OFFERS.splitlines())}]"
    more = FILES | {"offers.csv": csv, "offers.json": array, "offers.tsv": csv.replace(",", "\t")}
    for name in ("offers.parquet", "offers.csv", "offers.tsv", "offers.json"):
        assert pairs(tocsin_here("match", name, "searches.csv", "--json", files=more).out) == MATCHES
    assert pairs(tocsin_here("match", "-", "searches.csv", "--json", stdin=stream.getvalue()).out) == MATCHES
    options = ["--events-format", "csv", "--engine", "scan"]
    assert pairs(tocsin_here("match", "-", "searches.csv", "--json", *options, stdin=csv).out) == MATCHES


def test_subscriptions_keep_the_type_of_their_ids(tocsin_here: Tocsin) -> None:
    rules = '[{"rule": 7, "where": "price > 400"},\n {"rule": 8, "where": "price < 20"}]'
    columns = ["--id", "rule", "--expression", "where"]
    done = tocsin_here("match", "offers.jsonl", "rules.json", "--json", *columns, files=FILES | {"rules.json": rules})
    assert done.out == '{"event": 1, "subscription": 7}\n{"event": 2, "subscription": 8}\n'


def test_events_are_numbered_through_the_whole_file(tocsin: Tocsin, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"x": range(150_000)}), tmp_path / "events.parquet")
    files = {"rules.csv": "id,expression\na,x = 3 OR x = 149999\n"}
    assert pairs(tocsin("match", "events.parquet", "rules.csv", "--json", files=files).out) == [
        (3, "a"),
        (149_999, "a"),
    ]


def test_a_declared_space_decides_how_columns_are_read(tocsin: Tocsin) -> None:
    files = {
        "events.csv": "zip,at\n00501,2024-05-01T10:00:00+02:00\n",
        "rules.csv": "id,expression\na,zip = '00501'\nb,at = TIMESTAMP '2024-05-01 08:00:00'\n",
        "space.json": json.dumps(
            {
                "tocsin_space": 1,
                "unspecified": "null",
                "timezone": "UTC",
                "dimensions": [
                    {"path": ["zip"], "type": "text"},
                    {"path": ["at"], "type": "time", "kind": "timestamp"},
                ],
            }
        ),
    }
    done = tocsin("match", "events.csv", "rules.csv", "--space", "space.json", "--json", files=files)
    assert pairs(done.out) == [(0, "a"), (0, "b")]


def test_bad_subscriptions_are_all_reported_and_nothing_is_matched(tocsin_here: Tocsin, tmp_path: Path) -> None:
    files = FILES | {"searches.csv": SEARCHES + "typo,prise < 5\nopen,price <\n"}
    done = tocsin_here("match", "offers.jsonl", "searches.csv", "--output", "out.csv", files=files)
    assert (done.code, done.out) == (1, "")
    assert "searches.csv:5: column 1: there is no field 'prise'; did you mean price?" in done.err
    assert "searches.csv:6: column 7: " in done.err
    assert not (tmp_path / "out.csv").exists()
    skipped = tocsin_here("match", "offers.jsonl", "searches.csv", "--json", "--skip-bad")
    assert (skipped.code, pairs(skipped.out)) == (1, MATCHES)
    assert skipped.err == done.err


def test_events_that_do_not_fit_are_reported_with_their_number(tocsin_here: Tocsin, tmp_path: Path) -> None:
    files = {
        "events.jsonl": '{"ip": "10.0.0.1"}\n{"ip": "no address"}\n{"ip": "10.0.0.2"}\n',
        "rules.csv": "id,expression\na,ip = '10.0.0.1'\nb,ip = '10.0.0.2'\n",
        "space.json": '{"tocsin_space": 1, "unspecified": "null", "timezone": "UTC",'
        ' "dimensions": [{"path": ["ip"], "type": "address"}]}',
    }
    command = ["match", "events.jsonl", "rules.csv", "--space", "space.json"]
    done = tocsin_here(*command, "--output", "out.csv", files=files)
    assert done.code == 1
    assert done.err.startswith("events.jsonl: event 1: field ip: 'no address' is no IP address")
    assert not (tmp_path / "out.csv").exists()
    skipped = tocsin_here(*command, "--json", "--skip-bad")
    assert (skipped.code, pairs(skipped.out), skipped.err) == (1, [(0, "a"), (2, "b")], done.err)


def test_unusable_input_ends_with_2_and_one_line(tocsin_here: Tocsin) -> None:
    files = FILES | {"empty.csv": "", "nulls.csv": "a,b\n,\n", "header.csv": "price,city\n"}
    for arguments, message in {
        ("offers.jsonl", "nowhere.csv"): "tocsin: nowhere.csv does not exist",
        ("offer.jsonl", "searches.csv"): "tocsin: offer.jsonl does not exist; did you mean offers.jsonl?",
        ("offers.jsonl", "empty.csv"): "tocsin: empty.csv is empty; a table was expected",
        (".", "searches.csv"): "tocsin: . is a directory; name one file in it",
        ("-", "-"): "tocsin: only one input can be standard input; give the other as a file",
        ("offers.jsonl", "searches.csv", "--id", "ID"): "tocsin: searches.csv has no column 'ID' (did you mean 'id'?)",
        ("offers.jsonl", "searches.csv", "--with", "prize"): "tocsin: offers.jsonl has no column 'prize' (did you mean",
        ("offers.jsonl", "searches.csv", "--engine", "fast"): "tocsin: there is no engine 'fast'; choose one of",
        ("nulls.csv", "searches.csv"): "tocsin: nulls.csv has no value in any of its columns (a, b), so that",
        ("header.csv", "searches.csv"): "tocsin: header.csv has no value in any of its columns (price, city), so that",
        ("offers.jsonl", "searches.csv", "--with", "event"): "tocsin: --with event: the result has a column of that",
        ("offers.jsonl", "searches.csv", "--with", "price", "--with", "price"): "tocsin: --with price: it is asked for",
        ("offers.jsonl", "searches.csv", "-o", "no/out.csv"): "tocsin: no/out.csv cannot be written",
    }.items():
        done = tocsin_here("match", *arguments, files=files)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert done.err.startswith(message)


def test_a_column_that_subscriptions_test_may_be_declared_missing(tocsin_here: Tocsin) -> None:
    tocsin_here("space", "offers.jsonl", "--json", files=FILES)
    space = tocsin_here("space", "offers.jsonl", "--json").out
    files = {"space.json": space, "few.csv": "price\n5\n"}
    done = tocsin_here("match", "few.csv", "searches.csv", "--space", "space.json", files=files)
    assert done.code == 2
    assert done.err.startswith("tocsin: few.csv: the events have no column ")
    assert done.err.endswith("or say --missing unspecified\n")
    given = tocsin_here(
        "match", "few.csv", "searches.csv", "--space", "space.json", "--json", "--missing", "unspecified"
    )
    assert pairs(given.out) == [(0, "coast")]


def test_a_long_result_is_counted_beyond_what_is_drawn(tocsin: Tocsin) -> None:
    files = {"events.csv": "x\n" + "1\n" * 250, "rules.csv": "id,expression\na,x = 1\n"}
    done = tocsin("match", "events.csv", "rules.csv", files=files)
    assert len(done.out.splitlines()) == 102
    assert done.err == "tocsin: 250 rows, 100 shown; --json or --output FILE gives them all\n"


@pytest.mark.parametrize("ending", ["csv.gz", "jsonl.bz2", "csv.zst", "json.lz4", "parquet.gz"])
def test_a_result_is_compressed_as_its_name_says_and_reads_back(
    ending: str, tmp_path: Path, tocsin_here: Tocsin
) -> None:
    done = tocsin_here("match", "offers.jsonl", "searches.csv", "-o", f"out.{ending}", files=FILES)
    assert done.code == 0, done.err
    plain = pairs(tocsin_here("match", "offers.jsonl", "searches.csv", "--json").out)
    with pa.input_stream(tmp_path / f"out.{ending}", compression="detect") as stream:
        assert stream.read()[:2] != (tmp_path / f"out.{ending}").read_bytes()[:2]
    table = read_table(Input.open(str(tmp_path / f"out.{ending}")))
    assert [*zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)] == plain
