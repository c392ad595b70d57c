"""What boxes do not say (patterns) is kept for as long as a subscription says it, and no longer."""

from __future__ import annotations

import random

import pyarrow as pa

from tocsin import Number, Space, Subjects, Text, operator
from tocsin.subjects.plane import FEW_PROGRAMS


def test_patterns_that_come_and_go_leave_nothing_and_those_that_stay_still_decide() -> None:
    pick = random.Random("programs")
    subjects = Subjects(Space({"name": Text(), "x": Number("int64")}))
    words = [a + b for a in "abcd" for b in "abcd"]
    held: dict[int, tuple[str, int]] = {}
    publications = {key: (pick.choice(words) * 2, pick.randrange(9)) for key in range(8)}
    for key, (name, x) in publications.items():
        subjects.publish(key, {"name": name, "x": x})

    def matches(id: int) -> set[int]:
        word, least = held[id]
        return {key for key, (name, x) in publications.items() if word in name and x >= least}

    for step in range(4 * FEW_PROGRAMS):
        id = pick.randrange(40)
        before = matches(id) if id in held else set()
        if id in held and pick.random() < 0.4:
            found = subjects.unsubscribe(id)
            del held[id]
        else:
            new = pick.choice(words), pick.randrange(9)
            text = f"name LIKE '%{new[0]}%' AND x >= {new[1]}"
            found = subjects.change(id, text) if id in held else subjects.subscribe(id, text)
            held[id] = new
        after = matches(id) if id in held else set()
        expected = {("leave", key, id) for key in before - after} | {("enter", key, id) for key in after - before}
        assert set(found) == expected, step
        if step % 50 == 0:
            key = pick.randrange(8)
            old = {id for id in held if key in matches(id)}
            publications[key] = (pick.choice(words) * 2, pick.randrange(9))
            told = set(subjects.update(key, {"name": publications[key][0], "x": publications[key][1]}))
            new_ids = {id for id in held if key in matches(id)}
            assert told == {("leave", key, id) for id in old - new_ids} | {("enter", key, id) for id in new_ids - old}
        assert len(subjects._planes[0].programs) <= FEW_PROGRAMS + len(held) + 1


def test_the_first_pattern_of_all_still_decides_when_many_later_ones_are_forgotten() -> None:
    subjects = Subjects(Space({"name": Text(), "x": Number("int64")}))
    subjects.subscribe("first", "name LIKE '%a_c%' AND x >= 0")
    for turn in range(3 * FEW_PROGRAMS):
        subjects.subscribe("fleeting", f"name LIKE '%{turn}_z%'")
        subjects.unsubscribe("fleeting")
    assert list(subjects.publish("p", {"name": "abc", "x": 1})) == [("enter", "p", "first")]
    assert list(subjects.update("p", {"name": "acb"})) == [("leave", "p", "first")]


def test_the_first_call_of_all_still_decides_when_many_later_ones_are_forgotten() -> None:
    @operator
    def above(x: int, least: int) -> bool:
        return x > least

    subjects = Subjects(Space({"name": Text(), "x": Number("int64")}), operators=[above])
    subjects.subscribe("first", "above(x, 5) AND x >= 0")
    fleeting = [f"{turn}" for turn in range(2 * FEW_PROGRAMS + 1)]
    texts = [f"above(x, {turn}) AND x >= 0 AND name >= 'a'" for turn in fleeting]
    subjects.subscribe_many(pa.table({"id": fleeting, "expression": texts}))
    for id in fleeting:
        subjects.unsubscribe(id)
    subjects.subscribe("last", "name < 'a'")
    plane = subjects._planes[0]
    assert len(plane.conditions) <= FEW_PROGRAMS and len(plane.interests.pool.axis) == 2
    assert list(subjects.publish("p", {"name": "abc", "x": 6})) == [("enter", "p", "first")]
    assert list(subjects.update("p", {"x": 5})) == [("leave", "p", "first")]
