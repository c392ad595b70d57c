"""The normal form means what the tree means: exhaustively for small expressions, and as laws for large ones."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.three_valued import COMPARE, holds
from tests.oracle.trees import joined

from tocsin.errors import ExpressionLimitError
from tocsin.language import normal, parse, symbolic
from tocsin.language.patterns import split_pattern
from tocsin.language.tree import (
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    Field,
    Fixed,
    IsNull,
    Membership,
    Not,
    Operand,
    Or,
)

X, Y, Z, R = (Field((name,)) for name in "xyzr")
VALUES: list[int | None] = [None, 0, 1, 2, 3]
LISTS: list[Any] = [None, [], [None], [1], [2], [1, 2], [1, None], [0, 3]]
NULL = Constant(None, "null")
NO_PATHS: frozenset[tuple[str, ...]] = frozenset()


def constant(value: int) -> Constant:
    return Constant(value, "integer")


def leaves_of(field: Field, repeated: bool = False) -> list[Expression]:
    """Return every kind of leaf over a field of small integers."""
    one, two = constant(1), constant(2)
    operators = ["=", "<>", "<", "<=", ">", ">="] + ([] if repeated else ["<=>"])
    found: list[Expression] = [Comparison(sign, field, each) for sign in operators for each in (one, two, NULL)]  # type: ignore[arg-type]
    found += [Between(field, low, high) for low, high in product((one, two, NULL), repeat=2)]
    found += [Membership(field, some) for some in ((one,), (one, two), (one, NULL), (NULL,))]
    return [*found, IsNull(field), Fixed(True), Fixed(False), Fixed(None)]


# What nodes and symbolic sets mean, on integers and None.


def in_set(symbol: symbolic.Set, value: int | None) -> bool:
    match symbol:
        case symbolic.Compared(operator, bound):
            return value is not None and COMPARE[operator](value, value_of(bound))
        case symbolic.Listed(constants):
            return value is not None and value in [value_of(each) for each in constants]
        case symbolic.Nulls():
            return value is None
        case symbolic.Values():
            return value is not None
        case symbolic.Union(sets):
            return any(in_set(each, value) for each in sets)
        case symbolic.Intersection(sets):
            return all(in_set(each, value) for each in sets)
        case symbolic.Complement(of):
            return value is not None and not in_set(of, value)
    raise TypeError(symbol)


def value_of(operand: Operand) -> Any:
    assert isinstance(operand, Constant)
    return operand.value


def satisfied(node: symbolic.Node, event: dict[str, Any]) -> bool:
    match node:
        case symbolic.AllOf(terms):
            return all(satisfied(term, event) for term in terms)
        case symbolic.AnyOf(terms):
            return any(satisfied(term, event) for term in terms)
        case symbolic.Test(axis, inside):
            value = event[axis.path[0]]
            if axis.derivation == "presence":
                return in_set(inside, None if value is None else 0)
            if axis.path == ("r",):
                return any(in_set(inside, each) for each in value or ())
            return in_set(inside, value)
        case symbolic.Every(axis, inside):
            value = event[axis.path[0]]
            return value is not None and all(in_set(inside, each) for each in value)
    raise TypeError(node)


def matched(found: list[normal.Conjunction], event: dict[str, Any]) -> bool:
    return any(
        all(satisfied(symbolic.Test(axis, inside), event) for axis, inside in one.sets.items())
        and all(satisfied(node, event) for node in one.rest)
        for one in found
    )


def agrees(tree: Expression, events: list[dict[str, Any]], repeated: frozenset[tuple[str, ...]]) -> None:
    for wanted, expression in ((True, tree), (False, Not(tree))):
        node = normal.positive(expression, repeated)
        found = normal.conjunctions(node, repeated)
        for event in events:
            expected = holds(tree, event) is wanted
            assert satisfied(node, event) is expected, (expression, event)
            assert matched(found, event) is expected, (expression, event)


def test_every_leaf_is_true_and_false_where_three_valued_logic_says() -> None:
    for leaf in leaves_of(X):
        agrees(leaf, [{"x": value} for value in VALUES], NO_PATHS)


def test_every_leaf_of_a_repeated_field_speaks_of_any_element() -> None:
    for leaf in leaves_of(R, repeated=True):
        agrees(leaf, [{"r": value} for value in LISTS], frozenset({("r",)}))


def test_all_expressions_of_depth_two_over_one_field() -> None:
    events = [{"x": value} for value in VALUES]
    for one, other in combinations_with_replacement(leaves_of(X), 2):
        for tree in (And((one, other)), Or((one, other)), And((one, Not(other))), Or((Not(one), other))):
            agrees(tree, events, NO_PATHS)


def test_all_expressions_of_depth_two_over_two_fields() -> None:
    events = [{"x": x, "y": y} for x, y in product(VALUES, repeat=2)]
    for one, other in product(leaves_of(X)[::2], leaves_of(Y)[1::2]):
        for tree in (And((one, other)), Or((one, other)), Not(And((one, Not(other))))):
            agrees(tree, events, NO_PATHS)


def test_all_expressions_of_depth_two_over_a_repeated_field() -> None:
    events = [{"r": value} for value in LISTS]
    for one, other in combinations_with_replacement(leaves_of(R, repeated=True), 2):
        for tree in (And((one, other)), Or((one, other)), And((one, Not(other)))):
            agrees(tree, events, frozenset({("r",)}))


leaves = st.sampled_from([*leaves_of(X), *leaves_of(Y), *leaves_of(Z), *leaves_of(R, repeated=True)])


def nested(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        inner.map(Not), several.map(lambda terms: joined(And, terms)), several.map(lambda terms: joined(Or, terms))
    )


small_trees = st.recursive(leaves, nested, max_leaves=12)
events = st.fixed_dictionaries(
    {
        "x": st.sampled_from(VALUES),
        "y": st.sampled_from(VALUES),
        "z": st.sampled_from(VALUES),
        "r": st.sampled_from(LISTS),
    }
)


@settings(max_examples=400, deadline=None)
@given(small_trees, st.lists(events, min_size=5, max_size=5))
def test_deeper_expressions_keep_their_meaning(tree: Expression, some: list[dict[str, Any]]) -> None:
    agrees(tree, some, frozenset({("r",)}))


def leaf_count(node: symbolic.Node) -> int:
    return sum(map(leaf_count, node.terms)) if isinstance(node, (symbolic.AllOf, symbolic.AnyOf)) else 1


@settings(max_examples=400, deadline=None)
@given(small_trees)
def test_there_are_never_more_conjunctions_than_leaves(tree: Expression) -> None:
    repeated = frozenset({("r",)})
    node = normal.positive(tree, repeated)
    found = normal.conjunctions(node, repeated)
    assert len(found) <= leaf_count(node) or node == normal.ALWAYS
    for one in found:
        assert sum(axis.path == ("r",) for axis in one.sets) <= 1, "a box tests one element of one repeated field"


def test_a_product_of_sums_does_not_blow_up() -> None:
    text = " AND ".join(f"(x = {number} OR y = {number})" for number in range(30))
    node = normal.positive(parse(text), NO_PATHS)
    assert len(normal.conjunctions(node, NO_PATHS)) <= 60


def test_alternatives_on_one_axis_are_one_box() -> None:
    text = " OR ".join(f"x = {number}" for number in range(5000))
    assert len(normal.conjunctions(normal.positive(parse(text), NO_PATHS), NO_PATHS)) == 1
    assert len(normal.conjunctions(normal.positive(parse("x <> 3 AND x NOT IN (5, 6)"), NO_PATHS), NO_PATHS)) == 1


def test_more_boxes_than_the_limit_are_refused_with_advice() -> None:
    text = " OR ".join(f"f{number} = 1" for number in range(normal.MAX_BOXES + 1))
    node = normal.positive(parse(text), NO_PATHS)
    with pytest.raises(
        ExpressionLimitError, match="needs 1,025 boxes and the limit is 1,024; write fewer alternatives"
    ):
        normal.conjunctions(node, NO_PATHS)
    fits = normal.positive(parse(text.rsplit(" OR ", 1)[0]), NO_PATHS)
    assert len(normal.conjunctions(fits, NO_PATHS)) == normal.MAX_BOXES


@pytest.mark.parametrize("text", ["x = NULL", "x IN (NULL)", "x NOT IN (1, NULL)", "FALSE", "x > 1 AND NULL"])
def test_what_is_never_true_has_no_conjunction(text: str) -> None:
    assert normal.conjunctions(normal.positive(parse(text), NO_PATHS), NO_PATHS) == []


@pytest.mark.parametrize("text", ["TRUE", "x = 1 OR TRUE", "NOT FALSE"])
def test_what_is_always_true_is_one_box_without_bounds(text: str) -> None:
    assert normal.conjunctions(normal.positive(parse(text), NO_PATHS), NO_PATHS) == [normal.Conjunction({})]


@pytest.mark.parametrize(
    ("pattern", "pieces", "wildcards"),
    [
        ("ab%c_d", ["ab", "c", "d"], "%_"),
        ("%", ["", ""], "%"),
        ("a\\%b%", ["a%b", ""], "%"),
        ("_a", ["", "a"], "_"),
        ("a\\\\%\\_\n", ["a\\", "_\n"], "%"),
        ("", [""], ""),
    ],
)
def test_a_pattern_is_split_at_its_wildcards(pattern: str, pieces: list[str], wildcards: str) -> None:
    assert split_pattern(pattern, "\\") == (pieces, wildcards)


@pytest.mark.parametrize(
    ("text", "axis", "inside"),
    [
        (r"x LIKE 'a\%'", "", symbolic.Prefixed(Constant("a%", "string"), whole=True)),
        (r"x LIKE '\_a%'", "", symbolic.Prefixed(Constant("_a", "string"))),
        (r"x LIKE '%%\%'", "reversed", symbolic.Prefixed(Constant("%", "string"))),
        (r"x LIKE 'a\\\\%'", "", symbolic.Prefixed(Constant("a\\", "string"))),
        ("x LIKE 'it''s'", "", symbolic.Prefixed(Constant("it's", "string"), whole=True)),
        ("x LIKE 'a!%!!' ESCAPE '!'", "", symbolic.Prefixed(Constant("a%!", "string"), whole=True)),
        ("x LIKE 'a%%' ESCAPE '%'", "", symbolic.Prefixed(Constant("a%", "string"), whole=True)),
        (r"x ILIKE 'A\%%'", "lower", symbolic.Prefixed(Constant("a%", "string"))),
        (r"x NOT LIKE 'a\_'", "", symbolic.Complement(symbolic.Prefixed(Constant("a_", "string"), whole=True))),
    ],
)
def test_a_pattern_whose_wildcards_are_escaped_is_an_interval(
    text: str, axis: symbolic.Derivation, inside: symbolic.Set
) -> None:
    assert normal.positive(parse(text), NO_PATHS) == symbolic.Test(symbolic.AxisKey(("x",), axis), inside)
