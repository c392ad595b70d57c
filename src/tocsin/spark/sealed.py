"""Files of a stored index, and of a state of transitions: each written once and whole, under a name that tells its
size and checksum.

A manifest, which has a checksum of its own, names every file; so whoever reads one finds out whether it is what was
written. A disk that is full, or a directory that must not be written, is told with the path.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.errors import FileError, SavedIndexError
from tocsin.index.array_files import write_durably
from tocsin.index.saved import seal

_SEALED = re.compile(r".*\.(\d+)-([0-9a-f]{8})\.\w+")
_ANEW = "build anew: an index, or a state with its checkpoint"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_sealed(folder: Path, stem: str, suffix: str, contents: bytes | memoryview) -> str:
    """Write a file and return its name; nothing is left behind where that fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = write_sealed(Path(folder), "summary", "json", b"{}")
    ...     name, read_sealed(Path(folder) / name)
    ('summary.2-a3a6bf43.json', b'{}')
    """
    name = sealed_name(stem, suffix, contents)
    with writing(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            write_durably(folder / name, contents)
        except OSError:
            with suppress(OSError):
                (folder / name).unlink()
            raise
    return name


def sealed_name(stem: str, suffix: str, contents: bytes | memoryview) -> str:
    """Return the name of a file with these contents.

    >>> sealed_name("summary", "json", b"{}")
    'summary.2-a3a6bf43.json'
    """
    return f"{stem}.{len(contents)}-{zlib.crc32(contents):08x}.{suffix}"


def read_sealed(file: Path) -> bytes:
    """Return the contents of a file that `write_sealed` wrote; SavedIndexError with its name if they are others."""
    with reading(file):
        contents = file.read_bytes()
    check_sealed(file, contents)
    return contents


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Raise SavedIndexError with the name of a file that cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise SavedIndexError(f"{file}: missing, though it is needed; restore it or {_ANEW}") from None
    except OSError as error:
        raise SavedIndexError(f"{file}: cannot be read: {error.strerror or error}") from None


def check_sealed(file: Path, contents: bytes | memoryview, sums: bool = True) -> None:
    """Raise SavedIndexError unless a file has the size that its name tells and, with ``sums``, the checksum."""
    found = _SEALED.fullmatch(file.name)
    if found is None:
        raise SavedIndexError(f"{file}: a name that no file of an index or state has; {_ANEW}")
    if len(contents) != int(found[1]):
        raise SavedIndexError(f"{file}: {len(contents)} bytes, but {found[1]} were written; restore it or {_ANEW}")
    if sums and zlib.crc32(contents) != int(found[2], 16):
        raise SavedIndexError(f"{file}: damaged: its contents are not those that were written; restore it or {_ANEW}")


def sealed_text(kind: str, version: int, body: Any) -> str:
    """Return JSON values with their checksum, as the text of a file.

    >>> body_of(sealed_text("state", 3, {"a": 1}), "state", 3, "here", "start again")
    {'a': 1}
    """
    return json.dumps({f"tocsin_{kind}": version, "checksum": seal(body), "body": body}, ensure_ascii=False)


def body_of(text: str, kind: str, version: int, source: str, anew: str) -> Any:
    """Return the JSON values of a text that `sealed_text` made; SavedIndexError if they are others, or of another
    version: the ``source`` says where the text is from, ``anew`` what to do."""
    what = "an index" if kind == "index" else f"a {kind}"
    try:
        data = json.loads(text)
        found = data[f"tocsin_{kind}"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SavedIndexError(f"{source} is not the manifest of {what}, or damaged; {anew}") from None
    if found != version:
        raise SavedIndexError(
            f"{source} is {what} of format {found}, this is a Tocsin for format {version}; {anew}, or use the Tocsin "
            "that wrote it"
        )
    if "body" not in data or data.get("checksum") != seal(data["body"]):
        raise SavedIndexError(f"{source} is damaged: its checksum does not fit; {anew}")
    return data["body"]


def write_table(folder: Path, stem: str, table: pa.Table) -> str:
    """Write a table as Parquet and return the file's name."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return write_sealed(folder, stem, "parquet", memoryview(sink.getvalue()))


def read_table(file: Path, columns: list[str] | None = None) -> pa.Table:
    """Return a table that `write_table` wrote."""
    contents = read_sealed(file)
    try:
        return pq.read_table(pa.BufferReader(contents), columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise SavedIndexError(f"{file}: cannot be read: {error}") from None


def note_latest(file: Path, number: int) -> None:
    """Write down the highest number that there has been, which only tells if what has that number goes missing: where
    it cannot be written, the number before stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     note_latest(Path(folder) / "latest", 7)
    ...     latest_of(Path(folder) / "latest"), latest_of(Path(folder) / "other")
    (7, -1)
    """
    part = file.with_name(f".{uuid.uuid4().hex}.part")
    with suppress(OSError):
        part.write_text(str(number), encoding="ascii")
        part.replace(file)


def latest_of(file: Path) -> int:
    """Return the number that `note_latest` wrote, -1 if there is none."""
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return -1
    return int(text) if text.isdigit() else -1


@contextmanager
def writing(path: Path, advice: str = "") -> Iterator[None]:
    """Raise FileError with the path where something cannot be written there, and the free space where that is why.

    >>> with writing(Path("/proc/none")):
    ...     Path("/proc/none").write_text("x")
    Traceback (most recent call last):
    tocsin.errors.FileError: /proc/none: cannot be written: No such file or directory
    """
    try:
        yield
    except (OSError, FileError) as error:
        known = error if isinstance(error, OSError) else error.__cause__
        code = known.errno if isinstance(known, OSError) else None
        reason = os.strerror(code) if code else str(error)
        room = f" ({_free(path)})" if code in _NO_ROOM else ""
        raise FileError(f"{path}: cannot be written: {reason}{room}{advice}") from None


def _free(path: Path) -> str:
    """Return in words how much room there is where a path is."""
    there = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    try:
        return f"{shutil.disk_usage(there).free:,} bytes are free there"
    except OSError:
        return "how much is free there is not known"
