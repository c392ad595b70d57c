"""Opening inputs: a path or standard input becomes one buffer with a name and a format.

A file is memory-mapped, so that one way of reading serves pipes and files alike and a bad text can be looked at twice.
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa

from tocsin.errors import FileError, FileFormatError


class Format(StrEnum):
    """The formats tables are read and written in."""

    parquet = "parquet"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    json = "json"
    arrow = "arrow"


SUFFIXES = {
    ".parquet": Format.parquet,
    ".pq": Format.parquet,
    ".csv": Format.csv,
    ".tsv": Format.tsv,
    ".jsonl": Format.jsonl,
    ".ndjson": Format.jsonl,
    ".json": Format.json,
    ".arrow": Format.arrow,
    ".arrows": Format.arrow,
    ".feather": Format.arrow,
    ".ipc": Format.arrow,
}
"""Which file name endings mean which format."""

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""Endings after the format's own: decompressed on the way in, compressed on the way out."""

DELIMITERS = {Format.csv: ",", Format.tsv: "\t"}
"""What separates the cells of a line."""


@dataclass(frozen=True)
class Input:
    """A whole input in memory or mapped to it: its name for messages, its format, its bytes."""

    name: str
    format: Format
    data: pa.Buffer

    @classmethod
    def open(cls, path: str, format: Format | None = None) -> Input:
        """Open a path, or standard input for ``-``; its name, or else its first bytes, tell the format."""
        name = "standard input" if path == "-" else path
        data = _bytes_of(path)
        chosen = format or format_of(path) or sniff(data)
        if chosen is not Format.jsonl and not data[: 1 << 20].to_pybytes().strip():
            raise FileError(f"{name} is empty; a table was expected")
        if chosen is None:
            raise FileError(f"cannot tell the format of {name}; give it as an option: {', '.join(Format)}")
        if chosen in (Format.csv, Format.tsv, Format.jsonl, Format.json):
            data = _as_utf8(name, data)
        if chosen is Format.json and data[:4096].to_pybytes().lstrip()[:1] != b"[":
            chosen = Format.jsonl
        return cls(name, chosen, data)


def format_of(path: str) -> Format | None:
    """Return the format a path's ending means, a compression ending aside; None when it means none.

    >>> format_of("events.csv.gz"), format_of("events.dat")
    (<Format.csv: 'csv'>, None)
    """
    return SUFFIXES.get(ending_of(path))


def ending_of(path: str) -> str:
    """Return how a file's name ends, a compression ending aside.

    >>> ending_of("events.CSV.gz"), ending_of("events")
    ('.csv', '')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _bytes_of(path: str) -> pa.Buffer:
    if path == "-":
        try:
            return pa.py_buffer(sys.stdin.buffer.read())
        except OSError as error:
            raise FileError(f"standard input cannot be read: {error.strerror or error}") from error
    file = Path(path)
    try:
        if file.is_dir():
            raise FileError(f"{path} is a directory; name one file in it")
        if file.suffix.lower() in COMPRESSED:
            with pa.input_stream(path, compression="detect") as stream:
                return pa.py_buffer(stream.read())
        if not file.is_file():  # a named pipe or a device cannot be mapped; a missing file fails here with its reason
            return pa.py_buffer(file.read_bytes())
        if file.stat().st_size == 0:
            return pa.py_buffer(b"")
        return pa.memory_map(path).read_buffer()
    except FileNotFoundError as error:
        near = difflib.get_close_matches(file.name, _siblings(file), 1)
        hint = f"; did you mean {file.with_name(near[0])}?" if near else ""
        raise FileError(f"{path} does not exist{hint}") from error
    except PermissionError as error:
        raise FileError(f"{path} may not be read: permission denied") from error
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {first_line(error)}") from error


def _siblings(file: Path) -> list[str]:
    return [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []


def sniff(data: pa.Buffer) -> Format | None:
    """Return the format that the first bytes show; CSV has no mark, so None may mean CSV."""
    start = data[:64].to_pybytes()
    if start.startswith(b"PAR1"):
        return Format.parquet
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Format.arrow
    return {b"[": Format.json, b"{": Format.jsonl}.get(start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1])


def _as_utf8(name: str, data: pa.Buffer) -> pa.Buffer:
    start = data[:4].to_pybytes()
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileFormatError(f"{name} is UTF-16 text; save it as UTF-8")
    return data.slice(3) if start.startswith(b"\xef\xbb\xbf") else data


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, for use inside a sentence."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
