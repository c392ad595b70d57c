from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tocsin.cli.files import read_batches, read_table, require_columns
from tocsin.cli.inputs import Format, Input
from tocsin.cli.results import open_result
from tocsin.errors import FileColumnError, FileError, FileFormatError

ROWS = [
    {"id": 1, "city": "Zürich", "price": 9.5},
    {"id": 2, "city": "", "price": None},
    {"id": 9007199254740993, "city": None, "price": float("-inf")},
]
TABLE = pa.Table.from_pylist(ROWS)


def write(tmp_path: Path, name: str, content: bytes | str) -> str:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def fails(path: str, format: Format | None = None, types: dict[str, pa.DataType] | None = None) -> str:
    with pytest.raises(FileError) as caught:
        read_table(Input.open(path, format), types)
    return str(caught.value).replace(path, "FILE")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv", "t.arrow"])
def test_what_is_written_reads_back_the_same(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with open_result(path, None, TABLE.schema) as put:
        for batch in TABLE.to_batches(2):
            put(batch)
    assert read_table(Input.open(path)).to_pylist() == ROWS
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_json_reads_back_the_same_but_for_infinities(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with open_result(path, None, TABLE.schema) as put:
        put(TABLE.slice(0, 2).to_batches()[0])
    assert read_table(Input.open(path)).to_pylist() == ROWS[:2]


@pytest.mark.parametrize("name", ["t.feather", "t.ipc"])
def test_arrow_files_and_streams_are_told_apart_by_their_bytes(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    pa.feather.write_feather(TABLE, path)
    assert read_table(Input.open(path)).to_pylist() == ROWS


@pytest.mark.parametrize("name", ["t.arrow", "t.feather", "t.ipc"])
def test_files_of_arrow_are_written_as_its_readers_expect_them(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with open_result(path, None, TABLE.schema) as put:
        put(TABLE.to_batches()[0])
    assert pa.feather.read_table(path).to_pylist() == ROWS


def test_a_stream_of_arrow_is_written_where_the_name_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.arrows"
    with open_result(str(path), None, TABLE.schema) as put:
        put(TABLE.to_batches()[0])
    assert pa.ipc.open_stream(path.read_bytes()).read_all().to_pylist() == ROWS


def test_compressed_text_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv.gz", gzip.compress(b"a,b\n1,x\n"))
    assert read_table(Input.open(path)).to_pylist() == [{"a": 1, "b": "x"}]


def test_batches_have_a_bounded_size_and_a_known_number_of_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pa.parquet.write_table(pa.table({"a": range(150_000)}), path)
    batches = read_batches(Input.open(path))
    assert batches.rows == 150_000
    assert [batch.num_rows for batch in batches] == [65_536, 65_536, 18_928]


def test_csv_tells_missing_from_empty_and_keeps_quoted_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", 'a,b\n,x\n"",y\n"two\nlines",z\n')
    assert read_table(Input.open(path))["a"].to_pylist() == [None, "", "two\nlines"]


def test_csv_types_can_be_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "zip\n00501\n")
    assert read_table(Input.open(path))["zip"].to_pylist() == [501]
    assert read_table(Input.open(path), {"zip": pa.string()})["zip"].to_pylist() == ["00501"]


def test_json_text_that_looks_like_a_time_stays_text_unless_declared(tmp_path: Path) -> None:
    text = "2024-05-01T10:00:00+02:00"
    path = write(tmp_path, "t.jsonl", f'{{"at": "{text}", "in": {{"at": ["{text}"]}}}}')
    assert read_table(Input.open(path)).to_pylist() == [{"at": text, "in": {"at": [text]}}]
    table = read_table(Input.open(path), {"at": pa.timestamp("us", "UTC")})
    assert table["at"].cast(pa.int64()).to_pylist() == [1714550400000000]
    assert table["in"].to_pylist() == [{"at": [text]}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.json", '[{"a": 1, "b": {"c": "x"}},\n {"a": null,\n "d": [1]}]'),
        ("t.json", '{"a": 1, "b": {"c": "x"}}\n{"a": null, "d": [1]}\n'),
        ("t.jsonl", '\ufeff{"a": 1, "b": {"c": "x"}}\r\n\r\n{"a": null, "d": [1]}'),
    ],
)
def test_json_arrays_and_lines_give_the_same_table(tmp_path: Path, name: str, content: str) -> None:
    assert read_table(Input.open(write(tmp_path, name, content))).to_pylist() == [
        {"a": 1, "b": {"c": "x"}, "d": None},
        {"a": None, "b": None, "d": [1]},
    ]


def test_no_lines_of_json_are_a_table_without_rows(tmp_path: Path) -> None:
    assert read_table(Input.open(write(tmp_path, "t.jsonl", b" \n\n"))).num_rows == 0


def test_an_empty_array_is_a_table_without_rows(tmp_path: Path) -> None:
    assert read_table(Input.open(write(tmp_path, "t.json", "[ ]"))).num_rows == 0


def truncated_parquet() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(TABLE, sink)
    return sink.getvalue()[:-20]


def truncated_arrow() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TABLE.schema) as stream:
        stream.write_table(TABLE)
    return bytes(sink.getvalue().to_pybytes()[:-100])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "FILE is empty; a table was expected"),
        ("t.json", b" \n\n", "FILE is empty; a table was expected"),
        ("t.dat", b"a,b\n1,2\n", "cannot tell the format of FILE; give it as an option: parquet, csv"),
        ("t.csv", b"a,b\n1,2\n3\n", "FILE: line 3: 1 cells, where the header has 2"),
        ("t.csv", b'a,b\n"x\ny",2\n3\n', "FILE: line 4: 1 cells, where the header has 2"),
        ("t.csv", b"a,a\n1,2\n", "FILE: line 1: the header names a column twice: a"),
        ("t.csv", b"a,b\n1,x\n2,\xff\n", "FILE: line 3, byte 3: 0xff is not UTF-8; save the file as UTF-8"),
        ("t.csv", "a,b\n1,x\n".encode("utf-16"), "FILE is UTF-16 text; save it as UTF-8"),
        ("t.jsonl", b'{"a": 1}\n\n{"a": }\n', "FILE: line 3, column 7: expecting value"),
        ("t.jsonl", b'{"a": 1}\n[2]\n', "FILE: line 2, column 1: it is an array, where an object"),
        ("t.jsonl", b'{"a": 1}\n{"a": "x"}\n', "FILE: line 2: 'a' is a text, but on line 1 it is a number"),
        ("t.jsonl", b'{"a": 1, "a": 2}\n', "FILE: line 1, column 1: the key 'a' is given twice"),
        ("t.jsonl", b'{"a": "\xff"}\n', "FILE: line 1, byte 8: 0xff is not UTF-8"),
        ("t.jsonl", b'{"a":' * 50_000, "FILE: line 1: it is nested 50,000 deep; the limit is 100"),
        (
            "t.json",
            b'[{"a": 1},\n {"a": 2}',
            "FILE: line 2, column 10: ',' or ']' is expected after an element",
        ),
        ("t.json", b'[{"a": 1}]\n]', "FILE: line 2, column 1: there is more after the end of the array"),
        ("t.json", b'[{"a": 1}, 7]', "FILE: line 1, column 12: it is a number, where an object"),
        (
            "t.parquet",
            b"id,price\n1,2\n",
            "FILE: it is not a Parquet file: it begins with b'id,p', not b'PAR1'",
        ),
        ("t.parquet", b'{"a": 1}\n', "(it looks like jsonl)"),
        ("t.parquet", truncated_parquet(), "FILE: the Parquet file is truncated or damaged"),
        ("t.csv", truncated_parquet(), "(it looks like parquet)"),
        (
            "t.arrow",
            b"not arrow at all, by no means",
            "FILE: the Arrow file is truncated, damaged or not Arrow",
        ),
        ("t.arrow", b"ARROW1\0\0", "FILE: the Arrow file is truncated, damaged or not Arrow"),
        ("t.arrow", truncated_arrow(), "FILE: the Arrow file is truncated, damaged or not Arrow"),
        ("t.csv.gz", b"a,b\n1,2\n", "FILE cannot be read: "),
    ],
)
def test_a_bad_file_is_refused_with_the_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    assert message in fails(write(tmp_path, name, content))


