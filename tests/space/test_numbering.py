"""Pre-order numbers: is_a is an interval test, with several parents a test of several intervals, and stays one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.hierarchies import is_a, name_of, parents

from tocsin.space.books import BookFullError
from tocsin.space.concepts import Known
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.numbering import SPARE, marks


def check(given: dict[str, list[str]], known: Known) -> None:
    hierarchy, (code, last, free), elsewhere, _ = known
    everyone = np.arange(len(hierarchy))
    lows, highs = elsewhere.intervals(everyone, known.numbering)
    for row, concept in enumerate(hierarchy.names):
        intervals = [(code[row], last[row]), *((low[row], high[row]) for low, high in zip(lows, highs, strict=True))]
        for other, name in enumerate(hierarchy.names):
            inside = any(low <= code[other] <= high for low, high in intervals)
            assert inside == is_a(given, name, concept), (name, concept)
            assert hierarchy.is_a(name, concept) == inside
            assert bool(hierarchy.path(name, concept)) == inside
    assert ((last - free)[:-1] >= SPARE - 1).all()
    assert len(np.unique(code)) == len(code)


@settings(deadline=None)
@given(parents())
def test_below_is_within_the_intervals(given: dict[str, list[str]]) -> None:
    check(given, Known.of(Hierarchy.of(given)))


@settings(max_examples=60, deadline=None)
@given(parents(), st.data())
def test_growth_keeps_every_interval_until_room_runs_out(given: dict[str, list[str]], data: st.DataObject) -> None:
    known = Known.of(Hierarchy.of(given))
    for step in range(data.draw(st.integers(1, 6))):
        fresh: dict[str, list[str]] = {}
        for number in range(data.draw(st.integers(1, 4))):
            names = [*given, *fresh]
            above = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
            fresh[name_of(1000 + 10 * step + number)] = above
        hierarchy = known.hierarchy.grown(fresh)
        given = {**given, **fresh}
        before = known.numbering
        try:
            known = known.grown(hierarchy)
        except BookFullError:
            known = Known.of(hierarchy)
        else:
            held = len(before.code) - 1
            assert np.array_equal(known.numbering.code[:held], before.code[:held])
            assert np.array_equal(known.numbering.last[:held], before.last[:held])
        check(given, known)


def test_room_for_a_thousand_children_one_by_one_and_a_line_of_seven() -> None:
    known = Known.of(Hierarchy.of({f"c{number}": [f"c{number // 10}"] if number else [] for number in range(1000)}))
    line = known
    for number in range(7):
        line = line.grown(line.hierarchy.grown({f"l{number}": [f"l{number - 1}" if number else "c999"]}))
    for number in range(300):
        known = known.grown(known.hierarchy.grown({f"s{number}": ["c7"]}))
    hierarchy, (code, last, _), _, _ = known
    assert code[hierarchy.rows["c7"]] < code[hierarchy.rows["s299"]] <= last[hierarchy.rows["c7"]]


@settings(deadline=None)
@given(parents())
def test_marks_keep_their_order_when_numbered_anew(given: dict[str, list[str]]) -> None:
    known = Known.of(Hierarchy.of(given))
    anchor = next(iter(given))
    for number in range(5):
        known = known.grown(known.hierarchy.grown({f"new{number}": [f"new{number - 1}" if number else anchor]}))
    old, new = (marks(each.numbering, len(known.hierarchy)) for each in (known, Known.of(known.hierarchy)))
    order = np.argsort(old, kind="stable")
    assert (np.diff(new[order]) >= 0).all()
    assert np.array_equal(np.diff(old[order]) == 0, np.diff(new[order]) == 0)
    assert np.array_equal(np.diff(old[order]) == 1, np.diff(new[order]) == 1)
