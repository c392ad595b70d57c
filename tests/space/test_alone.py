"""A text by itself, and templates that are alike, are read as every other way of reading reads them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.index.boxes import Boxes
from tocsin.space import Boolean, Number, Space, Text, Time
from tocsin.space.axes import Axes
from tocsin.space.filling import Planner

SPACE = Space(
    {
        "i": Number("int64"),
        "j": Number("int64"),
        "x": Number(),
        "y": Number(),
        "d": Number("decimal(9, 2)"),
        "e": Number("decimal(9, 2)"),
        "long": Number("decimal(30, 2)"),
        "kilos": Number(unit="kg"),
        "name": Text(synonyms={"NY": "NYC"}),
        "day": Time("date"),
        "at": Time("timestamp"),
        "flag": Boolean(),
    }
)
NUMBERS = [
    *("0", "-0", "7", "-7", "7L", "7S", "2.5", "-2.50", "2.5BD", "1e3", "-1E-3", "3.0D", "1.5F", "999999999999999999"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775807", "-9223372036854775808", "1e400", "0.005"),
    *("9007199254740993", "9007199254740993.0", "9999999.99", "9999999.995", "1e-400", "100000000000000000000000"),
]
TEXTS = ["''", "'NY'", "'NYC'", "'a%'", "'%a'", "'it''s'", r"'tab\t'", "r'raw'", "'größe'", '"quoted"']
DAYS = ["'2024-02-29'", "DATE '2024-02-29'", "'2024-02-30'", "TIMESTAMP '2024-02-29 12:00:00'", "'now'"]


OTHERS = [
    *("i IS NULL", "x IS NOT NULL", "NOT (i IS NULL)", "i IS NULL AND i = 3", "flag", "flag = TRUE", "NOT flag", "i"),
    *("i IN (1, 2)", "(i = 1 OR j = 2)", "name LIKE 'a%'", "TRUE", "i = 'x", "i = 1 +", "x = 1 /* why */", "-i > 5"),
]

PLANNER = Planner(Axes(SPACE))


def comparisons() -> st.SearchStrategy[str]:
    operators = st.sampled_from(["<", "<=", "=", ">=", ">", "<>", "!=", "=="])
    fields = ["i", "j", "x", "y", "d", "e", "long", "kilos", "nowhere"]
    numbers = st.tuples(st.sampled_from(fields), operators, st.sampled_from(NUMBERS))
    texts = st.tuples(st.sampled_from(["name", "lower(name)", "i"]), operators, st.sampled_from(TEXTS))
    days = st.tuples(st.sampled_from(["day", "at"]), operators, st.sampled_from(DAYS))
    turned = st.tuples(st.sampled_from(NUMBERS), operators, st.sampled_from(["i", "x", "d"]))
    between = st.builds(
        "{} BETWEEN {} AND {}".format, st.sampled_from("ixd"), st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)
    )
    others = st.sampled_from(OTHERS)
    return st.one_of(*(some.map(" ".join) for some in (numbers, texts, days, turned)), between, others)


def expressions() -> st.SearchStrategy[str]:
    return st.lists(comparisons(), min_size=1, max_size=5).map(" AND ".join)


def same(one: Boxes, other: Boxes) -> bool:
    return all(np.array_equal(*sides) for sides in zip(one, other, strict=True))


@given(expressions())
def test_a_text_alone_has_the_box_that_it_has_among_others(text: str) -> None:
    alone = PLANNER._alone.box(text)
    filled = PLANNER._together(pa.array([text]))
    if alone is not None:
        assert not filled.problems and not filled.programs and not filled.conditions
        assert len(filled.rows) == len(alone)
        assert same(alone, filled.boxes)


@given(st.lists(expressions(), min_size=1, max_size=12))
def test_texts_of_many_templates_have_the_boxes_that_each_has_alone(texts: list[str]) -> None:
    together = PLANNER._together(pa.array(texts))
    each = [PLANNER._together(pa.array([text])) for text in texts]
    assert sorted(together.problems) == [row for row, one in enumerate(each) if one.problems]
    assert [str(error) for error in together.problems.values()] == [
        str(error) for one in each for error in one.problems.values()
    ]
    assert together.rows.tolist() == [row for row, one in enumerate(each) for _ in one.rows]
    assert same(together.boxes, Boxes.concatenate([one.boxes for one in each]))


@pytest.mark.parametrize(
    "text", ["i = 3 AND x < 2.5 AND name = 'NYC'", "i BETWEEN 1 AND 5 AND d >= 2.50", "day = '2024-02-29'", "x IS NULL"]
)
def test_plain_comparisons_are_read_alone(text: str) -> None:
    assert PLANNER._alone.box(text) is not None
