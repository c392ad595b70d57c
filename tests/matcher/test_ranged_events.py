"""Events with ranges, sets and fields left out match what the model of finite witnesses says, as dictionaries and as
tables."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.models.histories import seed
from tests.models.logic import Expression, sql
from tests.subjects.publication_draws import Histories
from tests.subjects.publication_runs import arrow_type, column, flat, nested, put
from tests.subjects.witness_spaces import Extent, Refused, SpaceModel, Wish
from tests.subjects.witnesses import mentioned_in, renamed
from tocsin import Matcher
from tocsin.errors import EventError

CASES, SLOW_CASES = 10, 2_000
EXPRESSIONS, EVENTS = 8, 6


class Case(Histories):
    """One space, some subscriptions and some events."""

    def __init__(self, name: str, unspecified: str) -> None:
        super().__init__(Random(name), frozenset())
        self.name = name
        spec = self.space("only", unspecified)
        self.model = SpaceModel(spec)
        self.spaces = {"only": self.model}
        fields = self.fields("only")
        self.asked = [self.expression(fields, self.random.choice([1, 2, 3])) for _ in range(EXPRESSIONS)]
        self.events = [self.values_of("only") if self.chance(0.95) else {} for _ in range(EVENTS)]
        steps = [{"regions": {"r": {"of": each}}} for each in (*self.asked, *self.events)]
        self.model.settle(mentioned_in(steps, "only", self.model))
        self.wishes = [Wish(self.model, renamed(each, self.model)) for each in self.asked]

    def check(self) -> None:
        matcher = Matcher(self.model.declare())
        for number, each in enumerate(self.asked):
            matcher.subscribe(number, self.text(each))
        for event in self.events:
            self.check_event(matcher, event)

    def text(self, expression: Expression) -> str:
        return sql(expression, lambda field: self.model.kinds[self.model.known(field) or field])

    def check_event(self, matcher: Matcher, event: dict[str, Any]) -> None:
        extent = Extent(self.model, {self.model.known(field) or field: value for field, value in event.items()})
        try:
            bounds = [(wish.met(extent), wish.met(extent, True)) for wish in self.wishes]
        except Refused:
            with pytest.raises(EventError):
                matcher.match(nested(event))
            return
        found = matcher.match(nested(event))
        for number, (least, most) in enumerate(bounds):
            told = f"{self.name}: {event} {self.text(self.asked[number])}"
            assert least <= (number in found) <= most, f"{told}: {number in found}, in {matcher.space}"
        if not any(isinstance(value, frozenset) for value in event.values()):
            answer = matcher.match_batch(self.table(event), missing="unspecified")
            assert sorted(answer["subscription"].to_pylist()) == sorted(found), (self.name, event)

    def table(self, event: dict[str, Any]) -> pa.Table:
        """Return an event as a table of one row; of an event without values, one that has a column of another name."""
        tree: dict[str, Any] = {"number": pa.array([0])}
        for field, value in event.items():
            ranged = not isinstance(value, (str, int, float)) and type(value).__name__ in ("tuple", "Interval")
            kind = arrow_type(self.model, field, 0)
            put(tree, field.split("."), column([value], "closed" if ranged else "plain", kind))
        return pa.table({name: flat(each) for name, each in tree.items()})


@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_events_with_ranges_match_what_the_witnesses_say(unspecified: str) -> None:
    first = seed(False)
    print(f"seed {first} (TOCSIN_SEED={first} draws the same)")
    for number in range(CASES):
        Case(f"{first}/ranges/{unspecified}/{number}", unspecified).check()


@pytest.mark.slow
@pytest.mark.parametrize("unspecified", ["null", "any"])
def test_many_events_with_ranges_match_what_the_witnesses_say(unspecified: str) -> None:
    first = seed(False)
    for number in range(SLOW_CASES):
        Case(f"{first}/many ranges/{unspecified}/{number}", unspecified).check()
