"""The definition of publications: regions, filters and audiences over spaces that are finite sets of witnesses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.models.kind import Misfit
from tests.models.logic import Expression, Truth3, constants, fits, holds, leaves
from tests.subjects.witness_spaces import (
    COMBINATIONS,
    Extent,
    Refused,
    SpaceModel,
    Undocumented,
    Wish,
    contained,
    mentions,
    pieces,
)


class Model:
    """All publications and subscriptions of a history, and which pairs match."""

    def __init__(self, history: dict[str, Any]) -> None:
        self.spaces = {name: SpaceModel(spec) for name, spec in history["spaces"].items()}
        self.people = SpaceModel(history["properties"]) if history.get("properties") else None
        self.pubs: dict[Any, dict[str, Any]] = {}
        self.subs: dict[Any, dict[str, Any]] = {}
        self.pairs: set[tuple[Any, Any]] = set()
        self.checked = 0
        self.told: set[tuple[str, Any, Any]] = set()
        self.loose = 0
        for name, space in self.spaces.items():
            space.settle(mentioned_in(history["steps"], name, space))
        if self.people:
            self.people.settle({})

    # Regions

    def chosen(self, region: dict[str, Any]) -> list[str]:
        return [region["space"]] if region.get("space") else list(self.spaces)

    def extents(self, region: dict[str, Any]) -> dict[str, Extent]:
        """Return the extents of a region of a publication, by space."""
        values = {name: value for name, value in region["of"].items() if value is not None}
        found = {}
        combinations = 1
        for value in values.values():
            if isinstance(value, (set, frozenset, list)) and not value:
                raise Refused("an empty set")
            combinations *= len(pieces(value))
        if combinations > COMBINATIONS:
            raise Refused("too many combinations")
        for name in self.chosen(region):
            space = self.spaces[name]
            here = {space.known(field): value for field, value in values.items() if space.known(field)}
            if here:
                found[name] = Extent(space, here)  # type: ignore[arg-type]
        self.need(region, values, bool(found))
        try:
            for extent in found.values():
                for field in extent.values:
                    extent.of(field)
        except (Misfit, ValueError, TypeError) as error:
            raise Refused(str(error)) from error
        for extent in found.values():
            if extent.space.any and all(extent.whole(field) for field in extent.values):
                raise Undocumented("an interval that holds everything, where what is left out spans everything")
        return found

    def need(self, region: dict[str, Any], values: Mapping[str, Any], found: bool) -> None:
        for field in region["of"]:
            if not any(self.spaces[name].known(field) for name in self.chosen(region)):
                raise Refused(f"no dimension {field}")
        if not found:
            raise Refused("no dimension is constrained")

    def wishes(self, region: dict[str, Any]) -> dict[str, Wish]:
        """Return what a region of a subscription asks of each space."""
        found = {}
        if isinstance(region["of"], dict):
            values = {name: value for name, value in region["of"].items() if value is not None}
            for name in self.chosen(region):
                space = self.spaces[name]
                here = {space.known(field): value for field, value in values.items() if space.known(field)}
                if here:
                    self.check_box(space, here)
                    tests = [["leaf", field, None, ["inside", value]] for field, value in here.items()]
                    found[name] = Wish(space, ["and", tests])
            self.need(region, values, bool(found))
            return found
        fields = {leaf[1] for leaf in leaves(region["of"])}
        for name in self.chosen(region):
            space = self.spaces[name]
            if all(space.known(field) for field in fields):
                found[name] = Wish(space, renamed(region["of"], space))
        if not found:
            raise Refused("no space has these dimensions")
        return found

    def check_box(self, space: SpaceModel, values: Mapping[Any, Any]) -> None:
        for field, value in values.items():
            sources = [name for name, formula in space.sources(field) if formula is None]
            if not pieces(value):
                raise Refused("an empty set")
            try:
                for piece in pieces(value):
                    held = (each for name in sources for each in space.witnesses[name])
                    if not any(contained(space.kinds[field], piece, each) for each in held) and sources:
                        raise Refused(f"{field}: {piece} holds no value")
            except (Misfit, ValueError, TypeError) as error:
                raise Refused(str(error)) from error

    # Both sides

    def publication(self, regions: dict[str, Any], filter: Any, audience: Any) -> dict[str, Any]:
        self.check_filter(regions, filter)
        extents = {name: self.extents(region) for name, region in regions.items()}
        return {"regions": regions, "filter": filter, "audience": audience, "extents": extents}

    def subscription(self, regions: dict[str, Any], filter: Any, properties: Any) -> dict[str, Any]:
        self.check_filter(regions, filter)
        wishes = {name: self.wishes(region) for name, region in regions.items()}
        return {"regions": regions, "filter": filter, "properties": properties, "wishes": wishes}

    def check_filter(self, regions: dict[str, Any], filter: Any) -> None:
        if not regions:
            raise Refused("no region")
        if isinstance(filter, str):
            return
        if not {leaf[1] for leaf in leaves(filter)} <= set(regions):
            raise Refused("a filter names a region that is not there")
        if holds(filter, lambda leaf: False):
            raise Refused("a filter holds where nothing matches")

    def match(self, pub: dict[str, Any], sub: dict[str, Any], loosely: bool = False) -> bool:
        """The definition; ``loosely``, patterns may hold of any range of texts."""
        if pub["audience"] is not None and self.agrees(pub["audience"], sub["properties"] or {}) is not True:
            return False
        met = [
            (one, other)
            for one, extents in pub["extents"].items()
            for other, wishes in sub["wishes"].items()
            if any(space in wishes and wishes[space].met(extent, loosely) for space, extent in extents.items())
        ]
        return passes(pub, {one for one, _ in met}) and passes(sub, {other for _, other in met})

    def agrees(self, audience: Expression, properties: dict[str, Any]) -> Truth3:
        assert self.people
        kinds = self.people.kinds

        def leaf(one: Expression) -> Truth3:
            given = properties.get(one[1])
            return fits(kinds[one[1]], one[2], one[3], None if given is None else kinds[one[1]].read(given))

        return holds(audience, leaf)

    def after(self, pubs: Iterable[Any], subs: Iterable[Any]) -> set[tuple[Any, Any]]:
        """Return all pairs that match, after these have changed, come or gone."""
        pubs, subs = set(pubs), set(subs)
        found = {pair for pair in self.pairs if pair[0] not in pubs and pair[1] not in subs}
        asked = {(key, id) for key in pubs & self.pubs.keys() for id in self.subs}
        asked |= {(key, id) for key in self.pubs for id in subs & self.subs.keys()}
        self.checked += len(asked)
        return found | {pair for pair in asked if self.holds(pair)}

    def holds(self, pair: tuple[Any, Any]) -> bool:
        """Return whether a pair matches. Where a pattern beside a range decides, either is right, as told."""
        pub, sub = self.pubs[pair[0]], self.subs[pair[1]]
        exact = self.match(pub, sub)
        patterns = any(wish.loose for wishes in sub["wishes"].values() for wish in wishes.values())
        if not patterns or exact == self.match(pub, sub, True):
            return exact
        self.loose += 1
        return ("enter", *pair) in self.told or (pair in self.pairs and ("leave", *pair) not in self.told)

    def step(self, pubs: Iterable[Any] = (), subs: Iterable[Any] = ()) -> list[tuple[str, Any, Any]]:
        """Return the transitions of what has just changed."""
        after = self.after(pubs, subs)
        told = [("enter", *pair) for pair in after - self.pairs] + [("leave", *pair) for pair in self.pairs - after]
        self.pairs = after
        return told


def renamed(expression: Expression, space: SpaceModel) -> Expression:
    """Return an expression with the names of dimensions for their synonyms."""
    match expression:
        case ["and" | "or", terms]:
            return [expression[0], [renamed(term, space) for term in terms]]
        case ["not", term]:
            return ["not", renamed(term, space)]
        case ["leaf", field, fold, test]:
            return ["leaf", space.known(field), fold, test]
    return expression


def passes(one: dict[str, Any], met: set[str]) -> bool:
    """Return whether a filter holds, given which of its regions are met."""
    if one["filter"] == "all":
        return met == set(one["regions"])
    if one["filter"] == "any":
        return bool(met)
    return holds(one["filter"], lambda leaf: leaf[1] in met) is True


def mentioned_in(steps: Iterable[dict[str, Any]], name: str, space: SpaceModel) -> dict[str, list[tuple[str, Any]]]:
    """Return what a history says of each dimension of a space: constants, bounds, folded ones, patterns, networks."""
    found: dict[str, list[tuple[str, Any]]] = {}

    def say(field: str, sort: str, value: Any) -> None:
        dimension = space.known(field)
        if dimension is None:
            return
        for source in [dimension] if dimension in space.derived else space.family(dimension):
            kind = space.kinds[source]
            try:
                if sort in ("value", "constant"):
                    read = kind.read(value) if sort == "value" else kind.constant(value)
                    found.setdefault(source, []).append((sort, read))
                else:
                    found.setdefault(source, []).append((sort, value))
            except (Misfit, ValueError, TypeError):
                continue

    def say_region(of: Any) -> None:
        if isinstance(of, dict):
            for field, given in of.items():
                for value in mentions(given) if given is not None else ():
                    say(field, "value", value)
            return
        for _, field, fold, test in leaves(of):
            for constant in constants(test):
                if fold:
                    say(field, fold, constant)
                say(field, "constant", constant)
            if test[0] == "inside":
                for value in mentions(test[1]):
                    say(field, "value", value)
            elif test[0] in ("like", "startswith", "endswith", "contains"):
                say(field, "pattern", shape(test))
                say(field, "test", (fold, test))
                if fold:
                    say(field, fold, shape(test).replace("%", ""))
            elif test[0] == "is_a":
                for word in test[1]:
                    say(field, "constant", word)
            elif test[0] == "network":
                for text in test[1]:
                    say(field, "network", text)

    for step in steps:
        for region in (step.get("regions") or {}).values():
            if region is not None:
                say_region(region["of"])
        for row in step.get("rows") or ():
            say_region(row["of"])
    return found


def shape(test: list[Any]) -> str:
    """Return a test of a text as a LIKE pattern."""
    match test:
        case ["startswith", text]:
            return f"{text}%"
        case ["endswith", text]:
            return f"%{text}"
        case ["contains", text]:
            return f"%{text}%"
    return str(test[1])
