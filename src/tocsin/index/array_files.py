"""The files of a saved index: one array each, in NumPy's own format, and what a manifest says about it.

What is read is built from what the manifest says (size, kind, shape); the header inside a file is there for other
programs and is not interpreted. Nothing is unpickled: arrays hold plain numbers only.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tocsin.errors import SavedIndexError

SMALL = 1 << 16
"""Files of up to so many bytes are verified at every load, also where verification is declined."""

Array = npt.NDArray[Any]

_READ_BYTES = 1 << 20
_PLAIN_KIND = re.compile(r"[<|][biuf][1248]")


def write_array(directory: Path, name: str, array: Array) -> dict[str, Any]:
    """Write one array to a new file, durably, and return what the manifest says about it."""
    stored = np.ascontiguousarray(array)
    if not _PLAIN_KIND.fullmatch(stored.dtype.str):
        raise TypeError(f"{name}: arrays of {stored.dtype} are not saved")
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(stored))
    header, data = head.getvalue(), stored.reshape(-1).view(np.uint8).data
    write_durably(directory / name, header, data)
    return {
        "file": name,
        "bytes": len(header) + stored.nbytes,
        "checksum": zlib.crc32(data, zlib.crc32(header)),
        "kind": stored.dtype.str,
        "shape": list(stored.shape),
    }


def open_array(directory: Path, name: str, described: dict[str, Any], verify: bool) -> Array:
    """Map one array, read-only, checking that its file is what the manifest says; SavedIndexError if it is not."""
    file = directory / str(described["file"])
    if file.name != described["file"] or not file.is_file():
        raise SavedIndexError(f"{file}: missing, though the index needs it for {name!r}; restore it or save again")
    kind, shape = str(described["kind"]), [int(length) for length in described["shape"]]
    if not _PLAIN_KIND.fullmatch(kind) or min(shape, default=0) < 0:
        raise SavedIndexError(f"{file}: an array of kind {kind!r} and shape {shape}, which no index has")
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != described["bytes"]:
                raise SavedIndexError(f"{file}: {size} bytes, but {described['bytes']} were saved")
            if (verify or size <= SMALL) and _checksum(stream) != described["checksum"]:
                raise SavedIndexError(f"{file}: damaged: its contents are not those that were saved")
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise SavedIndexError(f"{file}: cannot be read: {error.strerror or error}") from None
    count, of_one = math.prod(shape), np.dtype(kind).itemsize
    if count * of_one > size:
        raise SavedIndexError(f"{file}: {size} bytes do not hold {kind}{shape}")
    array: Array = np.frombuffer(mapped, kind, count, size - count * of_one).reshape(shape)
    return array


def write_durably(file: Path, *contents: bytes | memoryview) -> None:
    """Write a new file and wait until it is on the disk."""
    with file.open("xb") as stream:
        for part in contents:
            stream.write(part)
        stream.flush()
        os.fsync(stream.fileno())


def make_durable(directory: Path) -> None:
    """Have the entries of a directory reach the disk, where the system lets one ask for it."""
    if os.name == "posix":
        entry = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Wait for the lock of a file or directory that is there and hold it; yield whether there is one at all.

    The system releases it when the process ends, however that is. File systems and platforms without such locks have
    none.
    """
    if os.name != "posix":
        yield False
        return
    import fcntl

    entry = os.open(path, os.O_RDONLY)
    try:
        held = False
        with suppress(OSError):
            fcntl.flock(entry, fcntl.LOCK_EX)
            held = True
        yield held
    finally:
        os.close(entry)


def _checksum(stream: BinaryIO) -> int:
    """Return the CRC-32 of a file, read rather than mapped: a disk that fails is an error then, and no signal."""
    total, room = 0, memoryview(bytearray(_READ_BYTES))
    while count := stream.readinto(room):  # type: ignore[attr-defined]
        total = zlib.crc32(room[:count], total)
    return total
