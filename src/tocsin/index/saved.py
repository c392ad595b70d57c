"""Saved indexes: a directory of plain array files and a manifest that names them.

A save writes new files beside the old ones and then replaces ``manifest.json`` in one step, so that whoever opens the
directory finds the index before or after it, never something in between; the files of the index before are removed
last. A load maps the files and copies nothing: processes on one host share them. Saves to one directory wait for each
other; the last one stays. What a save that was killed has left behind is removed by the next one.

The manifest carries the identity of this build, a checksum of itself, and the size and checksum of every file. A load
checks all of them (``verify=True``), or reads the large files only the first time that this user opens this build on
this host (``verify="once"``), or never (``verify=False``). See decision 0012 for what each of them guarantees.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import json
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tocsin.arguments import brief, expect_path, is_one_of
from tocsin.errors import FileError, OptionError, SavedIndexError, TocsinError, UnknownEngineError
from tocsin.index import engine_of
from tocsin.index.array_files import Array, locked, make_durable, open_array, write_array, write_durably
from tocsin.index.boxes import Boxes, Int32s
from tocsin.index.protocol import Index
from tocsin.index.verified import verify_once
from tocsin.kernels.checks import check, check_length, check_rising, check_within

FORMAT = "tocsin-index"
VERSION = 3
MANIFEST = "manifest.json"

Verify = bool | Literal["once"]

_BESIDE = "beside."
_OURS = re.compile(rf"[0-9a-f]{{16}}-(.*\.npy|{re.escape(MANIFEST)})")

DAMAGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, TocsinError)
"""What may come of reading arrays that are not what was written; where it does, the caller gets SavedIndexError."""


MOST_AXES = 1 << 24
"""The axes of saved boxes have numbers below this."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a directory holds: the index, the caller's plain values and arrays beside it, the build's identity, and the
    greatest of the box numbers, -1 if there is none."""

    index: Index
    notes: dict[str, Any]
    beside: dict[str, Array]
    build: str
    highest: int


def save(
    index: Index, path: str | Path, notes: Mapping[str, Any] | None = None, beside: Mapping[str, Array] | None = None
) -> None:
    """Write an index to a directory, in place of whatever index was there.

    ``notes`` are JSON values and ``beside`` arrays of the caller's, kept with it. An engine that has no saved form of
    its own is saved as its boxes, and built anew when it is loaded. Raises FileError if the directory cannot be
    written; the index that was there before is still there then.

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
    described, arrays = _arrays_of(index)
    arrays |= {f"{_BESIDE}{name}": array for name, array in (beside or {}).items()}
    body = {"build": secrets.token_hex(8), "engine": index.name, "described": described, "notes": dict(notes or {})}
    made = False
    try:
        made = _make_directory(directory)
        with locked(directory) as alone:
            before = _files_of(directory)
            if alone:
                _remove(directory, _strays(directory, before))
            _write_all(directory, body, arrays)
            _remove(directory, before)
    except (OSError, ValueError) as error:
        needed = sum(array.nbytes for array in arrays.values())
        reason = _reason(error, directory, needed)
        if made:
            with suppress(OSError, ValueError):
                directory.rmdir()
        raise FileError(f"{directory}: the index cannot be saved here: {reason}") from error


def load(path: str | Path, *, verify: Verify = True, **options: Any) -> Index:
    """Open a saved index; ``options`` are those of its engine. Raises what `open_saved` raises."""
    return open_saved(path, verify=verify, **options).index


def open_saved(path: str | Path, *, verify: Verify = True, **options: Any) -> Saved:
    """Open a saved index and what was kept beside it; ``options`` are those of its engine.

    Raises SavedIndexError if the directory holds no index, one of another version, or a damaged one. With ``verify``
    every byte is checked; with ``"once"`` every byte when this user first opens this build on this host; without, the
    manifest, the sizes and the small files.
    """
    if not isinstance(verify, (bool, np.bool_)) and not is_one_of(verify, ("once",)):
        raise OptionError(f"verify is True, False or 'once', not {brief(verify)}")
    expect_path(path)
    directory = Path(path)
    body, opened = _open_all(directory, verify)
    arrays = {name: array for name, array in opened.items() if not name.startswith(_BESIDE)}
    beside = {name.removeprefix(_BESIDE): array for name, array in opened.items() if name.startswith(_BESIDE)}
    index = _opened_index(directory, body, arrays, options)
    highest = index.highest() if hasattr(index, "highest") else int(arrays["numbers"].max(initial=-1))
    return Saved(index, body["notes"], beside, body["build"], highest)


def notes_of(path: str | Path) -> dict[str, Any]:
    """Return the notes that an index was saved with."""
    notes: dict[str, Any] = _read_manifest(Path(path))["notes"]
    return notes


def build_of(path: str | Path) -> str:
    """Return the identity of what is saved at a path: another one after every save, there or elsewhere."""
    return str(_read_manifest(Path(path))["build"])


