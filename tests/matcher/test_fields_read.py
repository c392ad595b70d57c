"""Which fields of an event are read, and when what they hold refuses it: the same for a dictionary and for a table."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tocsin
from tocsin import Derived, Matcher, Number, Repeated, Space, Text
from tocsin.errors import EventError, MissingColumnError, UnknownFieldError

LEAST = -(2**63)
SPACE = Space({"n": Number("int64"), "tags": Repeated(Text()), "nums": Repeated(Number("int64"))})


def answers(matcher: Matcher, values: list[Any], name: str, kind: pa.DataType | None = None) -> list[list[Any]]:
    """Return the ids that each of these lists matches beside n = 4, or "refused", by dictionaries and by a table."""
    one = []
    for value in values:
        try:
            one.append(matcher.match({"n": 4, name: value}))
        except EventError:
            one.append(["refused"])
    table = pa.table({"n": [4] * len(values), name: pa.array(values, kind)})
    problems: list[Any] = []
    found: list[list[Any]] = [[] for _ in values]
    for pair in matcher.match_batch(table, missing="unspecified", problems=problems).to_pylist():
        found[pair["event"]].append(pair["subscription"])
    for problem in problems:
        assert f"row {problem.row}, field {name}: " in str(problem.error)
        found[problem.row] = ["refused"]
    assert one == found
    return found


@pytest.mark.parametrize("reached", [4, 5])
def test_a_field_that_only_programs_look_at_is_read_of_every_event(reached: int, tmp_path: Path) -> None:
    """Whether or not an event comes as far as the program: ``reached`` says which do."""
    matcher = Matcher(SPACE)
    matcher.subscribe("program", f"n = {reached} AND nums > {LEAST}")
    matcher.subscribe("other", "n = 4")
    matched = ["other", "program"] if reached == 4 else ["other"]
    for _ in range(2):
        doubles = answers(matcher, [[2.5], [2.0, None], [1e300], None], "nums", pa.list_(pa.float64()))
        assert [sorted(each) for each in doubles] == [["refused"], matched, ["refused"], ["other"]]
        decimals = [[Decimal("2.0")], [Decimal("2.5")]]
        assert [sorted(each) for each in answers(matcher, decimals, "nums")] == [matched, ["refused"]]
        assert answers(matcher, [[2**63]], "nums", pa.list_(pa.uint64())) == [["refused"]]
        assert answers(matcher, [[True]], "nums") == [["refused"]]
        matcher.save(tmp_path / "saved")
        matcher = Matcher.load(tmp_path / "saved")
    texts = Matcher(SPACE)
    texts.subscribe("like", f"n = {reached} AND tags LIKE '%x%'")
    assert answers(texts, [[5]], "tags") == [["refused"]]
    assert answers(texts, [["axe", None], ["a"]], "tags") == [["like"] if reached == 4 else [], []]


OPERATORS = [
    tocsin.operator(lambda picture: picture is not None, name="seen", reads=["picture"]),
    tocsin.operator(lambda shape_size: shape_size > 3, name="wide", reads=["shape.size"]),
    tocsin.operator(lambda value: value, name="same", outputs=["v"], takes_null=True),
]


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("mentions(title, 'a')", "title"),
        ("n = 1 AND mentions(title, 'a')", "title"),
        ("seen()", "picture"),
        ("wide()", "shape.size"),
        ("NOT same(double, :v)", "half"),
        ("same(n, :v) AND :v > half", "half"),
        ("NOT (same(n, :v) AND :v > half)", "half"),
    ],
)
def test_a_table_that_lacks_what_operators_receive_is_refused(text: str, lacking: str, tmp_path: Path) -> None:
    kinds = {"n": Number("int64"), "half": Number("int64"), "title": Text()}
    space = Space(kinds | {"double": Derived("half * 2", Number("int64"))})
    matcher = Matcher(space, operators=OPERATORS)
    matcher.subscribe("a", text)
    shape = pa.array([None, None], pa.struct({"width": pa.int64()}))
    table = pa.table({"n": [1, 2], "shape": shape})
    whole = {"half": [1, 2], "title": ["b", "c"], "picture": [None, None]}
    for _ in range(2):
        with pytest.raises(MissingColumnError, match=f"the events have no column {lacking}, which .*; .*missing="):
            matcher.match_batch(table)
        with pytest.raises(MissingColumnError, match=f"no column {lacking}"):
            matcher.match_batch(table, problems=[])
        with pytest.raises(MissingColumnError, match=f"no column {lacking}"):
            matcher.moved_batch(None, table)
        left_out = matcher.match_batch(table, missing="unspecified")["event"].to_pylist()
        assert left_out == [row for row in (0, 1) if matcher.match({"n": row + 1})]
        matcher.match_batch(pa.table({"n": [1, 2], "shape": [{"size": 1}, None], **whole}))
        matcher.save(tmp_path / "saved")
        matcher = Matcher.load(tmp_path / "saved", operators=OPERATORS)


def test_a_formula_is_computed_for_operators_as_for_the_index_where_a_column_is_left_out() -> None:
    space = Space({"n": Number("int64"), "m": Number("int64"), "sum": Derived("coalesce(m, 5) + n", Number("int64"))})
    matcher = Matcher(space, operators=OPERATORS)
    matcher.subscribe("operator", "same(sum, :v) AND :v = 6")
    matcher.subscribe("index", "sum = 6")
    assert sorted(matcher.match({"n": 1})) == ["index", "operator"]
    found = matcher.match_batch(pa.table({"n": [1]}), missing="unspecified")
    assert sorted(found["subscription"].to_pylist()) == ["index", "operator"]


def test_a_list_that_is_null_in_another_is_an_unknown_element_in_a_table_as_in_a_dictionary() -> None:
    values = [None, [], [None], [{"t": None}], [{"t": []}], [{"t": ["b"]}], [{"t": None}, {"t": ["a"]}], [{"t": ["a"]}]]
    matcher = Matcher(Space({"s": {"t": Repeated(Text())}}))
    texts = ["s.t IS NULL", "s.t = 'a'", "NOT s.t = 'a'", "NOT s.t LIKE '%c%'", "s.t <> 'b'"]
    matcher.subscribe_many(pa.table({"id": texts, "expression": texts}))
    table = pa.table({"s": pa.array(values, pa.list_(pa.struct({"t": pa.list_(pa.string())})))})
    for start in (0, 3):  # a slice too
        found: list[list[str]] = [[] for _ in values[start:]]
        for pair in matcher.match_batch(table.slice(start)).to_pylist():
            found[pair["event"]].append(pair["subscription"])
        assert list(map(sorted, found)) == [sorted(matcher.match({"s": value})) for value in values[start:]]
    assert matcher.match({"s": [{"t": None}]}) == [] and matcher.match({"s": None}) == ["s.t IS NULL"]


def test_what_holds_other_fields_is_told_where_a_subscription_tests_it() -> None:
    matcher = Matcher(Space({"s": {"items": {"sku": Repeated(Text()), "n": Number()}}, "title": Text()}))
    for text in ("s.items IS NULL", "S.Items = 'a'"):
        with pytest.raises(UnknownFieldError, match=r"it holds other fields, test one of those: s.items.sku, s.it"):
            matcher.subscribe("a", text)
    with pytest.raises(EventError, match=r"the space has no field Title; did you mean title\?"):
        matcher.match({"Title": "a"}, unknown="error")
