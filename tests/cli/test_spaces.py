from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tocsin.cli.files import read_table
from tocsin.cli.inputs import Format, Input
from tocsin.cli.spaces import column_types, load_space
from tocsin.errors import FileError, FileFormatError, SpaceError
from tocsin.space import Boolean, Derived, Number, Repeated, Space, Text, Time

SPACE = Space(
    {
        "price": Number("decimal(20, 2)"),
        "count": Number("int64"),
        "at": Time(),
        "seller": {"city": Text(), "known": Boolean()},
        "tags": Repeated(Text()),
    }
)


def read(content: str, format: Format) -> pa.Table:
    return read_table(Input("events", format, pa.py_buffer(content.encode())), column_types(SPACE, format))


def test_a_space_read_from_its_file_is_the_same(tmp_path: Path) -> None:
    SPACE.save(tmp_path / "space.json")
    assert load_space(str(tmp_path / "space.json")) == SPACE


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("{", FileFormatError, "is not JSON: "),
        ("[]", SpaceError, "is not a space of format 1"),
        ('{"price": "double"}', SpaceError, "is not a space of format 1"),
        ("", FileError, "is empty"),
    ],
)
def test_a_bad_space_names_its_file(tmp_path: Path, content: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "space.json"
    path.write_text(content)
    with pytest.raises(error) as caught:
        load_space(str(path))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_declared_columns_lose_no_digit_of_json() -> None:
    text = '{"price": 123456789012345678.10, "at": "2024-05-01 10:00+02:00", "seller": {"city": "x"}, "tags": ["a"]}'
    (row,) = read(text, Format.jsonl).to_pylist()
    assert row["price"] == Decimal("123456789012345678.10")
    assert row["at"] == "2024-05-01 10:00+02:00"
    assert row["seller"] == {"city": "x", "known": None}
    assert (row["tags"], row["count"]) == (["a"], None)


def test_declared_columns_lose_no_digit_of_csv() -> None:
    (row,) = read("price,at,seller.city\n123456789012345678.10,2024-05-01,007\n", Format.csv).to_pylist()
    assert row == {"price": Decimal("123456789012345678.10"), "at": "2024-05-01", "seller.city": "007"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"count": 1}\n{"count": 1.5}', "events: line 2: 'count' is 1.5, where int64 is expected"),
        ('{"count": "x"}', "events: line 1: 'count' is 'x', where int64 is expected"),
        ('{"price": 1.234}', "events: line 1: 'price' is 1.234, where decimal128(20, 2) is expected"),
        ('{"at": 5}', "events: line 1: 'at' is 5, where string is expected"),
    ],
)
def test_a_value_that_is_not_of_its_declared_type_is_named_with_its_line(content: str, message: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read(content, Format.jsonl)
    assert str(caught.value) == message


def test_columns_under_a_synonym_are_typed_and_quantities_are_texts() -> None:
    kinds = {"price": Number(unit="USD"), "phone": Text(), "fax": Text(), "made": Number("int64")}
    space = Space(kinds | {"age": Derived("2026 - made", Number("int64"))}, synonyms={"tel": "phone"})
    wanted = {"price": pa.string(), "phone": pa.string(), "fax": pa.string(), "made": pa.int64(), "tel": pa.string()}
    assert column_types(space, Format.csv) == wanted
    assert column_types(space, Format.jsonl) == {name: kind for name, kind in wanted.items() if name != "price"}
