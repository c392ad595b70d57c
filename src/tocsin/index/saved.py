"""Saved indexes: a directory of plain ``.npy`` files and a manifest that names them.

A save writes new files beside the old ones and then replaces ``manifest.json`` in one step, so that whoever opens the
directory finds the index before or after it, never something in between; the files of the index before are removed
last. A load maps the files and copies nothing: processes on one host share them.

The manifest carries a checksum of itself, and the size and checksum of every file. A load checks the manifest, the
size and kind of every file, and the contents of the small ones, in which everything that says where things are is
found. The large ones are read in full only with ``verify=True``: that takes as long as reading them.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.errors import SavedIndexError
from tocsin.index.boxes import Boxes
from tocsin.index.protocol import Index

FORMAT = "tocsin-index"
VERSION = 2
MANIFEST = "manifest.json"

SMALL = 1 << 16
"""Files of up to so many bytes are verified at every load."""

Array = npt.NDArray[Any]

_BESIDE = "beside."


@dataclass(frozen=True, slots=True)
class Saved:
    """What a directory holds: the index, and the caller's plain values and arrays beside it."""

    index: Index
    notes: dict[str, Any]
    beside: dict[str, Array]


def save(
    index: Index, path: str | Path, notes: Mapping[str, Any] | None = None, beside: Mapping[str, Array] | None = None
) -> None:
    """Write an index to a directory, in place of whatever index was there.

    ``notes`` are plain values and ``beside`` arrays of the caller's, kept with it. An engine that has no saved form of
    its own is saved as its boxes, and built anew when it is loaded.

    >>> import tempfile
    >>> from tocsin.index import Boxes, Queries, create
    >>> index = create("adaptive")
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(index, directory, {"made by": "an example"})
    ...     load(directory).overlap(Queries.points(np.array([[3]]))).numbers.tolist(), notes_of(directory)
    ([7], {'made by': 'an example'})
    """
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    described, arrays = _arrays_of(index)
    generation = secrets.token_hex(4)
    before = _files_of(directory)
    arrays |= {f"{_BESIDE}{name}": array for name, array in (beside or {}).items()}
    files = {name: _write(directory, f"{generation}-{name}.npy", array) for name, array in arrays.items()}
    body = {"engine": index.name, "described": described, "arrays": files, "notes": dict(notes or {})}
    sealed = {"format": FORMAT, "version": VERSION, "checksum": _seal(body), "body": body}
    written = directory / f"{generation}-{MANIFEST}"
    _write_durably(written, json.dumps(sealed, indent=1).encode())
    written.replace(directory / MANIFEST)
    _make_durable(directory)
    for name in before:
        (directory / name).unlink(missing_ok=True)


def load(path: str | Path, *, verify: bool = False, **options: Any) -> Index:
    """Open a saved index; ``options`` are those of its engine. Raises what `open_saved` raises."""
    return open_saved(path, verify=verify, **options).index


def open_saved(path: str | Path, *, verify: bool = False, **options: Any) -> Saved:
    """Open a saved index and what was kept beside it; ``options`` are those of its engine.

    Raises SavedIndexError if the directory holds no index, one of another version, or a damaged one. With ``verify``
    every byte is checked, otherwise the manifest, the sizes and the small files.
    """
    directory = Path(path)
    body, opened = _open_all(directory, verify)
    arrays = {name: array for name, array in opened.items() if not name.startswith(_BESIDE)}
    beside = {name.removeprefix(_BESIDE): array for name, array in opened.items() if name.startswith(_BESIDE)}
    return Saved(_opened_index(directory, body, arrays, options), body["notes"], beside)


