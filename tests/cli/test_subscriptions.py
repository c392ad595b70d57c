from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tocsin.cli.inputs import Format, Input
from tocsin.cli.subscriptions import Fault, Subscriptions, read_subscriptions
from tocsin.errors import FileColumnError, FileFormatError


def read(content: str | bytes, format: Format, **columns: str) -> Subscriptions:
    data = content if isinstance(content, bytes) else content.encode()
    return read_subscriptions(Input("rules", format, pa.py_buffer(data)), **columns)


def test_csv_rows_keep_the_line_they_start_on() -> None:
    found = read('id,expression\n007,x > 1\n\nb,"x > 1\n AND y = 2"\nc,y = 1\n', Format.csv)
    assert found.table.to_pydict() == {
        "id": ["007", "b", "c"],
        "expression": ["x > 1", "x > 1\n AND y = 2", "y = 1"],
    }
    assert (found.place, list(found.lines), found.faults) == ("line", [2, 4, 6], [])


def test_json_lines_and_arrays_keep_ids_and_lines() -> None:
    lines = '{"id": 1, "expression": "x > 1"}\n\n{"id": 2, "expression": "y", "owner": "me"}\n'
    array = '[{"id": 1, "expression": "x > 1"},\n\n{"id": 2, "expression": "y", "owner": "me"}]'
    for found in (read(lines, Format.jsonl), read(array, Format.json)):
        assert found.table.to_pydict() == {"id": [1, 2], "expression": ["x > 1", "y"]}
        assert list(found.lines) == [1, 3]


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = str(tmp_path / "rules.parquet")
    pa.parquet.write_table(pa.table({"rule": [3, 4], "where": ["x", "y"]}), path)
    found = read_subscriptions(Input.open(path), id="rule", expression="where")
    assert found.table.to_pydict() == {"id": [3, 4], "expression": ["x", "y"]}
    assert (found.place, list(found.lines)) == ("row", [1, 2])


def test_every_bad_row_is_a_fault_and_the_others_remain() -> None:
    found = read(
        "\n".join(
            [
                '{"id": "a", "expression": "x"}',
                '{"id": "b", "expression": }',
                '{"id": "c"}',
                '{"expression": "x"}',
                '{"id": 7, "expression": "x"}',
                '{"id": ["d"], "expression": "x"}',
                '{"id": "e", "expression": 5}',
                "null",
                '{"id": "f", "expression": "y"}',
            ]
        ),
        Format.jsonl,
    )
    assert found.table["id"].to_pylist() == ["a", "f"]
    assert list(found.lines) == [1, 9]
    assert found.faults == [
        Fault(2, 27, None, "expecting value"),
        Fault(3, None, "c", "the expression is missing"),
        Fault(4, None, None, "the id is missing"),
        Fault(5, None, 7, "the id is a number, but on line 1 it is a text; ids of one file are of one kind"),
        Fault(6, None, ["d"], "the id is an array; a text or an integer is expected"),
        Fault(7, None, "e", "the expression is a number; a text is expected"),
        Fault(8, 1, None, "it is null, where an object { … } is expected"),
    ]


def test_bad_csv_rows_are_faults() -> None:
    found = read('id,expression\na,x IN (1, 2)\n,x\nb,\nc,"x\n', Format.csv)
    assert [(fault.line, fault.reason) for fault in found.faults] == [
        (2, "3 cells, where the header has 2; put an expression that has commas in double quotes"),
        (3, "the id is missing"),
        (4, "the expression is missing"),
        (5, "unexpected end of data"),
    ]


def test_an_id_beyond_64_bits_is_a_fault_not_a_crash() -> None:
    found = read('{"id": 99999999999999999999, "expression": "x"}', Format.jsonl)
    assert found.faults[0].reason == "the id is beyond 64-bit integers; write it as a text"
    assert found.table.num_rows == 0


@pytest.mark.parametrize(
    ("content", "format"),
    [("ID,expression\na,x\n", Format.csv), ('{"ID": 1, "expression": "x"}', Format.jsonl)],
)
def test_a_missing_column_is_one_error(content: str, format: Format) -> None:
    with pytest.raises(FileColumnError, match=r"no column 'id' \(did you mean 'ID'\?\); it has: ID, expression"):
        read(content, format)


def test_text_that_is_not_utf8_is_refused_with_its_line() -> None:
    with pytest.raises(FileFormatError, match="rules: line 2, byte 4: 0xe9 is not UTF-8"):
        read(b"id,expression\na,'\xe9'\n", Format.csv)
