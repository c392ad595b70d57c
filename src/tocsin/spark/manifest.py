"""The index as a directory of versions: which segments make a version, and which version a batch of a stream used.

    versions/00000003.json    a manifest, never changed once it is there; the highest number is the current version
    segments/<name>/          subscriptions with their matcher, never changed; in an index of shards, with a summary
    dead/<name>.parquet       ids of a segment that a later version replaced or removed
    quarantine/<name>.parquet subscriptions that were refused: id, expression, reason
    streams/<query>/<batch>   the version that a batch of a stream was matched with

Everything here runs where the files are: on the workers. The directory is on a POSIX file system that all of them share
(a local disk for one host). This module must not import pyspark.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tocsin.errors import SavedIndexError
from tocsin.space import Space

FORMAT = 1
KEPT_BATCHES = 1000
"""How many records of a stream are kept; only the last batch is ever replayed from a checkpoint that is in order."""


@dataclass(frozen=True)
class Segment:
    """Subscriptions indexed together, in a shard. ``dead`` names the file of ids that no longer count; they are
    ``died``."""

    name: str
    subscriptions: int
    dead: str | None = None
    died: int = 0
    shard: int = 0

    @property
    def alive(self) -> int:
        """How many of its subscriptions count."""
        return self.subscriptions - self.died


@dataclass(frozen=True)
class Manifest:
    """One version of an index.

    ``id_type`` is the Spark type of ids as JSON; ``tested`` are the fields that subscriptions test; ``applied`` says
    for each source of changes up to which batch they are contained. An index of several ``shards`` has the ``tree``
    that assigns subscriptions to them.
    """

    version: int
    space: dict[str, Any]
    inferred: bool
    id_type: Any
    engine: str
    segments: tuple[Segment, ...] = ()
    tested: tuple[str, ...] = ()
    quarantine: tuple[str, ...] = ()
    refused: int = 0
    applied: dict[str, int] = field(default_factory=dict)
    shards: int = 1
    tree: dict[str, Any] | None = None

    @property
    def subscriptions(self) -> int:
        """How many subscriptions the version holds."""
        return sum(segment.alive for segment in self.segments)

    def to_json(self) -> str:
        """Return the manifest as the text of its file."""
        return json.dumps({"tocsin_index": FORMAT} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, source: str = "this") -> Manifest:
        """Return the manifest of a text that `to_json` wrote.

        >>> manifest = Manifest(1, {}, True, "long", "adaptive", (Segment("a", 5, "b", 2),))
        >>> Manifest.from_json(manifest.to_json()) == manifest, manifest.subscriptions
        (True, 3)
        """
        try:
            data = json.loads(text)
            found = data.pop("tocsin_index")
        except (ValueError, KeyError, AttributeError, TypeError):
            raise SavedIndexError(f"{source} is not the manifest of an index; build it anew with build_index") from None
        if found != FORMAT:
            raise SavedIndexError(
                f"{source} is an index of format {found}, this is a Tocsin for format {FORMAT}; "
                "build it anew with build_index, or use the Tocsin that wrote it"
            )
        try:
            data["segments"] = tuple(Segment(**segment) for segment in data["segments"])
            return cls(**(data | {name: tuple(data[name]) for name in ("tested", "quarantine")}))
        except (KeyError, TypeError) as error:
            raise SavedIndexError(f"{source} is damaged: {error}; build it anew with build_index") from None

    def read_space(self) -> Space:
        """Return the space."""
        return Space.from_json(self.space)


def current_version(path: str) -> int:
    """Return the number of the current version; 0 if there is none yet."""
    try:
        names = [file.name for file in (Path(path) / "versions").iterdir()]
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise SavedIndexError(f"{path} cannot be read: {error.strerror or error}") from None
    return max((int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()), default=0)


def read_manifest(path: str, version: int | None = None) -> Manifest:
    """Return a version of the index at a path: the current one, or that of a number."""
    number = version or current_version(path)
    if not number:
        what = "holds no index" if Path(path).exists() else "does not exist"
        raise SavedIndexError(f"{path} {what}; build one with tocsin.spark.build_index(subscriptions, path, ...)")
    file = _version_file(path, number)
    try:
        return Manifest.from_json(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        raise SavedIndexError(
            f"{path} has no version {number} any more; it has up to {current_version(path)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SavedIndexError(f"{file} cannot be read: {error}") from None


def commit(path: str, manifest: Manifest) -> Manifest:
    """Make a version the current one, in one step; SavedIndexError if another writer took its number first."""
    file = _version_file(path, manifest.version)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not _create(file, manifest.to_json()):
        raise SavedIndexError(f"{path} was changed by another writer; try again with its version {manifest.version}")
    return manifest


def succeed(manifest: Manifest, **changes: Any) -> Manifest:
    """Return the next version of a manifest."""
    return replace(manifest, version=manifest.version + 1, **changes)


def version_of_batch(path: str, query: str, batch: int) -> int:
    """Return the version that a batch of a stream uses: the current one when its first task asks, then always that."""
    record = Path(path) / "streams" / query / str(batch)
    try:
        return int(record.read_text())
    except FileNotFoundError:
        pass
    version = current_version(path)
    record.parent.mkdir(parents=True, exist_ok=True)
    if not _create(record, str(version)):
        return int(record.read_text())
    old = record.with_name(str(batch - KEPT_BATCHES))
    old.unlink(missing_ok=True)
    return version


def batch_before(path: str, query: str, batch: int) -> int | None:
    """Return the last batch of a stream before this one that used the index, None if none is recorded."""
    records = Path(path) / "streams" / query
    numbers = [int(file.name) for file in records.iterdir() if file.name.isdigit()] if records.exists() else []
    return max((number for number in numbers if number < batch), default=None)


def _version_file(path: str, version: int) -> Path:
    return Path(path) / "versions" / f"{version:08}.json"


def _create(file: Path, text: str) -> bool:
    """Write a file that must not be there yet, whole or not at all; return whether it was not there."""
    part = file.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("w", encoding="utf-8") as sink:
            sink.write(text)
            sink.flush()
            os.fsync(sink.fileno())
        os.link(part, file)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True