def _open_all(directory: Path, verify: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """Map every array; where a save has replaced the manifest meanwhile and removed the files, begin again."""
    while True:
        body = _read_manifest(directory)
        try:
            return body, {name: _open(directory, name, said, verify) for name, said in body["arrays"].items()}
        except (SavedIndexError, FileNotFoundError):
            if _read_manifest(directory) == body:
                raise


def _opened_index(directory: Path, body: dict[str, Any], arrays: dict[str, Array], options: dict[str, Any]) -> Index:
    try:
        engine = importlib.import_module(f"tocsin.index.{body['engine']}").ENGINE
    except (ImportError, AttributeError):
        raise SavedIndexError(f"{directory}: saved by the engine {body['engine']!r}, which is not installed") from None
    if hasattr(engine, "from_arrays"):
        index: Index = engine.from_arrays(body["described"], arrays, **options)
        return index
    index = engine(**options)
    index.insert(arrays["numbers"], Boxes(*(arrays[name] for name in Boxes._fields)))
    return index


def notes_of(path: str | Path) -> dict[str, Any]:
    """Return the notes that an index was saved with."""
    notes: dict[str, Any] = _read_manifest(Path(path))["notes"]
    return notes


def _arrays_of(index: Index) -> tuple[dict[str, Any], dict[str, Array]]:
    if hasattr(index, "to_arrays"):
        described, arrays = index.to_arrays()
        return described, arrays
    numbers, boxes = index.contents()
    return {}, {"numbers": numbers, **boxes._asdict()}


def _files_of(directory: Path) -> set[str]:
    """Return the files that the manifest here names; nothing else in the directory is ours."""
    try:
        return {str(said["file"]) for said in _read_manifest(directory)["arrays"].values()}
    except SavedIndexError:
        return set()


def _write(directory: Path, name: str, array: Array) -> dict[str, Any]:
    """Write one array and return what the manifest says about it."""
    with (directory / name).open("wb") as file:
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    said = {"file": name, "bytes": (directory / name).stat().st_size, "checksum": _checksum(directory / name)}
    return {**said, "kind": array.dtype.str, "shape": list(array.shape)}


def _open(directory: Path, name: str, said: dict[str, Any], verify: bool) -> Array:
    """Map one array, checking that it is what the manifest says."""
    file = directory / str(said["file"])
    if file.name != said["file"] or not file.is_file():
        raise SavedIndexError(f"{directory}: the file of {name!r} is missing; save the index again")
    if file.stat().st_size != said["bytes"]:
        raise SavedIndexError(f"{file}: {file.stat().st_size} bytes, but {said['bytes']} were saved")
    if (verify or said["bytes"] <= SMALL) and _checksum(file) != said["checksum"]:
        raise SavedIndexError(f"{file}: its contents are not those that were saved")
    try:
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise SavedIndexError(f"{file}: not an array: {error}") from None
    if array.dtype.str != said["kind"] or list(array.shape) != said["shape"]:
        raise SavedIndexError(f"{file}: {array.dtype.str}{list(array.shape)}, not {said['kind']}{said['shape']}")
    return array


def _read_manifest(directory: Path) -> dict[str, Any]:
    try:
        sealed = json.loads((directory / MANIFEST).read_bytes())
        kind, version = sealed["format"], sealed["version"]
    except OSError:
        raise SavedIndexError(f"{directory}: there is no index here ({MANIFEST} cannot be read)") from None
    except (ValueError, TypeError, KeyError):
        raise SavedIndexError(f"{directory / MANIFEST}: not the manifest of an index") from None
    if kind != FORMAT:
        raise SavedIndexError(f"{directory / MANIFEST}: a {kind!r}, not a {FORMAT!r}")
    if version != VERSION:
        raise SavedIndexError(f"{directory}: saved in version {version!r} of the format; this is version {VERSION}")
    body: dict[str, Any] = sealed.get("body", {})
    if sealed.get("checksum") != _seal(body):
        raise SavedIndexError(f"{directory / MANIFEST}: damaged (its checksum does not fit)")
    return body


def _seal(body: Any) -> str:
    """Return the checksum of a manifest's body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _checksum(file: Path) -> int:
    total = 0
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            total = zlib.crc32(chunk, total)
    return total


def _write_durably(file: Path, contents: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(contents)
        stream.flush()
        os.fsync(stream.fileno())


def _make_durable(directory: Path) -> None:
    """Have the directory's entries reach the disk, where the system lets one ask for it."""
    if os.name == "posix":
        entry = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)
