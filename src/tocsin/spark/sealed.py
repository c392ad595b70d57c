"""Files of a stored index: each written once and whole, under a name that tells its size and checksum.

A manifest, which has a checksum of its own, names every file; so whoever reads one finds out whether it is what was
written. A disk that is full, or a directory that must not be written, is told with the path.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.errors import FileError, SavedIndexError
from tocsin.index.array_files import write_durably

_SEALED = re.compile(r".*\.(\d+)-([0-9a-f]{8})\.\w+")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_sealed(folder: Path, stem: str, suffix: str, contents: bytes | memoryview) -> str:
    """Write a file and return its name; nothing is left behind where that fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = write_sealed(Path(folder), "summary", "json", b"{}")
    ...     name, read_sealed(Path(folder) / name)
    ('summary.2-a3a6bf43.json', b'{}')
    """
    name = f"{stem}.{len(contents)}-{zlib.crc32(contents):08x}.{suffix}"
    with writing(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            write_durably(folder / name, contents)
        except OSError:
            with suppress(OSError):
                (folder / name).unlink()
            raise
    return name


def read_sealed(file: Path) -> bytes:
    """Return the contents of a file that `write_sealed` wrote; SavedIndexError with its name if they are others."""
    found = _SEALED.fullmatch(file.name)
    if found is None:
        raise SavedIndexError(f"{file}: a name that no file of an index has; build the index anew")
    try:
        contents = file.read_bytes()
    except FileNotFoundError:
        raise SavedIndexError(f"{file}: missing, though the index needs it; restore it or build anew") from None
    except OSError as error:
        raise SavedIndexError(f"{file}: cannot be read: {error.strerror or error}") from None
    if len(contents) != int(found[1]):
        raise SavedIndexError(f"{file}: {len(contents)} bytes, but {found[1]} were written; restore it or build anew")
    if zlib.crc32(contents) != int(found[2], 16):
        raise SavedIndexError(f"{file}: damaged: its contents are not those that were written; build the index anew")
    return contents


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
