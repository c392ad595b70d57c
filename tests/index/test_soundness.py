"""A segment that would lead a kernel astray is refused before one reads it."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.bench.nested import nested
from tocsin.bench.workloads import WORKLOADS
from tocsin.index import Boxes
from tocsin.index.segments.building import build
from tocsin.index.segments.soundness import check_segment
from tocsin.index.segments.statistics import QueryStatistics
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.layout import Segment

FAR = 2**31 - 1


def equalities(count: int, *values: int) -> Boxes:
    """Return boxes of one value on each axis, of so many."""
    random = np.random.default_rng(7)
    codes = np.stack([random.integers(0, each, count) for each in values], axis=1).ravel()
    offsets = np.arange(count + 1, dtype=np.int64) * len(values)
    return Boxes(offsets, np.tile(np.arange(len(values), dtype=np.int32), count), codes, codes)


@pytest.fixture(scope="module")
def segments() -> dict[str, Segment]:
    """Segments that have, together, every section: hashed and computed pages, embedded children, sets, runs."""
    sets = [{0: [(at, at)], 1: [(at, at), (at + 5, at + 9)], 2: [(at, 2 * at)]} for at in range(500)]
    boxes = {
        "W0": WORKLOADS["W0"].boxes(3_000)[1],
        "R": WORKLOADS["R"].boxes(3_000)[1],
        "hashed": equalities(40_000, 300, 300, 300),
        "sets": Boxes.of(sets),
        "nested": nested(4_000, 60, 8),
    }
    numbered = {name: (np.arange(len(each), dtype=np.int32), each) for name, each in boxes.items()}
    return {name: build(*each, QueryStatistics())[0] for name, each in numbered.items()}


def changed(segment: Segment, array: str, place: int, value: int) -> Segment:
    """Return a segment in which one number is another."""
    whole = getattr(segment, array).copy()
    whole[place] = value
    return segment._replace(**{array: whole})


def test_what_is_built_is_sound(segments: dict[str, Segment]) -> None:
    for segment in segments.values():
        check_segment(segment)
    for section in (at.HASH_KEYS, at.EMBEDDED_KEY, at.RUN_START):
        assert any(each.header[section + 1] > each.header[section] for each in segments.values()), section


PLACES = {
    "numbers": at.NUMBERS,
    "first": at.FIRST,
    "row_start": at.ROW_START,
    "predicates": at.PREDICATES,
    "words": at.WORDS,
    "set_start": at.SET_START,
    "starts": at.STARTS,
    "lookup": at.LOOKUP,
    "by_number": at.BY_NUMBER,
    "embedded_key": at.EMBEDDED_KEY,
    "embedded_slot": at.EMBEDDED_SLOT,
    "run_start": at.RUN_START,
    "run_end": at.RUN_END,
}


@pytest.mark.parametrize("section", PLACES)
@pytest.mark.parametrize("value", [-1, FAR])
def test_a_place_that_is_not_there_is_refused(section: str, value: int, segments: dict[str, Segment]) -> None:
    tried = 0
    for segment in segments.values():
        begin, end = segment.header[PLACES[section]], segment.header[PLACES[section] + 1]
        for place in {int(begin), int(end) - 1} if end > begin else ():
            if section == "numbers" and value == FAR:
                continue  # a number may be as great; whose it is, the matcher checks
            with pytest.raises(ValueError, match=r"\w"):
                check_segment(changed(segment, "words", place, value))
            tried += 1
    assert tried or (section, value) == ("numbers", FAR)


@pytest.mark.parametrize("place", range(at.HEADER))
def test_a_header_of_other_counts_is_refused(place: int, segments: dict[str, Segment]) -> None:
    for segment in segments.values():
        for value in (-1, FAR):
            with pytest.raises(ValueError, match=r"\w"):
                check_segment(changed(segment, "header", place, value))


def test_records_of_axes_and_nodes_that_lead_elsewhere_are_refused(segments: dict[str, Segment]) -> None:
    free = {at.A_BASE, at.A_SHIFT}  # any base is as good for the kernel
    for segment in segments.values():
        axes, nodes = (int(segment.header[place]) for place in (at.AXIS_TABLE, at.NODE_TABLE))
        for field in set(range(at.AXIS_FIELDS)) - free:
            with pytest.raises(ValueError, match=r"\w"):
                check_segment(changed(segment, "longs", axes + field, 2**40))
        last = nodes + (int(segment.header[at.NODES]) - 1) * at.NODE_FIELDS
        for field in set(range(at.NODE_FIELDS)) - {at.N_MASK, at.N_KEY, at.N_CELLS, at.N_HASH}:
            with pytest.raises(ValueError, match=r"\w"):
                check_segment(changed(segment, "longs", last + field, 2**40))


def test_a_hash_table_without_an_end_is_refused(segments: dict[str, Segment]) -> None:
    found = 0
    for segment in segments.values():
        begin, end = (int(segment.header[at.HASH_KEYS + step]) for step in (0, 1))
        if end > begin:
            longs = segment.longs.copy()
            longs[begin:end] = np.maximum(longs[begin:end], 0)
            with pytest.raises(ValueError, match="a hash table without a free slot"):
                check_segment(segment._replace(longs=longs))
            found += 1
    assert found


def test_marks_of_predicates_that_are_not_there_are_refused(segments: dict[str, Segment]) -> None:
    for segment in segments.values():
        with pytest.raises(ValueError, match="more predicates are implied than there are"):
            check_segment(changed(segment, "marks", 0, at.IMPLIED))
