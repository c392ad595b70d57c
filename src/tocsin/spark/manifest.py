"""The index as a directory of versions: which segments make a version, and which version is the current one.

    versions/00000003.json    a manifest, never changed once it is there; the highest number is the current version
    versions/latest           the highest number that there has been
    segments/<name>/          subscriptions with their matcher, never changed; in an index of shards, with a summary
    dead/<name>.parquet       ids of a segment that a later version replaced or removed
    quarantine/<name>.parquet subscriptions that were refused: id, expression, reason
    streams/<query>/<batch>   the version that a batch of a stream was matched with, see `tocsin.spark.records`

A manifest has a checksum of itself, the names of files tell theirs (see `tocsin.spark.sealed`), and a saved matcher has
those of its own. Everything here runs where the files are: on the workers. The directory is on a POSIX file system that
all of them share (a local disk for one host). This module must not import pyspark.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.errors import SavedIndexError
from tocsin.space import Space
from tocsin.spark.sealed import body_of, latest_of, note_latest, sealed_text, writing

FORMAT = 2


class Pin(NamedTuple):
    """One version of an index and no other: its number, and the identity that it was given when it was written."""

    version: int
    identity: str


def new_identity() -> str:
    """Return an identity that nothing else has."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Segment:
    """Subscriptions indexed together, in a shard: their ``table``, their matcher by its ``build``, and in an index of
    shards a ``summary``. ``dead`` names the file of ids that no longer count; they are ``died``."""

    name: str
    subscriptions: int
    table: str
    build: str
    summary: str | None = None
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

    ``identity`` is that of this version alone; ``build`` is that of the index, which `update_index` and a build with
    ``overwrite`` leave as it is, and a directory that is deleted and built anew does not have.

    ``id_type`` is the Spark type of ids as JSON; ``tested`` are the fields that subscriptions test, ``operands`` those
    that operators receive; ``applied`` says for each source of changes up to which batch they are contained. An index
    of several ``shards`` has the ``tree`` that assigns subscriptions to them.
    """

    version: int
    space: dict[str, Any]
    inferred: bool
    id_type: Any
    engine: str
    segments: tuple[Segment, ...] = ()
    tested: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    quarantine: tuple[str, ...] = ()
    refused: int = 0
    applied: dict[str, int] = field(default_factory=dict)
    shards: int = 1
    tree: dict[str, Any] | None = None
    build: str = field(default_factory=new_identity)
    identity: str = field(default_factory=new_identity)

    @property
    def pin(self) -> Pin:
        """What tells this version from every other."""
        return Pin(self.version, self.identity)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions the version holds."""
        return sum(segment.alive for segment in self.segments)

    def to_json(self) -> str:
        """Return the manifest as the text of its file."""
        return sealed_text("index", FORMAT, asdict(self))

    @classmethod
    def from_json(cls, text: str, source: str = "this") -> Manifest:
        """Return the manifest of a text that `to_json` wrote.

        >>> manifest = Manifest(1, {}, True, "long", "adaptive", (Segment("a", 5, "t", "m", dead="b", died=2),))
        >>> Manifest.from_json(manifest.to_json()) == manifest, manifest.subscriptions
        (True, 3)
        """
        body = body_of(text, "index", FORMAT, source, "build it anew with build_index")
        try:
            body["segments"] = tuple(Segment(**segment) for segment in body["segments"])
            return cls(
                **(body | {name: tuple(body[name]) for name in ("tested", "operands", "quarantine") if name in body})
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SavedIndexError(f"{source} is damaged: {error}; build it anew with build_index") from None

    def read_space(self) -> Space:
        """Return the space."""
        return Space.from_json(self.space)


def current_version(path: str) -> int:
    """Return the number of the current version; 0 if there is none yet."""
    folder = Path(path) / "versions"
    try:
        names = [file.name for file in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise SavedIndexError(f"{path} cannot be read: {error.strerror or error}") from None
    found = max((int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()), default=0)
    latest = latest_of(folder / "latest")
    if latest > found:
        raise SavedIndexError(f"{_version_file(path, latest)}: missing, though the index has had that version")
    return found


def read_manifest(path: str, version: int | None = None, identity: str | None = None) -> Manifest:
    """Return a version of the index at a path: the current one, or that of a number.

    With an ``identity`` it must be that very version: SavedIndexError if another index has taken its place.
    """
    number = current_version(path) if version is None else version
    if not number:
        what = "holds no index" if Path(path).exists() else "does not exist"
        raise SavedIndexError(f"{path} {what}; build one with tocsin.spark.build_index(subscriptions, path, ...)")
    file = _version_file(path, number)
    try:
        manifest = Manifest.from_json(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        current = current_version(path)
        now = f"it has up to {current}" if current else "it holds no index any more"
        raise SavedIndexError(f"{path} has no version {number}; {now}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SavedIndexError(f"{file} cannot be read: {error}") from None
    if manifest.version != number:
        raise SavedIndexError(f"{file} is damaged: it is of version {manifest.version}; build it anew with build_index")
    if identity not in (None, manifest.identity):
        raise SavedIndexError(replaced(path))
    return manifest


def replaced(path: str) -> str:
    """Return what is told where another index has taken the place of one that is in use."""
    return f"the index {path} was replaced by another while this was using it; start it again"


def commit(path: str, manifest: Manifest) -> Manifest:
    """Make a version the current one, in one step; SavedIndexError if another writer took its number first."""
    file = _version_file(path, manifest.version)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if not create(file, manifest.to_json()):
            raise SavedIndexError(
                f"{path} was changed by another writer; try again with its version {manifest.version}"
            )
    note_latest(file.with_name("latest"), manifest.version)
    return manifest


def commit_build(path: str, manifest: Manifest) -> Manifest:
    """Commit what a build has made: the first version of an index, or one that follows those that are there."""
    if manifest.version > 1:
        with suppress(SavedIndexError):  # an index that cannot be read is replaced by another
            manifest = replace(manifest, build=read_manifest(path).build)
    return commit(path, manifest)


def succeed(manifest: Manifest, **changes: Any) -> Manifest:
    """Return the next version of a manifest."""
    return replace(manifest, version=manifest.version + 1, identity=new_identity(), **changes)


def check_no_stranger(path: str) -> None:
    """Raise SavedIndexError if a path holds something that is neither an index nor what a failed build has left."""
    if not os.path.lexists(path):
        return
    if not Path(path).is_dir():
        raise SavedIndexError(f"{path} is no directory; an index is built in one of its own")
    odd = sorted(entry.name for entry in Path(path).iterdir() if entry.name not in _ENTRIES)
    if odd:
        raise SavedIndexError(
            f"{path} holds something else than an index ({', '.join(odd[:3])}); nothing was written: build the index "
            "in a new or empty directory"
        )


_ENTRIES = ("versions", "segments", "dead", "quarantine", "streams", "table.json")


def _version_file(path: str, version: int) -> Path:
    return Path(path) / "versions" / f"{version:08}.json"


def create(file: Path, text: str) -> bool:
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
