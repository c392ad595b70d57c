"""Saved indexes: they answer as before, are replaced at once or not at all, and refuse what is damaged or foreign."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import index
from tocsin.bench.workloads import WORKLOADS
from tocsin.errors import FileError, SavedIndexError
from tocsin.index import Boxes, Index, Queries, create
from tocsin.index.saved import MANIFEST, build_of, load, notes_of, open_saved, save

N, ROWS = 6_000, 300


def filled(workload: str = "W1", engine: str = "adaptive", **options: Any) -> Index:
    index = create(engine, **options)
    index.insert(*WORKLOADS[workload].boxes(N))
    return index


def answers(index: Index, workload: str = "W1") -> list[tuple[int, int]]:
    pairs = index.overlap(WORKLOADS[workload].queries(ROWS))
    return sorted(zip(pairs.rows.tolist(), pairs.numbers.tolist(), strict=True))


def largest(directory: Path) -> Path:
    return max(directory.glob("*.npy"), key=lambda file: file.stat().st_size)


@pytest.mark.parametrize("workload", ["W0", "W1", "R"])
def test_a_loaded_index_answers_as_the_saved_one(workload: str, tmp_path: Path) -> None:
    index = filled(workload)
    index.remove(np.arange(0, N, 3, dtype=np.int32))
    index.insert(np.arange(0, 300, 3, dtype=np.int32), Boxes.of([{0: [(5, 5)]}] * 100))
    save(index, tmp_path)
    opened = load(tmp_path, verify=True)
    assert len(opened) == len(index)
    assert answers(opened, workload) == answers(index, workload)
    for mine, theirs in zip(index.contents()[1], opened.contents()[1], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_loaded_index_can_be_changed(tmp_path: Path) -> None:
    index = filled()
    save(index, tmp_path)
    opened = load(tmp_path)
    for changed in (index, opened):
        changed.remove(np.arange(100, 200, dtype=np.int32))
        changed.insert(np.arange(150, 160, dtype=np.int32), Boxes.of([{}] * 10))
    assert answers(opened) == answers(index)


def test_an_empty_index_is_saved_and_loaded(tmp_path: Path) -> None:
    save(create("adaptive"), tmp_path)
    opened = load(tmp_path)
    assert len(opened) == 0
    assert answers(opened) == []


def test_an_engine_without_a_form_of_its_own_is_saved_as_its_boxes(tmp_path: Path) -> None:
    index = filled(engine="scan")
    save(index, tmp_path)
    opened = load(tmp_path)
    assert opened.name == "scan"
    assert answers(opened) == answers(index)


def test_saving_again_replaces_the_index_and_leaves_no_files_behind(tmp_path: Path) -> None:
    index = filled()
    save(index, tmp_path, {"turn": 1})
    files = len(list(tmp_path.iterdir()))
    still_open = load(tmp_path)
    index.remove(np.arange(N - 1, dtype=np.int32))
    save(index, tmp_path, {"turn": 2})
    assert len(load(tmp_path)) == 1
    assert len(still_open) == N
    assert answers(still_open) == answers(filled())
    assert notes_of(tmp_path) == {"turn": 2}
    assert len(list(tmp_path.iterdir())) <= files + 1  # one more: what was removed


@contextmanager
def full_disk(after: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: writing more fails as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("after", [0, 100, 20_000])
def test_a_save_that_finds_no_room_leaves_the_index_before_and_nothing_else(after: int, tmp_path: Path) -> None:
    save(filled(), tmp_path)
    before, files = answers(load(tmp_path)), sorted(tmp_path.iterdir())
    with (
        full_disk(after),
        pytest.raises(FileError, match=f"{tmp_path}: the index cannot be saved here: File too large"),
    ):
        save(filled("W0"), tmp_path)
    assert answers(load(tmp_path)) == before
    assert sorted(tmp_path.iterdir()) == files
    with full_disk(after), pytest.raises(FileError):
        save(filled("W0"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_save_where_there_is_no_directory_to_be_had_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "nul\0"):
        with pytest.raises(FileError, match="the index cannot be saved here") as caught:
            save(filled(), place)
        assert str(place) in str(caught.value)


def test_every_save_has_an_identity_of_its_own(tmp_path: Path) -> None:
    index = filled()
    save(index, tmp_path / "a")
    first = build_of(tmp_path / "a")
    save(index, tmp_path / "b")
    save(index, tmp_path / "a")
    assert len({first, build_of(tmp_path / "a"), build_of(tmp_path / "b")}) == 3


def test_what_a_killed_save_has_left_is_removed_by_the_next_and_nothing_else_is(tmp_path: Path) -> None:
    left = [tmp_path / f"0123456789abcdef-{name}" for name in ("segment0.words.npy", "manifest.json")]
    others = [tmp_path / name for name in ("mine.npy", "0123-other.npy", "notes.txt")]
    for file in (*left, *others):
        file.write_text("something")
    save(filled(), tmp_path)
    assert not any(file.exists() for file in left)
    assert all(file.exists() for file in others)


def test_a_directory_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SavedIndexError, match="there is no index here"):
        load(tmp_path)
    with pytest.raises(SavedIndexError, match="there is no index here"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("contents", ["", "{", "[]", '"text"', "{}", '{"format": "tocsin-index"}'])
def test_what_is_not_a_manifest_is_refused(contents: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(contents)
    with pytest.raises(SavedIndexError, match="not the manifest of an index"):
        load(tmp_path)


def test_another_format_or_version_is_refused(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    sealed = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**sealed, "version": 99}))
    with pytest.raises(SavedIndexError, match=r"version 99.*save again"):
        load(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps({**sealed, "version": 2}))
    with pytest.raises(SavedIndexError, match=r"version 2 .*save again"):
        load(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps({**sealed, "format": "parquet"}))
    with pytest.raises(SavedIndexError, match="'parquet'"):
        load(tmp_path)


def test_a_changed_manifest_is_refused(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    sealed = json.loads((tmp_path / MANIFEST).read_text())
    sealed["body"]["engine"] = "scan"
    (tmp_path / MANIFEST).write_text(json.dumps(sealed))
    with pytest.raises(SavedIndexError, match="checksum does not fit"):
        load(tmp_path)


def test_a_missing_or_shortened_file_is_refused(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    file = largest(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(SavedIndexError, match="were saved"):
        load(tmp_path)
    file.unlink()
    with pytest.raises(SavedIndexError, match=f"{file.name}: missing"):
        load(tmp_path)


def flip(file: Path, place: int) -> None:
    whole = bytearray(file.read_bytes())
    whole[place] ^= 64
    file.write_bytes(bytes(whole))


def test_every_flipped_byte_is_found_and_its_file_is_named(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    random = np.random.default_rng(5)
    for file in tmp_path.glob("*.npy"):
        whole = file.read_bytes()
        flip(file, int(random.integers(len(whole))))
        with pytest.raises(SavedIndexError, match=f"{file.name}: damaged"):
            load(tmp_path)
        file.write_bytes(whole)
    load(tmp_path)


def test_a_flipped_byte_in_a_small_file_is_found_without_verifying(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    flip(min(tmp_path.glob("*.npy"), key=lambda file: file.stat().st_size), -1)
    with pytest.raises(SavedIndexError, match="not those that were saved"):
        load(tmp_path, verify=False)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tocsin" / "verified"


def test_what_was_verified_once_is_not_read_again_until_it_changes(tmp_path: Path, cache: Path) -> None:
    save(filled(), tmp_path / "a")
    load(tmp_path / "a", verify="once")
    assert [stamp.stat().st_size > 0 for stamp in cache.iterdir()] == [True]
    assert cache.stat().st_mode & 0o777 == 0o700
    file = largest(tmp_path / "a")
    described = file.stat()
    load(tmp_path / "a", verify="once")
    assert len(list(cache.iterdir())) == 1
    flip(file, -1)
    os.utime(file, ns=(described.st_atime_ns, described.st_mtime_ns))  # its time of change still tells
    for _ in range(2):
        with pytest.raises(SavedIndexError, match=f"{file.name}: damaged"):
            load(tmp_path / "a", verify="once")
    flip(file, -1)
    load(tmp_path / "a", verify="once")
    save(filled(), tmp_path / "a")
    load(tmp_path / "a", verify="once")
    assert sum(stamp.stat().st_size > 0 for stamp in cache.iterdir()) == 3


def test_a_cache_that_others_may_write_to_is_not_believed(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    save(filled(), tmp_path / "a")
    load(tmp_path / "a", verify="once")
    assert list(cache.iterdir()) == []


def test_verify_is_one_of_three(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    with pytest.raises(ValueError, match="verify is True, False or 'once', not 'twice'"):
        open_saved(tmp_path, verify="twice")  # type: ignore[arg-type]


def resealed(directory: Path, **changes: Any) -> None:
    """Change the body of a manifest and its checksum, as whoever can write to a directory could."""
    sealed = json.loads((directory / MANIFEST).read_text())
    sealed["body"] |= changes
    sealed["checksum"] = hashlib.sha256(json.dumps(sealed["body"], sort_keys=True).encode()).hexdigest()
    (directory / MANIFEST).write_text(json.dumps(sealed))


@pytest.mark.parametrize("name", ["saved", "shared", "segments.parts", "nothing", "", "os", None, 7, ["adaptive"], {}])
def test_engines_are_those_of_the_registry_whatever_a_file_says(name: Any, tmp_path: Path) -> None:
    save(filled(), tmp_path)
    resealed(tmp_path, engine=name)
    with pytest.raises(SavedIndexError, match="its engine is unknown here: there is no engine"):
        load(tmp_path)


def test_the_registry_has_every_module_that_defines_an_engine() -> None:
    found = (importlib.import_module(f"tocsin.index.{each.name}") for each in pkgutil.iter_modules(index.__path__))
    assert sorted(module.ENGINE.name for module in found if hasattr(module, "ENGINE")) == sorted(index.NAMES)


@pytest.mark.parametrize("file", ["../outside.npy", "/etc/hostname", "..", ".", "", None, 7])
def test_files_outside_the_directory_are_not_opened(file: Any, tmp_path: Path) -> None:
    (tmp_path / "outside.npy").write_bytes(b"x")
    save(filled(), tmp_path / "a")
    body = json.loads((tmp_path / "a" / MANIFEST).read_text())["body"]
    arrays = {name: {**one, "file": file} for name, one in body["arrays"].items()}
    resealed(tmp_path / "a", arrays=arrays)
    with pytest.raises(SavedIndexError):
        load(tmp_path / "a")


@pytest.mark.parametrize("kind", ["|O", "O", "<M8[s]", ">i8", "V8", "i4,i4", "<i3", "", None])
def test_arrays_of_objects_and_other_kinds_are_refused(kind: Any, tmp_path: Path) -> None:
    save(filled(), tmp_path)
    body = json.loads((tmp_path / MANIFEST).read_text())["body"]
    resealed(tmp_path, arrays={name: {**one, "kind": kind} for name, one in body["arrays"].items()})
    with pytest.raises(SavedIndexError, match="which no index has"):
        load(tmp_path)


def test_queries_reach_a_loaded_index_from_the_first_one_on(tmp_path: Path) -> None:
    save(filled("R"), tmp_path)
    point = Queries.points(np.ascontiguousarray(WORKLOADS["R"].queries(1).low))
    assert len(load(tmp_path).overlap(point).numbers) == len(filled("R").overlap(point).numbers)
