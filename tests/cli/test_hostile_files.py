"""Whatever bytes a file holds, reading it gives a table or a FileError: no other exception, no crash."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.cli.files import read_table
from tocsin.cli.inputs import Format, Input
from tocsin.cli.subscriptions import read_subscriptions
from tocsin.errors import FileError

TABLE = pa.table({"id": ["a", "b"], "expression": ["x > 1", None], "n": [1, 2], "l": [[1.5], None]})


def _parquet() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(TABLE, sink)
    return sink.getvalue()


def _arrow(is_file: bool) -> bytes:
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return bytes(sink.getvalue().to_pybytes())


WHOLE = {
    Format.parquet: [_parquet()],
    Format.arrow: [_arrow(True), _arrow(False)],
    Format.csv: [b'id,expression\na,"x > 1"\nb,\n'],
    Format.tsv: [b"id\texpression\na\tx > 1\n"],
    Format.jsonl: [b'{"id": 1, "expression": "x", "t": "2024-01-01T00:00:00Z"}\n{"id": 2, "expression": null}\n'],
    Format.json: [b'[{"id": "a", "expression": "x", "deep": {"l": [1, 2.5, null]}},\n{"id": "b"}]'],
}


@st.composite
def damaged(draw: st.DrawFn, format: Format) -> bytes:
    """A file that was whole once: cut, with bytes changed and others put in between; or bytes that never were one."""
    data = bytearray(draw(st.sampled_from(WHOLE[format])))
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(
            st.binary(max_size=4) | st.sampled_from([b'"', b"\n", b",", b"{"])
        )
    return bytes(data) if draw(st.integers(0, 9)) else draw(st.binary(max_size=64))


def read_or_refuse(format: Format, content: bytes) -> None:
    source = Input("file", format, pa.py_buffer(content))
    for read in (read_table, read_subscriptions):
        try:
            read(source)
        except FileError as error:
            assert str(error).startswith("file")


@pytest.mark.parametrize("format", list(Format))
@settings(deadline=None)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(format: Format, data: st.DataObject) -> None:
    read_or_refuse(format, data.draw(damaged(format)))


@pytest.mark.slow
@pytest.mark.parametrize("format", list(Format))
@settings(deadline=None, max_examples=5_000)
@given(data=st.data())
def test_many_damaged_files_are_read_or_refused(format: Format, data: st.DataObject) -> None:
    read_or_refuse(format, data.draw(damaged(format)))


@pytest.mark.parametrize("name", [b"expression", b"item"])
def test_a_name_that_is_not_utf_8_is_refused(name: bytes) -> None:
    content = _arrow(False).replace(name, name[:2] + b"\xff" + name[3:])
    with pytest.raises(FileError, match="the Arrow file is truncated, damaged or not Arrow"):
        read_table(Input("file", Format.arrow, pa.py_buffer(content)))
