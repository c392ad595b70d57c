"""Saved indexes: they answer as before, are replaced at once or not at all, and refuse what is damaged or foreign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin.bench.workloads import WORKLOADS
from tocsin.errors import SavedIndexError
from tocsin.index import Boxes, Index, Queries, create
from tocsin.index.saved import MANIFEST, load, notes_of, save

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


def test_a_save_that_is_cut_short_leaves_the_index_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(filled(), tmp_path)
    before = answers(load(tmp_path))
    writes = 0

    def failing(*given: Any, **named: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise OSError("no space left on device")
        whole(*given, **named)

    whole = np.save
    monkeypatch.setattr(np, "save", failing)
    with pytest.raises(OSError, match="no space"):
        save(filled("W0"), tmp_path)
    assert answers(load(tmp_path, verify=True)) == before


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
    with pytest.raises(SavedIndexError, match="version 99"):
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
    with pytest.raises(SavedIndexError, match="is missing"):
        load(tmp_path)


def test_every_flipped_byte_is_found_by_verifying(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    random = np.random.default_rng(5)
    for file in tmp_path.glob("*.npy"):
        whole = file.read_bytes()
        place = int(random.integers(len(whole)))
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 64]) + whole[place + 1 :])
        with pytest.raises(SavedIndexError):
            load(tmp_path, verify=True)
        file.write_bytes(whole)
    load(tmp_path, verify=True)


def test_a_flipped_byte_in_a_small_file_is_found_at_once(tmp_path: Path) -> None:
    save(filled(), tmp_path)
    file = min(tmp_path.glob("*.npy"), key=lambda file: file.stat().st_size)
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(bytes(whole))
    with pytest.raises(SavedIndexError, match="not those that were saved"):
        load(tmp_path)


def test_queries_reach_a_loaded_index_from_the_first_one_on(tmp_path: Path) -> None:
    save(filled("R"), tmp_path)
    point = Queries.points(np.ascontiguousarray(WORKLOADS["R"].queries(1).low))
    assert len(load(tmp_path).overlap(point).numbers) == len(filled("R").overlap(point).numbers)
