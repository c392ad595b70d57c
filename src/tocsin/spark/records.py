"""Which version of an index each batch of a stream was matched with, so that a batch that is repeated uses it again.

Records are files ``<query>/<batch>`` in the directory ``streams`` of the index; or, where the index is not to be
written, in a directory of the caller's, under the identity of the index.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

from pathlib import Path

from tocsin.errors import FileError, SavedIndexError
from tocsin.spark.manifest import Pin, create, read_manifest, replaced
from tocsin.spark.sealed import writing

KEPT_BATCHES = 1000
"""How many records of a stream are kept; only the last batch is ever replayed from a checkpoint that is in order."""

_ADVICE = "; pass records='...', a directory that workers can write, where the version that each batch uses is recorded"


def version_of_batch(path: str, build: str, query: str, batch: int, records: str | None = None) -> Pin:
    """Return the version that a batch of a stream uses: the current one when its first task asks, then always that.

    ``build`` is the identity of the index that the stream was started with. SavedIndexError if another index is at the
    path now: some tasks of the batch may have used the one before.
    """
    record = _folder(path, build, query, records) / str(batch)
    found = _read(record)
    if found is None:
        manifest = read_manifest(path)
        if manifest.build != build:
            raise SavedIndexError(replaced(path))
        with writing(record, "" if records else _ADVICE):
            record.parent.mkdir(parents=True, exist_ok=True)
            is_first = create(record, f"{manifest.version} {manifest.identity}")
        found = manifest.pin if is_first else _read(record)
        if is_first:
            record.with_name(str(batch - KEPT_BATCHES)).unlink(missing_ok=True)
    if found is None:
        raise FileError(f"{record}: removed while batch {batch} was running")
    return found


def batch_before(path: str, build: str, query: str, batch: int, records: str | None = None) -> int | None:
    """Return the last batch of a stream before this one that used the index, None if none is recorded."""
    folder = _folder(path, build, query, records)
    numbers = [int(file.name) for file in folder.iterdir() if file.name.isdigit()] if folder.exists() else []
    return max((number for number in numbers if number < batch), default=None)


def _folder(path: str, build: str, query: str, records: str | None) -> Path:
    return Path(records) / build / query if records else Path(path) / "streams" / query


def _read(record: Path) -> Pin | None:
    """Return what a record says, None if there is none."""
    try:
        version, identity = record.read_text(encoding="ascii").split()
        return Pin(int(version), identity)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise SavedIndexError(
            f"{record}: cannot be read: {error}; it says which version of the index the batch uses: restore it, or "
            "remove it to match the batch with the current one"
        ) from None
