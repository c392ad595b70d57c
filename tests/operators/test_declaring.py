"""What may be declared, what constants may be, and which operator a name means."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin
from tocsin.errors import BadSubscriptionsError, ExpressionError, OperatorError
from tocsin.language.formulas import FUNCTIONS
from tocsin.operators.shapes import DEEPEST, KEPT_BYTES, LONGEST, Shapes

SPACE = tocsin.Space({"x": tocsin.Number(), "y": tocsin.Number(), "shape": tocsin.Text()})


def declared(**settings: Any) -> Any:
    return tocsin.operator(lambda x: True, **({"name": "some", "reads": ["x"]} | settings))


@pytest.mark.parametrize(
    "name",
    [
        "is_a", "in_network", "quantity", "isnull", "isnotnull", "regexp", "regexp_like", "contains", "startswith",
        "endswith", "array_contains", "lower", "upper", "count", "between", "not", *FUNCTIONS,
    ],
)  # fmt: skip
def test_names_that_the_language_knows_are_refused(name: str) -> None:
    with pytest.raises(OperatorError, match=f"SQL has a function or a word {name}"):
        declared(name=name)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"retries": -1}, "retries is a whole number from 0 to 1,000, not -1"),
        ({"retries": 1_001}, "retries is a whole number"),
        ({"retries": 1.0}, "retries is a whole number"),
        ({"retries": True}, "retries is a whole number"),
        ({"remember": -1}, "remember is a whole number from 0 to 10,000,000, not -1"),
        ({"remember": 10_000_001}, "remember is a whole number"),
        ({"remember": "5"}, "remember is a whole number"),
        ({"outputs": ["n", "n"]}, "each of the outputs has a name of its own"),
        ({"outputs": ["a b"]}, "outputs are names such as n or distance, not 'a b'"),
        ({"outputs": [5]}, "outputs are names"),
        ({"outputs": {"n": 5}}, "outputs are given as a mapping of names to types"),
        ({"limit": float("nan")}, "limit is a number of seconds above 0"),
        ({"limit": float("inf")}, "limit is a number of seconds above 0, at most 1,000,000"),
        ({"limit": "1"}, "limit is a number of seconds"),
        ({"cost": -1}, "cost is a number of seconds above 0"),
        ({"takes_null": 1}, "takes_null is True or False"),
        ({"prepare": "x"}, "prepare is a function"),
        ({"bounded": [0]}, "bounded are places of its 0 parameters"),
        ({"reads": ["a..b"]}, "its first parameters must be"),
    ],
)
def test_settings_are_checked_when_an_operator_is_declared(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        declared(**settings)


def test_settings_at_their_limits_are_taken() -> None:
    assert declared(retries=1_000, remember=10_000_000, limit=1e6).retries == 1_000


def test_two_operators_of_one_name_are_refused_and_the_matchers_own_comes_first() -> None:
    one, other = declared(), tocsin.operator(lambda x: False, name="some", reads=["x"])
    with pytest.raises(OperatorError, match="two operators some"):
        tocsin.Matcher(SPACE, operators=[one, other])
    space = tocsin.Space({"x": tocsin.Number()}, operators=[one])
    matcher = tocsin.Matcher(space, operators=[other])
    matcher.subscribe(1, "NOT some()")
    assert matcher.match({"x": 1}) == [1]


def test_operators_of_one_name_and_version_have_each_their_own_resource() -> None:
    def scaled(factor: int) -> Any:
        return tocsin.operator(lambda model, x: model * x, name="scaled", reads=["x"], outputs=["n"],
                               resource=lambda: factor, remember=10)  # fmt: skip

    results = []
    operators = [scaled(1), scaled(10)]
    for operator in operators:
        matcher = tocsin.Matcher(SPACE, operators=[operator])
        matcher.subscribe("big", "scaled(:n) AND :n > 5")
        results.append(matcher.match({"x": 1}))
    assert results == [[], ["big"]]


def test_a_resource_is_loaded_once_for_all_matchers_and_goes_with_them() -> None:
    class Model:
        alive = 0

        def __init__(self) -> None:
            Model.alive += 1

        def __del__(self) -> None:
            Model.alive -= 1

    asks = tocsin.operator(lambda model, x: True, name="asks", reads=["x"], resource=Model)
    matchers = [tocsin.Matcher(SPACE, operators=[asks]) for _ in range(3)]
    for matcher in matchers:
        matcher.subscribe(1, "asks()")
        assert matcher.match({"x": 1}) == [1]
    assert Model.alive == 1
    del matcher, matchers
    gc.collect()
    assert Model.alive == 0


def test_remembered_results_tell_values_apart_that_are_equal() -> None:
    seen: list[Any] = []

    @tocsin.operator(remember=100)
    def kept(value: Any, constant: Any) -> bool:
        seen.append((value, constant))
        return True

    matcher = tocsin.Matcher(SPACE, operators=[kept])
    for number, constant in enumerate(["1", "1.0", "1.0D", "TRUE", "0.0D", "-0.0D", "'1'"]):
        matcher.subscribe(number, f"kept(x, {constant})")
    assert len(matcher.match({"x": 0.0})) == 7
    assert len(matcher.match({"x": -0.0})) == 7
    assert len({repr(each) for each in seen}) == 14
    matcher.match({"x": 0.0})
    assert len(seen) == 14


def test_what_prepare_raises_is_told_of_the_subscription_alone() -> None:
    def prepare(text: str) -> int:
        return int(text)

    matcher = tocsin.Matcher(SPACE, operators=[declared(name="at_least", reads=(), prepare=prepare)])
    matcher = tocsin.Matcher(
        SPACE, operators=[tocsin.operator(lambda x, least: x >= least, name="at_least", prepare=prepare)]
    )
    with pytest.raises(ExpressionError, match="at_least: ValueError: invalid literal"):
        matcher.subscribe(1, "at_least(x, 'one')")
    problems: list[tocsin.Problem] = []
    texts = ["at_least(x, '1')", "at_least(x, 'one')", "x > 5", "NOT (at_least(x, 'two') AND at_least(x, '2'))"]
    table = pa.table({"id": [0, 1, 2, 3], "expression": texts})
    assert matcher.subscribe_many(table, problems=problems) == 2
    assert [problem.row for problem in problems] == [1, 3]
    assert matcher.match({"x": 9}) == [0, 2]


def test_what_bounding_raises_is_told_of_the_subscription_alone() -> None:
    def bounding(constants: list[tuple[Any, ...]], position: int) -> list[tuple[float, float]]:
        return [(float(least), 100.0) for _, least in constants]

    def between(asked: Any) -> Any:
        return asked.columns[0][asked.rows] >= asked.prepared.matrix[asked.which, 0]

    settings: dict[str, Any] = {"form": "bulk", "parameters": ("x", "least"), "bounding": bounding, "bounded": [0]}
    matcher = tocsin.Matcher(
        SPACE, operators=[tocsin.operator(between, name="above", prepare=lambda n: (float(len(str(n))),), **settings)]
    )
    problems: list[tocsin.Problem] = []
    table = pa.table({"id": [0, 1, 2], "expression": ["above(x, '1')", "above(x, 'one')", "above(x, '2')"]})
    assert matcher.subscribe_many(table, problems=problems) == 2
    assert [(problem.row, "its bounding fails" in str(problem.error)) for problem in problems] == [(1, True)]
    assert sorted(matcher.match({"x": 9})) == [0, 2]
    short = tocsin.operator(between, name="above", **(settings | {"bounding": lambda constants, position: [1.0]}))
    with pytest.raises(ExpressionError, match=r"gives \(1,\) bounds for 1 calls"):
        tocsin.Matcher(SPACE, operators=[short]).subscribe(1, "above(x, 1)")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("nearby(x, y, 'POINT EMPTY', 5)", "a place is a text such as"),
        ("nearby(x, y, 'POINT (0 91)', 5)", "a latitude from -90 to 90"),
        ("nearby(x, y, 'POINT (181 0)', 5)", "a longitude is from -180 to 180"),
        ("nearby(x, y, 'POINT (0 0)', -1)", "the distance is a number of metres"),
        ("nearby(x, y, 'LINESTRING (0 0, 1 1)', 1)", "a place is a text such as"),
        ("within(x, 3, 'POINT (0 0)')", "is given by fields"),
        ("within(x, y, '')", "this is no geometry"),
        ("within(x, y, 'POLYGON ((0 0')", "this is no geometry"),
        ("mentions('a', 'a')", "the text is a field"),
        ("matches('a', 'a')", "the text is a field"),
        ("lower(x) = 'a' OR mentions(lower(x), 'a')", "lower takes text"),
        ("mentions(lower(x), 'a')", "lower takes text, and x is number"),
    ],
)
def test_bad_arguments_are_refused_when_somebody_subscribes(call: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        tocsin.Matcher(SPACE).subscribe(1, call)


def nested(depth: int) -> str:
    inner = depth - 1
    return "GEOMETRYCOLLECTION (" * inner + "POINT (1 1)" + ")" * inner


@pytest.mark.parametrize("json", [False, True])
def test_shapes_are_bounded_in_depth_and_size(json: bool) -> None:
    def shape(depth: int) -> str:
        if not json:
            return nested(depth)
        inner = depth // 2 - 1
        return (
            '{"type": "GeometryCollection", "geometries": [' * inner
            + '{"type": "Point", "coordinates": [1, 1]}'
            + "]}" * inner
        )

    matcher = tocsin.Matcher(SPACE)
    matcher.subscribe("at", f"intersects(shape, '{shape(DEEPEST)}')")
    matcher.subscribe("area", "intersects(shape, 'POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))')")
    for depth in (DEEPEST + 2, 40_000):
        with pytest.raises(ExpressionError, match=f"nested at most {DEEPEST} deep, and this is nested {depth:,} deep"):
            matcher.subscribe("deep", f"intersects(shape, '{shape(depth)}')")
        assert matcher.match({"shape": shape(depth)}) == []
    assert matcher.match({"shape": shape(DEEPEST)}) == ["at", "area"]
    assert matcher.match_batch(pa.table({"shape": ["POINT (1 1)", shape(40_000), None]})).num_rows == 2


def test_a_shape_too_long_to_read_is_refused() -> None:
    text = "POINT (1 1)"
    matcher = tocsin.Matcher(SPACE)
    matcher.subscribe("area", "intersects(shape, 'POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))')")
    assert matcher.match({"shape": text + " " * (LONGEST - len(text))}) == ["area"]
    assert matcher.match({"shape": text + " " * (LONGEST - len(text) + 1)}) == []


def test_shapes_of_events_are_kept_within_so_many_bytes() -> None:
    shapes = Shapes(most=200_000)
    for number in range(400):
        assert shapes[f"LINESTRING (0 0, {number} 1)"].length > 0
        assert shapes.nbytes <= 200_000
    assert 50 < len(shapes) < 400
    assert Shapes()._most == KEPT_BYTES


@pytest.mark.parametrize("form", ["scalar", "vector", "bulk"])
def test_a_null_constant_makes_a_call_unknown_and_is_never_handed_over(form: str) -> None:
    made: list[Any] = []

    def asked(*arguments: Any) -> Any:
        made.append(arguments)
        if form == "scalar":
            return True
        return np.ones(len(arguments[0].rows), bool) if form == "bulk" else [True] * len(arguments[0])

    settings = {"parameters": ("x", "least"), "form": form, "check": lambda *given: made.append(given)}
    matcher = tocsin.Matcher(
        SPACE, operators=[tocsin.operator(asked, name="asked", prepare=lambda *c: made.append(c), **settings)]
    )
    matcher.subscribe("is", "asked(x, NULL)")
    matcher.subscribe("not", "NOT asked(x, NULL)")
    matcher.subscribe("or", "asked(x, NULL) OR x > 0")
    matcher.subscribe("group", "x > 0 AND NOT (asked(x, NULL) AND x > 0)")
    assert matcher.match({"x": 1}) == ["or"]
    assert set(matcher.match_batch(pa.table({"x": [1.0, 2.0]}))["subscription"].to_pylist()) == {"or"}
    assert made == []


def test_an_operator_that_takes_null_gets_a_null_constant() -> None:
    matcher = tocsin.Matcher(SPACE, operators=[tocsin.operator(lambda x, c: c is None, name="asked", takes_null=True)])
    matcher.subscribe("is", "asked(x, NULL)")
    assert matcher.match({"x": 1}) == ["is"]
    matcher = tocsin.Matcher(SPACE)
    matcher.subscribe("no", "within(x, y, NULL)")
    matcher.subscribe("neither", "NOT within(x, y, NULL)")
    assert matcher.match({"x": 1, "y": 1}) == []


def test_bad_rows_of_a_table_are_all_named() -> None:
    texts = [
        "within(x, y, 'POLYGON ((0 0, 1 0, 1 1, 0 0))')",
        "within(x, y, 'nothing')",
        "nearby(x, y, 'POINT EMPTY', 1)",
    ]
    with pytest.raises(BadSubscriptionsError) as error:
        tocsin.Matcher(SPACE).subscribe_many(pa.table({"id": [0, 1, 2], "expression": texts}))
    assert "nothing" in str(error.value) or "no geometry" in str(error.value)


def test_calls_on_several_fields_may_share_a_prepared_constant() -> None:
    @tocsin.operator(form="bulk", parameters=("value", "limit"), prepare=lambda limit: 2.0 * limit)
    def below_double(asked: Any) -> Any:
        return asked.columns[0][asked.rows] < asked.prepared.array[asked.which].astype(float)

    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number(), "y": tocsin.Number()}), operators=[below_double])
    matcher.subscribe("both", "below_double(x, 5) AND below_double(y, 5)")
    found = [matcher.match({"x": x, "y": y}) for x, y in ((9, 9), (9, 10), (10, 9))]
    assert found == [["both"], [], []]


@pytest.mark.parametrize(("kind", "holds"), [(bool, True), (int, False), (float, False)], ids=str)
def test_a_truth_is_no_number_where_an_output_is_declared(kind: type, holds: bool) -> None:
    @tocsin.operator(outputs={"found": kind})
    def truth(x: float) -> bool:
        return x > 0

    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number()}), operators=[truth])
    matcher.subscribe("a", "truth(x, :found)")
    assert matcher.match({"x": 1}) == (["a"] if holds else [])
    assert matcher.stats()["operators"]["used"]["truth"]["failures"] == ({} if holds else {"wrong type": 1})