def _write_all(directory: Path, body: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write the arrays and then, in one step, the manifest; where that fails, remove what was written."""
    files = {name: f"{body['build']}-{name}.npy" for name in arrays}
    written = directory / f"{body['build']}-{MANIFEST}"
    try:
        sealed = {name: write_array(directory, files[name], array) for name, array in arrays.items()}
        contents = body | {"arrays": sealed}
        manifest = {"format": FORMAT, "version": VERSION, "checksum": seal(contents), "body": contents}
        write_durably(written, json.dumps(manifest, indent=1, allow_nan=False).encode())
        make_durable(directory)
        written.replace(directory / MANIFEST)
    except BaseException:
        _remove(directory, (*files.values(), written.name))
        raise
    make_durable(directory)


def _open_all(directory: Path, verify: Verify) -> tuple[dict[str, Any], dict[str, Array]]:
    """Map every array; where a save has replaced the manifest meanwhile and removed the files, begin again."""
    while True:
        body = _read_manifest(directory)
        try:
            if verify == "once":
                files = [directory / str(one["file"]) for one in body["arrays"].values()]
                with verify_once(body["build"], files) as is_due:
                    return body, _open_files(directory, body, is_due)
            return body, _open_files(directory, body, verify)
        except SavedIndexError:
            if _read_manifest(directory) == body:
                raise


def _open_files(directory: Path, body: dict[str, Any], verify: bool) -> dict[str, Array]:
    try:
        return {name: open_array(directory, name, one, verify) for name, one in body["arrays"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SavedIndexError(f"{directory / MANIFEST}: damaged: {error!r}") from None


def _opened_index(directory: Path, body: dict[str, Any], arrays: dict[str, Array], options: dict[str, Any]) -> Index:
    try:
        engine: Any = engine_of(body["engine"])
    except UnknownEngineError as error:
        raise SavedIndexError(f"{directory}: its engine is unknown here: {error}") from None
    inspect.signature(engine).bind(**options)  # a wrong option is no damage
    try:
        if hasattr(engine, "from_arrays"):
            index: Index = engine.from_arrays(body["described"], arrays, **options)
        else:
            index = engine(**options)
            index.insert(*_checked_boxes(arrays))
        return index
    except DAMAGE as error:
        raise SavedIndexError(f"{directory}: damaged: {error}") from None


def _arrays_of(index: Index) -> tuple[dict[str, Any], dict[str, Array]]:
    if hasattr(index, "to_arrays"):
        described, arrays = index.to_arrays()
        return described, arrays
    numbers, boxes = index.contents()
    return {}, {"numbers": numbers, **boxes._asdict()}


def _checked_boxes(arrays: dict[str, Array]) -> tuple[Int32s, Boxes]:
    """Return the numbers and boxes of arrays, of which kernels need not fear what they say."""
    numbers, boxes = arrays["numbers"], Boxes(*(arrays[name] for name in Boxes._fields))
    kinds = [array.dtype.str for array in (numbers, *boxes)]
    check(kinds == ["<i4", "<i8", "<i4", "<i8", "<i8"], f"boxes of the kinds {kinds}")
    check_length("offsets of boxes", len(boxes.offsets), len(numbers) + 1)
    check_rising("offsets of boxes", boxes.offsets, 0, len(boxes.axis))
    check_length("bounds of boxes", len(boxes.low), len(boxes.axis))
    check_length("bounds of boxes", len(boxes.high), len(boxes.axis))
    check_within("box numbers", numbers, 0, 2**31)
    check_within("axes of boxes", boxes.axis, 0, MOST_AXES)
    check(bool(np.all(boxes.low <= boxes.high)), "a box with an empty interval")
    return numbers, boxes


def _make_directory(directory: Path) -> bool:
    """Make a directory that may be there, and have that reach the disk; return whether it was not there."""
    if directory.is_dir():
        return False
    directory.mkdir(parents=True, exist_ok=True)
    make_durable(directory.parent)
    return True


def _reason(error: OSError | ValueError, directory: Path, needed: int) -> str:
    """Return why files could not be written, and where there is no room, how much is needed."""
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason += f": {needed:,} bytes are needed, {shutil.disk_usage(directory).free:,} are free"
    return reason


def _files_of(directory: Path) -> set[str]:
    """Return the files that the manifest here names; nothing else in the directory is part of an index."""
    try:
        names = {str(one["file"]) for one in _read_manifest(directory)["arrays"].values()}
    except (SavedIndexError, KeyError, TypeError, AttributeError):
        return set()
    return {name for name in names if _OURS.fullmatch(name)}


def _strays(directory: Path, named: set[str]) -> set[str]:
    """Return the files that saves which did not end have left here."""
    return {file.name for file in directory.iterdir() if _OURS.fullmatch(file.name)} - named


def _remove(directory: Path, names: Iterable[str]) -> None:
    for name in names:
        with suppress(OSError):
            (directory / name).unlink()


def _read_manifest(directory: Path) -> dict[str, Any]:
    file = directory / MANIFEST
    try:
        if not file.is_file():
            raise FileNotFoundError(f"{MANIFEST} is missing")
        sealed = json.loads(file.read_bytes())
        kind, version = sealed["format"], sealed["version"]
    except OSError as error:
        raise SavedIndexError(f"{directory}: there is no index here ({error.strerror or error})") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SavedIndexError(f"{file}: not the manifest of an index") from None
    if kind != FORMAT:
        raise SavedIndexError(f"{file}: a {kind!r}, not a {FORMAT!r}")
    if version != VERSION:
        raise SavedIndexError(
            f"{directory}: saved in version {version!r} of the format; this Tocsin reads version {VERSION}: save again "
            "with it, from the subscriptions"
        )
    body = sealed.get("body")
    if not isinstance(body, dict) or sealed.get("checksum") != seal(body):
        raise SavedIndexError(f"{file}: damaged (its checksum does not fit)")
    return body


def seal(body: Any) -> str:
    """Return the checksum of a manifest's body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
