"""The definition of meaning: trees walked parent by parent, fractions for units, dictionaries for words.

An event becomes lists of plain values by dimension; every subscription is evaluated on them anew, in SQL's logic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.models.formulas import computed, fields_of
from tests.models.kind import Kind, Misfit
from tests.models.kinds import Concepts, Tree
from tests.models.logic import Expression, Truth3, any3, fits, holds, leaves
from tests.models.quantities import Measured, Money
from tests.subjects.witness_spaces import Undocumented, kind_of
from tocsin import Derived, Hierarchy, Repeated, Space


class MeaningModel:
    """A space with everything that gives its values a meaning, and the subscriptions over it."""

    def __init__(self, history: dict[str, Any]) -> None:
        spec = history["space"]
        self.zone = spec.get("timezone", "UTC")
        self.money = Money(spec["money"]["base"], spec["money"]["rates"], spec["money"]["names"])
        self.trees = {name: Tree(*tree) for name, tree in spec["trees"].items()}
        self.attributes: dict[str, list[str]] = spec["attributes"]
        self.synonyms: dict[str, str] = spec["synonyms"]
        self.kinds: dict[str, Kind] = {}
        self.tree_of: dict[str, str] = {}
        self.repeated: set[str] = set()
        self.formulas: dict[str, str] = {}
        for name, each in spec["dimensions"].items():
            self.add(name, each)
        for name in self.attributes:
            self.kinds.setdefault(name, next(self.kinds[each] for each in self.family(name) if each in self.kinds))
        self.subscriptions: dict[Any, Expression] = {}
        self.checked = 0

    def add(self, name: str, spec: list[Any]) -> None:
        match spec:
            case ["repeated", inner]:
                self.repeated.add(name)
                self.add(name, inner)
            case ["derived", formula, inner]:
                self.formulas[name] = formula
                self.add(name, inner)
            case ["in tree", tree, texts]:
                self.tree_of[name] = tree
                self.kinds[name] = Concepts(self.trees[tree], texts)
            case ["measured", inner, unit, beside]:
                self.kinds[name] = Measured(kind_of(inner, self.zone), unit, self.money, beside)  # type: ignore[arg-type]
            case _:
                self.kinds[name] = kind_of(spec, self.zone)

    def declare(self) -> Space:
        """Return the space, in which dimensions of one tree share it."""
        from tocsin import Concept

        shared = {
            name: Hierarchy.of({each: list(above) for each, above in tree.parents.items()}, dict(tree.synonyms))
            for name, tree in self.trees.items()
        }
        dimensions: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            if name in self.attributes:
                continue
            if isinstance(kind, Concepts):
                unknown: Any = "text" if kind.texts else "error"
                made: Any = Concept(shared[self.tree_of[name]], unknown_terms=unknown, unknown_values=unknown)
            else:
                made = kind.declare()
            if name in self.formulas:
                made = Derived(self.formulas[name], made)
            dimensions[name] = Repeated(made) if name in self.repeated else made
        return Space(
            dimensions,
            timezone=self.zone,
            units=self.money.declare(),
            attributes=self.attributes or None,
            synonyms=self.synonyms or None,
        )

    def family(self, field: str) -> list[str]:
        return [field, *(name for child in self.attributes.get(field, ()) for name in self.family(child))]

    # Events

    def read(self, event: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of an event by dimension, NULLs left out, and what is wrong with those that do not fit."""
        said: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        for field, given in event.items():
            name = self.synonyms.get(field, field)
            if given is None:
                continue
            if name in said and said[name] != given:
                wrong[name] = "two values"
            said[name] = given
        values: dict[str, Any] = {}
        for name, given in said.items():
            if name not in self.kinds or name in self.formulas:
                continue
            try:
                value = self.of(name, given, said)
            except (Misfit, ValueError, OverflowError) as error:
                wrong[name] = f"{type(error).__name__}: {error}"
                continue
            if value is not None:
                values[name] = value
        for name, formula in self.formulas.items():
            bad = [wrong[field] for field in fields_of(formula) if field in wrong]
            try:
                made = computed(formula, values)
                if made is not None:
                    values[name] = self.kinds[name].read(made)
            except (Misfit, OverflowError) as error:
                bad.append(f"{type(error).__name__}: {error}")
            if bad:
                wrong[name] = bad[0]
        return values, wrong

    def of(self, name: str, given: Any, event: Mapping[str, Any]) -> Any:
        """Return the value of a dimension, or the list of those of a repeated one."""
        if name in self.repeated or name in self.attributes:
            several = given if isinstance(given, list) else [given]
            return [None if each is None else self.value(name, each, event) for each in several]
        return self.value(name, given, event)

    def value(self, name: str, given: Any, event: Mapping[str, Any]) -> Any:
        kind = self.kinds[name]
        if not isinstance(kind, Measured):
            return kind.read(given)
        unit = event.get(kind.beside["unit_field"]) if "unit_field" in kind.beside else None
        if unit is not None and isinstance(given, (str, dict)):
            raise Undocumented("a quantity beside a field that says its unit")
        return kind.measured(given, unit, self.day(kind, event))

    def day(self, kind: Measured, event: Mapping[str, Any]) -> date | None:
        """Return the day, by the clock of the space, for which rates are taken; None is the latest."""
        if "at" not in kind.beside:
            return None
        given = event.get(self.synonyms.get(kind.beside["at"], kind.beside["at"]))
        if given is None:
            return None
        moment = self.kinds[kind.beside["at"]].read(given)
        zoned = isinstance(moment, datetime) and moment.tzinfo
        return as_day(moment.astimezone(ZoneInfo(self.zone)) if zoned else moment)

    # Answers

    def truth(self, expression: Expression, values: Mapping[str, Any], wrong: Collection[str] = ()) -> Truth3:
        """Return the truth of an expression; a test of what does not fit is unknown."""

        def leaf(one: Expression) -> Truth3:
            _, field, fold, test = one
            field = self.synonyms.get(field, field)
            if wrong and any(name in wrong for name in self.family(field)):
                return None
            if field in self.attributes:
                return self.family_truth(field, fold, test, values)
            kind, value = self.kinds[field], values.get(field)
            if field in self.repeated and value is not None and test[0] != "null":
                return any3([fits(kind, fold, test, each) for each in value])
            return fits(kind, fold, test, value)

        return holds(expression, leaf)

    def family_truth(self, field: str, fold: str | None, test: list[Any], values: Mapping[str, Any]) -> Truth3:
        """Return the truth of a test of an attribute with others below it, of which any may meet it."""
        members = [name for name in self.family(field) if name in values]
        if test[0] == "null":
            return not members
        if not members:
            return None
        found = []
        for name in members:
            several = values[name] if isinstance(values[name], list) else [values[name]]
            found += [fits(self.kinds[name], fold, test, each) for each in several]
        return any3(found)

    def tested(self, expression: Expression) -> set[str]:
        """Return the dimensions that an expression looks at."""
        return {name for leaf in leaves(expression) for name in self.family(self.synonyms.get(leaf[1], leaf[1]))}

    def answer(self, event: Mapping[str, Any]) -> tuple[set[Any], set[Any]]:
        """Return the ids of the subscriptions that an event satisfies, and of those that look at what does not fit.

        A comparison with NULL is unknown whatever the event has, and neither it nor what it makes unknown need be
        looked at; if that is all that tests a field, the event is taken.
        """
        values, wrong = self.read(event)
        self.checked += len(self.subscriptions)
        found, spoilt = set(), set()
        for id, expression in self.subscriptions.items():
            looks = bool(wrong) and not wrong.keys().isdisjoint(self.tested(expression))
            if looks and not any(compares_null(leaf[3]) for leaf in leaves(expression)):
                spoilt.add(id)
            elif self.truth(expression, values, wrong) is True:
                found.add(id)
        return found, spoilt


def compares_null(test: list[Any]) -> bool:
    """Return whether a test has a NULL in it, and may be decided without a look at the event."""
    return any(each is None for each in (test[1] if test[0] == "in" else test[1:]))


def as_day(moment: Any) -> date:
    return moment.date() if isinstance(moment, datetime) else moment
