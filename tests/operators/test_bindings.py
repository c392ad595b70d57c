"""What variables mean, corner by corner: scopes, failures under NOT, joins, and exact comparison of values."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tocsin
from tests.operators.histories import ORDERS
from tocsin.errors import OperatorFailedError, UnsupportedExpressionError
from tocsin.operators.joins import MAX_COMBINATIONS

FAIL = "fail"


def answers(text: str, unspecified: Any = "null", event: Any = None, **results: Any) -> bool:
    """Return whether an event satisfies an expression over operators that return these results, in every order, by
    itself, in a batch and explained."""
    operators = [_operator(name, result) for name, result in results.items()]
    space = tocsin.Space({"e": tocsin.Number(), "price": tocsin.Number("int64")}, unspecified=unspecified)
    found = set()
    for order in ORDERS:
        matcher = tocsin.Matcher(space, operators=operators, order=order)  # type: ignore[arg-type]
        matcher.subscribe(0, text)
        given = {"e": 1.0} if event is None else event
        found.add(matcher.match(given) == [0])
        found.add(bool(matcher.explain(given, 0)))
    assert len(found) == 1, "it depends on the order, or is explained otherwise"
    return found.pop()


def _operator(name: str, result: Any) -> Any:
    def run(e: float) -> Any:
        if result == FAIL:
            raise RuntimeError("injected")
        return result

    several = isinstance(result, list) and result and isinstance(result[0], tuple) and len(result[0]) == 2
    outputs = [] if isinstance(result, bool) else ["one", "two"] if several else ["one"]
    return tocsin.operator(run, name=name, reads=["e"], outputs=outputs)


@pytest.mark.parametrize("second", [":x", ":z"])
def test_alternatives_have_variables_of_their_own(second: str) -> None:
    text = f"a(:x) OR NOT (b({second}) AND c({second}))"
    assert answers(text, a=[], b=[1], c=[2])
    assert not answers(text, a=[], b=[1], c=[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a(:x) OR b(:y)) AND NOT c(:x)", True),  # with b(:y), the NOT is closed; with a(:x), 1 is no c
        ("(d(:x) OR b(:y)) AND NOT c(:x)", False),  # d binds 2, which c returns; closed, c returns something
        ("a(:x) AND NOT (c(:x) AND d(:x))", True),
        ("NOT (NOT a(:x) OR NOT c(:x))", True),  # both return something: each alternative has its own :x
        ("NOT c(:x) AND NOT d(:x)", False),
        ("NOT (a(:x) AND c(:x)) AND NOT (a(:x) AND d(:x))", True),
        ("a(:x) AND (b(:x) OR c(:x))", True),
        ("(a(:x) OR c(:x)) AND :x > 1", True),
        ("NOT NOT a(:x) AND :x = 1", True),
    ],
)
def test_a_variable_belongs_to_the_alternative_in_which_it_is_bound(text: str, expected: bool) -> None:
    assert answers(text, a=[1], b=[1], c=[2], d=[2]) == expected


def test_a_variable_compared_in_an_alternative_that_does_not_bind_it_is_refused() -> None:
    with pytest.raises(UnsupportedExpressionError, match=":y is compared where nothing binds it"):
        answers("NOT (a(:x) AND (b(:y) OR :y > 3))", a=[1], b=[1])


@pytest.mark.parametrize(("b", "expected"), [([1], True), ([1, 7], False), ([], True), (FAIL, False), ([None], False)])
def test_a_failed_call_under_not_is_unknown_whatever_comes_first(b: Any, expected: bool) -> None:
    for parts in (("f(:x)", "b(:x)", ":x > 5"), ("b(:x)", ":x > 5", "f(:x)"), (":x > 5", "f(:x)", "b(:x)")):
        assert answers(f"NOT ({' AND '.join(parts)})", f=FAIL, b=b) == expected


def test_values_that_are_not_compared_make_a_join_unknown_whatever_comes_first() -> None:
    for calls in (("a(:x)", "b(:x)", "c(:x)"), ("b(:x)", "a(:x)", "c(:x)"), ("c(:x)", "b(:x)", "a(:x)")):
        assert answers(f"NOT ({' AND '.join(calls)})", a=[1], b=["a"], c=[2])
        assert not answers(f"NOT ({' AND '.join(calls)})", a=[1], b=["a"], c=[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOT (a(:x) AND :x = NULL)", False),
        ("NOT (a(:x) AND :x <=> NULL)", True),
        ("NOT (a(:x) AND :x > NULL AND :x > 5)", True),
        ("NOT a(NULL)", False),
        ("a(NULL)", False),
        ("NOT n(NULL)", True),
    ],
)
def test_a_null_constant_inside_a_negated_group_is_unknown(text: str, expected: bool) -> None:
    assert answers(text, a=[1], n=[]) == expected


@pytest.mark.parametrize(("value", "expected"), [(5, False), (6, True), (5.0, False), ("5", False), (None, False)])
def test_unequal_is_not_equal(value: Any, expected: bool) -> None:
    assert answers("a(:n) AND :n <> 5", a=[value]) == expected
    assert answers("a(:n) AND NOT :n = 5", a=[value]) == expected
    assert answers("a(:n) AND :n = 5", a=[value]) == (value in (5, 5.0) and not isinstance(value, str))


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        (":n < 1.5e0", -(10**400)),
        (":n < 1e307", 10**305),
        ("1.5e0 < :n", 10**400),
        (":n > 1e308", 10**400),
        (":n <> 9007199254740992e0", 2**53 + 1),
        (":n > 9007199254740992e0", 2**53 + 1),
        (":n > 9007199254740992e0", Decimal(2**53 + 1)),
        (":n = 1.5", 1.5),
        (":n = 1.5e0", Decimal("1.50")),
        (":n > 1e308", float("nan")),
        (":n > 1e308", Decimal("NaN")),
        (":n = CAST('NaN' AS DOUBLE)", float("nan")),
        (":n >= CAST('NaN' AS DOUBLE)", Decimal("sNaN")),
        (":n < CAST('NaN' AS DOUBLE)", 10**400),
        (":n = 0", -0.0),
        (":n = -0e0", 0),
        (":n <= 0 AND :n >= 0", Decimal("-0")),
    ],
)
def test_numbers_compare_exactly(constraint: str, value: Any) -> None:
    assert answers(f"a(:n) AND {constraint}", a=[value])
    assert not answers(f"a(:n) AND NOT ({constraint})", a=[value])
    assert answers(f"NOT (a(:n) AND NOT ({constraint}))", a=[value])


@pytest.mark.parametrize(
    ("one", "other", "joins"),
    [
        (1, 1.0, True),
        (Decimal("1.00"), 1.0, True),
        (True, 1, False),
        (-0.0, 0, True),
        (float("nan"), float("nan"), True),
        (2**53 + 1, 2.0**53, False),
        (10**400, 1e308, False),
        (None, None, False),
        ("a", "a", True),
        (b"a", b"a", False),
    ],
)
@pytest.mark.parametrize("more", [(), (3, 4, 5, 6, 7)])
def test_joins_are_on_equal_values(one: Any, other: Any, joins: bool, more: tuple[int, ...]) -> None:
    assert answers("a(:x) AND b(:x)", a=[one, *more], b=[other]) == joins
    assert answers("a(:x) AND b(:x)", a=[one], b=[other, *more]) == joins


def test_what_a_bulk_operator_does_not_find_binds_nothing_under_not() -> None:
    import numpy as np

    @tocsin.operator(form="bulk", reads=["e"], outputs=["n"])
    def nothing(asked: Any) -> Any:
        return np.full(len(asked.rows), np.nan)

    matcher = tocsin.Matcher(tocsin.Space({"e": tocsin.Number()}), operators=[nothing, _operator("a", [1])])
    matcher.subscribe(0, "NOT (nothing(:x) AND a(:y) AND :x > :y)")
    assert matcher.match({"e": 1.0}) == [0]


@pytest.mark.parametrize("wanted", ["", "NOT "])
def test_an_unspecified_field_is_unknown_to_a_call_with_variables(wanted: str) -> None:
    assert not answers(f"{wanted}a(:x)", "any", {}, a=[1])
    assert not answers(f"a(:x) AND {wanted}:x > 5", "any", {}, a=[1])
    assert answers(f"{wanted}a()", "any", {}, a=[1])
    assert answers(f"{wanted}a(7)", "any", {}, a=[1])


def test_joins_of_many_bindings_look_them_up() -> None:
    many = list(range(2_000))
    assert answers("a(:x) AND b(:x) AND :x > 1998", a=many, b=many)
    assert answers("NOT (a(:x) AND b(:x) AND :x > 1999)", a=many, b=many)
    assert answers("NOT (a(:x) AND NOT b(:x))", a=many, b=many)


def test_rows_of_equal_values_of_two_types_are_looked_up_beside_texts() -> None:
    pairs = [(2, 2.0), ("a", "a"), *((number, number) for number in range(10, 20))]
    assert not answers("a(:x) AND NOT b(:x, :x)", a=[2], b=pairs)
    assert not answers("NOT (a(:x) AND b(:x, :x))", a=[2], b=pairs)


def test_two_results_of_a_variable_bound_outside_are_each_compared_with_its_value() -> None:
    assert not answers("a(:x) AND NOT b(:x, :x)", a=["text"], b=[(1, 2)])
    assert not answers("a(:x) AND NOT (b(:x, :x) AND c(:y))", a=["text"], b=[(1, 2)], c=[1])
    assert answers("a(:x) AND NOT b(:x, :x)", a=[1], b=[(1, 2)])
    assert answers("NOT b(:x, :x)", b=[(1, 2)])


def test_conditions_with_nan_are_one_and_come_back_from_a_saved_matcher(tmp_path: Path) -> None:
    operators = [_operator("a", [1.0])]
    matcher = tocsin.Matcher(tocsin.Space({"e": tocsin.Number()}), operators=operators)
    texts = ["a(:x) AND :x < CAST('NaN' AS DOUBLE)", "a(:x) AND :x < CAST('-nan' AS DOUBLE)", "a(:x)"]
    for number, text in enumerate(texts):
        matcher.subscribe(number, text)
    table = pa.table({"id": [3, 4, 5], "expression": texts})
    matcher.subscribe_many(table)
    matcher.save(tmp_path / "saved")
    loaded = tocsin.Matcher.load(tmp_path / "saved", operators=operators)
    for each in (matcher, loaded):
        assert each.match({"e": 1.0}) == [0, 1, 2, 3, 4, 5]
    assert matcher.stats()["operators"]["conditions"] == 2


def test_what_was_accepted_is_explained_however_many_alternatives_it_has() -> None:
    nots = " AND ".join(f"NOT (:x = {number} AND b() AND TRUE)" for number in range(7))
    assert answers(f"a(:x) AND {nots}", a=[1, 7], b=True)
    assert not answers(f"a(:x) AND {nots}", a=[1, 6], b=True)


def test_too_many_combinations_are_a_failure_with_the_figure() -> None:
    many = list(range(MAX_COMBINATIONS // 250))
    matcher = tocsin.Matcher(
        tocsin.Space({"e": tocsin.Number()}), operators=[_operator("a", many), _operator("b", many)]
    )
    matcher.subscribe("no", "a(:x) AND b(:y) AND :x + :y < 0")
    matcher.subscribe("yes", "a(:x) AND b(:y) AND :x + :y = 0")
    assert matcher.match({"e": 1.0}) == ["yes"]
    failed = matcher.stats()["operators"]["used"]["a"]
    assert "too many bindings" in str(failed["failures"])
    assert "100,000" in failed["last_failure"]
    assert "100,000" in str(matcher.explain({"e": 1.0}, "no")) or not matcher.explain({"e": 1.0}, "no")


def test_too_many_combinations_are_an_error_of_the_event_if_the_operator_says_so() -> None:
    def run(e: float) -> list[int]:
        return list(range(1_000))

    operators = [tocsin.operator(run, name=name, reads=["e"], outputs=["n"], on_failure="error") for name in "ab"]
    matcher = tocsin.Matcher(tocsin.Space({"e": tocsin.Number()}), operators=operators)
    matcher.subscribe("no", "a(:x) AND b(:y) AND :x + :y < 0")
    with pytest.raises(OperatorFailedError, match="100,000"):
        matcher.match({"e": 1.0})
