"""Files of spaces: written whole or not at all, and refused with a sentence where they are no spaces."""

from __future__ import annotations

import copy
import json
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.saved.every_dimension import space
from tests.saved.test_saved_again import SEED
from tocsin import Number, Space, TocsinError
from tocsin.errors import SpaceError

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**40,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    [{}],
    {"a": 1},
    ["x"],
    [None],
    [0, -1],
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside another."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (*path, key)
        yield from places(each, (*path, key))


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a copy in which one value is replaced."""
    whole = holder = copy.deepcopy(value)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = odd
    return whole


def test_a_space_of_every_dimension_is_read_as_it_was_written(tmp_path: Path) -> None:
    space().save(tmp_path / "space.json")
    assert Space.load(tmp_path / "space.json") == space()
    assert [file.name for file in tmp_path.iterdir()] == ["space.json"]


def test_whatever_stands_in_a_file_of_a_space_is_taken_or_refused_with_a_sentence() -> None:
    whole, source = space().to_json(), random.Random(SEED)
    every = list(places(whole))
    refused = 0
    for _ in range(400):
        data = changed(whole, source.choice(every), source.choice(ODD))
        try:
            Space.from_json(data)
        except TocsinError:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("parents", [[[], [-1]], [[], [2]], [[], [True]], [[], ["0"]], [[]], [[], None], [[1], [0]]])
def test_a_tree_whose_parents_are_not_its_rows_is_refused(parents: Any) -> None:
    data = {
        "tocsin_space": space().to_json()["tocsin_space"],
        "unspecified": "null",
        "timezone": "UTC",
        "dimensions": [{"path": ["kind"], "type": "concept", "tree": 0}],
        "trees": [{"names": ["a", "b"], "parents": parents}],
    }
    assert Space.from_json(data | {"trees": [{"names": ["a", "b"], "parents": [[], [0]]}]})
    with pytest.raises(TocsinError):
        Space.from_json(data)


@pytest.mark.parametrize("contents", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000, b'{"tocsin_space": 99}'])
def test_a_file_that_is_no_space_is_refused(contents: bytes, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_bytes(contents)
    with pytest.raises(SpaceError):
        Space.load(tmp_path / "space.json")


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    for place in (tmp_path, tmp_path / "file" / "below", tmp_path / "nowhere" / "x", tmp_path / "nul\0"):
        with pytest.raises(SpaceError, match="cannot be read") as caught:
            Space.load(place)
        assert str(place) in str(caught.value)
        with pytest.raises(SpaceError, match="cannot be written") as caught:
            space().save(place)
        assert str(place) in str(caught.value)


def test_a_save_that_finds_no_room_leaves_the_space_before(tmp_path: Path) -> None:
    before = Space({"x": Number()})
    before.save(tmp_path / "space.json")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(SpaceError, match=r"space\.json cannot be written: File too large"):
            space().save(tmp_path / "space.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert Space.load(tmp_path / "space.json") == before
    assert [file.name for file in tmp_path.iterdir()] == ["space.json"]
    assert json.loads((tmp_path / "space.json").read_text()) == before.to_json()
