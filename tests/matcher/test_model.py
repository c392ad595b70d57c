"""The matcher against a naive model: a dictionary of trees, evaluated one by one by a logic written independently."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tocsin
from tests.oracle.three_valued import holds
from tocsin import Boolean, Matcher, Number, Repeated, Space, Text
from tocsin.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from tocsin.language import parse

SPACE = Space(
    {
        "i": Number("int64"),
        "d": Number(),
        "c": Number("decimal(6, 2)"),
        "s": Text(),
        "b": Boolean(),
        "r": Repeated(Number("int64")),
        "n": {"t": Text()},
    }
)
SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "d": pa.float64(),
        "c": pa.decimal128(6, 2),
        "s": pa.string(),
        "b": pa.bool_(),
        "r": pa.list_(pa.int64()),
        "n": pa.struct({"t": pa.string()}),
    }
)
WORDS = ["", "a", "ab", "b", "Ab", "é", "😀", "a%", "_"]
NUMBERS = ["0", "1", "-1", "2.5", "3e0", "9223372036854775807", "-9223372036854775808", "CAST('nan' AS DOUBLE)", "NULL"]

numbers = st.sampled_from(NUMBERS)
words = st.sampled_from([f"'{word}'" for word in WORDS] + ["NULL"])
signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
numeric = st.sampled_from(["i", "d", "c"])
textual = st.sampled_from(["s", "n.t", "lower(s)", "upper(n.t)"])
patterns = st.sampled_from(["'a%'", "'%b'", "'%'", "'_'", "'%a%'", "'a_'", "'A%b'", "'a\\\\%'", "''"])
leaves = st.one_of(
    st.tuples(numeric, st.one_of(signs, st.just("<=>")), numbers).map(" ".join),
    st.tuples(st.just("r"), signs, numbers).map(" ".join),
    st.tuples(st.sampled_from(["i", "d", "c", "r"]), numbers, numbers).map(
        lambda each: "{} BETWEEN {} AND {}".format(*each)
    ),
    st.tuples(st.sampled_from(["i", "d", "c", "r"]), st.lists(numbers, min_size=1, max_size=3)).map(
        lambda each: f"{each[0]} IN ({', '.join(each[1])})"
    ),
    st.tuples(textual, signs, words).map(" ".join),
    st.tuples(textual, st.sampled_from(["LIKE", "ILIKE"]), patterns).map(" ".join),
    st.tuples(st.sampled_from(["startswith", "endswith", "contains"]), textual, words).map(
        lambda each: f"{each[0]}({each[1]}, {each[2]})"
    ),
    st.sampled_from(
        ["b", "b = FALSE", "b IS TRUE", "b IS NOT FALSE", "TRUE", "NULL", "i IS NULL", "r IS NULL", "n.t IS NULL"]
    ),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda each: f"NOT ({each})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: " AND ".join(f"({each})" for each in some)),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: " OR ".join(f"({each})" for each in some)),
    ),
    max_leaves=6,
)
whole = st.sampled_from([None, 0, 1, -1, 2, 3, 2**63 - 1, -(2**63), -(2**63) + 1])
events = st.fixed_dictionaries(
    {
        "i": whole,
        "d": st.sampled_from([None, 0.0, -0.0, 1.0, 2.5, 3.0, float("nan"), float("inf")]),
        "c": st.sampled_from([None, Decimal("0.00"), Decimal("2.50"), Decimal("-1.00"), Decimal("9999.99")]),
        "s": st.sampled_from([None, *WORDS]),
        "b": st.sampled_from([None, True, False]),
        "r": st.one_of(st.none(), st.lists(whole, max_size=3)),
        "n": st.one_of(st.none(), st.sampled_from([None, *WORDS]).map(lambda word: {"t": word})),
    }
)


class Model(RuleBasedStateMachine):
    """Subscriptions come, go and change; every event matches exactly those whose tree is TRUE for it."""

    @initialize(engine=st.sampled_from(["adaptive", "scan", "counting"]))
    def start(self, engine: str) -> None:
        self.matcher = Matcher(SPACE, engine=engine)
        self.trees: dict[int, Any] = {}
        self.texts: dict[int, str] = {}

    @rule(id=st.integers(0, 20), text=expressions)
    def subscribe(self, id: int, text: str) -> None:
        if id in self.trees:
            with pytest.raises(DuplicateSubscriptionError):
                self.matcher.subscribe(id, text)
        else:
            self.matcher.subscribe(id, text)
            self.trees[id], self.texts[id] = parse(text), text

    @rule(id=st.integers(0, 20), text=expressions)
    def replace(self, id: int, text: str) -> None:
        self.matcher.subscribe(id, text, duplicates="replace")
        self.trees[id], self.texts[id] = parse(text), text

    @rule(texts=st.lists(expressions, min_size=1, max_size=8), start=st.integers(0, 15))
    def load(self, texts: list[str], start: int) -> None:
        ids = range(start, start + len(texts))
        self.matcher.subscribe_many(pa.table({"id": ids, "expression": texts}), duplicates="replace")
        self.trees |= {id: parse(text) for id, text in zip(ids, texts, strict=True)}
        self.texts |= dict(zip(ids, texts, strict=True))

    @rule(id=st.integers(0, 20))
    def unsubscribe(self, id: int) -> None:
        if id in self.trees:
            self.matcher.unsubscribe(id)
            del self.trees[id], self.texts[id]
        else:
            with pytest.raises(UnknownSubscriptionError):
                self.matcher.unsubscribe(id)

    @rule()
    def make_room(self) -> None:
        self.matcher._make_room()

    @rule(event=events)
    def match(self, event: dict[str, Any]) -> None:
        expected = [id for id, tree in self.trees.items() if holds(tree, event) is True]
        assert sorted(self.matcher.match(event)) == sorted(expected), (event, self.texts)
        assert not set(self.matcher.never()) & set(expected)

    @rule(some=st.lists(events, min_size=1, max_size=6))
    def match_batch(self, some: list[dict[str, Any]]) -> None:
        pairs = self.matcher.match_batch(pa.Table.from_pylist(some, schema=SCHEMA))
        found = sorted(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True))
        expected = [
            (row, id) for row, event in enumerate(some) for id, tree in self.trees.items() if holds(tree, event) is True
        ]
        assert found == sorted(expected), (some, self.texts)

    @rule(event=events)
    def explain(self, event: dict[str, Any]) -> None:
        for id, tree in self.trees.items():
            explained = self.matcher.explain(event, id)
            assert explained.matches == (holds(tree, event) is True), (event, self.texts[id], str(explained))

    @invariant()
    def holds_what_was_given(self) -> None:
        if hasattr(self, "trees"):
            assert len(self.matcher) == len(self.trees)
            assert {id: self.matcher[id] for id in self.matcher} == self.texts


Model.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestModel = Model.TestCase


def test_the_space_of_the_model_is_that_of_its_table() -> None:
    assert tocsin.Space.from_arrow(SCHEMA) == SPACE
