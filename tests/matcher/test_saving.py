"""Saved matchers: what is kept with them, what is refused, and that they are not copied by other means."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tocsin import Matcher, Number, Space, Subjects, Text, TocsinError
from tocsin.errors import SavedIndexError

SPACE = Space({"price": Number(), "city": Text()})


def small() -> Matcher:
    matcher = Matcher(SPACE)
    matcher.subscribe("cheap", "price <= 400 AND city = 'NYC'")
    return matcher


@pytest.mark.parametrize("note", [None, 0, 2**70, 1.5, "größe", [1, None, [True]], {"sequence": 7, "of": {"a": []}}])
def test_a_note_comes_back_as_it_was_given(note: Any, tmp_path: Path) -> None:
    matcher = small()
    assert matcher.note is None
    matcher.save(tmp_path, note=note)
    loaded = Matcher.load(tmp_path)
    assert loaded.note == note
    assert loaded.match({"price": 5, "city": "NYC"}) == ["cheap"]


def test_a_note_belongs_to_its_save(tmp_path: Path) -> None:
    small().save(tmp_path, note=1)
    Matcher.load(tmp_path).save(tmp_path)
    assert Matcher.load(tmp_path).note is None


NESTED: list[Any] = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "note",
    [b"bytes", (1, 2), {1: 2}, float("nan"), [float("inf")], {1, 2}, object(), NESTED, "x" * (1 << 20)],
)
def test_a_note_that_would_not_come_back_is_refused_before_anything_is_written(note: Any, tmp_path: Path) -> None:
    with pytest.raises(TocsinError, match="note"):
        small().save(tmp_path / "a", note=note)
    assert not (tmp_path / "a").exists()


def test_a_note_of_the_greatest_length_is_kept(tmp_path: Path) -> None:
    small().save(tmp_path, note="x" * ((1 << 20) - 2))
    assert len(Matcher.load(tmp_path).note) == (1 << 20) - 2


def test_axes_of_a_kind_to_come_are_refused_with_a_sentence(tmp_path: Path) -> None:
    small().save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["body"]["notes"]["axes"][0] = {"kind": "expression", "text": "price * 2"}
    manifest["checksum"] = hashlib.sha256(json.dumps(manifest["body"], sort_keys=True).encode()).hexdigest()
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SavedIndexError, match="an axis of the kind 'expression', which only a newer Tocsin knows"):
        Matcher.load(tmp_path)


def test_an_index_without_a_matcher_is_refused(tmp_path: Path) -> None:
    from tocsin.index import create
    from tocsin.index.saved import save

    save(create("adaptive"), tmp_path)
    with pytest.raises(SavedIndexError, match="no matcher"):
        Matcher.load(tmp_path)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_copying_says_what_to_do_instead(way: Any) -> None:
    with pytest.raises(TocsinError, match=r"a Matcher is neither copied nor pickled: save it with matcher\.save"):
        way(small())
    with pytest.raises(TocsinError, match="a Subjects is neither copied nor pickled: put the same publications"):
        way(Subjects(SPACE))


def test_a_space_is_copied_and_pickled() -> None:
    for again in (copy.copy(SPACE), copy.deepcopy(SPACE), pickle.loads(pickle.dumps(SPACE))):
        assert again == SPACE
