"""Long lists of constants: read together, and meaning what each of them says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Address, Matcher, Number, Space, Text, errors

SPACE = Space({"a": Number("int64"), "d": Number("decimal(10, 2)"), "t": Text(), "ip": Address()})


def test_a_list_of_many_kinds_of_numbers_holds_for_each_of_them() -> None:
    whole, halves = range(0, 3_000, 3), [Decimal(n) + Decimal("0.5") for n in range(500)]
    listed = ", ".join([*map(str, whole), *map(str, halves), "1e3", "NULL", "-7"])
    matcher = Matcher(SPACE)
    matcher.subscribe("in", f"d IN ({listed})")
    matcher.subscribe("not in", f"NOT d IN ({listed.replace('NULL, ', '')})")
    expected = {*map(Decimal, whole), *halves, Decimal(1_000), Decimal(-7)}
    for value in [Decimal(n) / 4 for n in range(-40, 2_100, 7)] + [Decimal(1_000), Decimal(-7)]:
        assert matcher.match({"d": value}) == (["in"] if value in expected else ["not in"]), value
    assert matcher.match({"d": None}) == []


def test_lists_of_one_template_are_read_together_and_stay_apart() -> None:
    ids = list(range(40))
    lists = [[f"w{n * k % 97}" for k in range(60)] for n in ids]
    texts = ["t IN (" + ", ".join(f"'{word}'" for word in words) + ")" for words in lists]
    matcher = Matcher(SPACE)
    matcher.subscribe_many(pa.table({"id": ids, "expression": texts}))
    for n in range(97):
        assert sorted(matcher.match({"t": f"w{n}"})) == [id for id in ids if f"w{n}" in lists[id]]


@pytest.mark.parametrize(("bad", "row"), [("'nowhere'", 1), ("'10.0.0.0/99'", 1)])
def test_a_bad_constant_in_a_list_is_told_of_its_row(bad: str, row: int) -> None:
    texts = ["ip IN ('10.0.0.1', '10.1.0.0/16')", f"ip IN ('10.0.0.2', {bad})", "ip IN ('::1', '10.0.0.3')"]
    problems: list[Any] = []
    matcher = Matcher(SPACE)
    assert matcher.subscribe_many(pa.table({"id": range(3), "expression": texts}), problems=problems) == 2
    assert [problem.row for problem in problems] == [row]
    assert isinstance(problems[0].error, errors.ExpressionError) and bad.strip("'") in str(problems[0].error)
    assert matcher.match({"ip": "10.1.2.3"}) == [0] and matcher.match({"ip": "10.0.0.3"}) == [2]