def test_a_cell_that_does_not_fit_its_declared_type_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a,b\n1,2\n1,cheap\n")
    assert fails(path, types={"b": pa.int64()}) == "FILE: line 3, column 'b': 'cheap' is no int64"


def test_a_missing_file_a_directory_and_a_forbidden_file_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "events.csv", "a\n1\n")
    assert fails(str(tmp_path / "event.csv")).startswith("FILE does not exist; did you mean ")
    assert fails(str(tmp_path / "nowhere" / "event.csv")) == "FILE does not exist"
    assert fails(str(tmp_path)) == "FILE is a directory; name one file in it"


def test_a_missing_column_names_the_nearest() -> None:
    with pytest.raises(FileColumnError, match=r"t has no column 'id'; it has: price, city"):
        require_columns("t", ["price", "city"], ["price", "id"])


def test_an_interrupted_result_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), open_result(str(tmp_path / "t.csv"), None, TABLE.schema) as put:
        put(TABLE.to_batches()[0])
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "no" / "t.csv", "FILE cannot be written: No such file or directory"),
        (lambda folder: folder, "FILE is a directory; name a file in it"),
    ],
)
def test_an_impossible_destination_is_refused(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    path = str(make(tmp_path))
    with pytest.raises(FileError) as caught, open_result(path, Format.csv, TABLE.schema):
        pass
    assert str(caught.value).replace(path, "FILE") == message


def test_nested_columns_are_refused_by_csv_before_anything_is_written(tmp_path: Path) -> None:
    schema = pa.schema([("tags", pa.list_(pa.string()))])
    with (
        pytest.raises(FileError, match="csv cannot hold the nested column 'tags'"),
        open_result(str(tmp_path / "t.csv"), None, schema),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_format_errors_are_file_errors() -> None:
    assert issubclass(FileFormatError, FileError)
