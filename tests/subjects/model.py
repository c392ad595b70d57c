"""The plain definition: all matches recomputed by brute force at every step, and their differences.

A region is the set of the points of a small grid that lie in it, one bit each in a Python integer; two regions match
when they have a bit in common. Nothing here knows of codes, boxes or indexes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from functools import cache
from random import Random
from types import CodeType
from typing import Any

import pyarrow as pa

from tocsin import Interval, Number, Region, Space, Subjects, Text

NUMBERS: list[Any] = [None, *range(-1, 8)]
TEXTS: list[Any] = [None, "", " z", "a", "aaz", "ab", "abz", "az", "azz", "b", "baz", "bz", "bzz", "c", "cz", "zz"]
"""Of the texts only some are in the grid. Ranges are drawn with a text that ends with z in them, as a pattern may hold
of a range, and with their lower ends, so that what overlaps does so in the grid too."""
DIMENSIONS: dict[str, dict[str, list[Any]]] = {
    "map": {"x": NUMBERS, "y": NUMBERS, "kind": TEXTS},
    "shop": {"x": NUMBERS, "name": TEXTS},
}
PEOPLE = {"age": NUMBERS, "team": TEXTS}

Point = dict[str, Any]


def _less(one: Any, other: Any) -> bool:
    return one is not None and one < other


def _more(one: Any, other: Any) -> bool:
    return one is not None and one > other


EXPRESSIONS: dict[str, list[tuple[str, Callable[[Point], bool]]]] = {
    "map": [
        ("x > 3", lambda p: _more(p["x"], 3)),
        ("x < 2 AND y < 2", lambda p: _less(p["x"], 2) and _less(p["y"], 2)),
        ("x BETWEEN 2 AND 4 AND y BETWEEN 1 AND 6", lambda p: p["x"] in (2, 3, 4) and p["y"] in range(1, 7)),
        ("y IS NULL", lambda p: p["y"] is None),
        ("y IS NULL OR y < 3", lambda p: p["y"] is None or p["y"] < 3),
        ("x IS NOT NULL AND kind <> 'a'", lambda p: p["x"] is not None and p["kind"] not in (None, "a")),
        ("x IN (1, 3, 5) AND NOT kind = 'b'", lambda p: p["x"] in (1, 3, 5) and p["kind"] not in (None, "b")),
        ("kind LIKE 'a%'", lambda p: (p["kind"] or "").startswith("a")),
        ("kind LIKE '%z'", lambda p: (p["kind"] or "").endswith("z")),
        ("kind LIKE '%z%' AND x >= 0", lambda p: "z" in (p["kind"] or "") and _more(p["x"], -1)),
        ("kind >= 'b' OR x = 0", lambda p: (p["kind"] or "") >= "b" or p["x"] == 0),
        (
            "(x = 1 OR y = 1) AND (x = 2 OR y = 2) AND (x < 5 OR kind = 'c')",
            lambda p: (
                (p["x"] == 1 or p["y"] == 1) and (p["x"] == 2 or p["y"] == 2) and (_less(p["x"], 5) or p["kind"] == "c")
            ),
        ),
        ("x > 3 AND x < 4", lambda p: False),
    ],
    "shop": [
        ("x <= 2", lambda p: _less(p["x"], 3)),
        ("name = 'b'", lambda p: p["name"] == "b"),
        ("name BETWEEN 'a' AND 'b' AND x > 1", lambda p: "a" <= (p["name"] or "") <= "b" and _more(p["x"], 1)),
        ("x = 4 OR name = 'zz'", lambda p: p["x"] == 4 or p["name"] == "zz"),
    ],
}
AUDIENCES: dict[str, Callable[[Point], bool]] = {
    "age > 3": lambda p: _more(p["age"], 3),
    "team = 'a' OR age IS NULL": lambda p: p["team"] == "a" or p["age"] is None,
    "team LIKE '%z' AND age < 6": lambda p: (p["team"] or "").endswith("z") and _less(p["age"], 6),
}
EVERY = 50
"""After so many steps all pairs are asked, between them only those of the one that changed."""


@cache
def grid(space: str) -> tuple[Point, ...]:
    names = DIMENSIONS[space]
    return tuple(dict(zip(names, values, strict=True)) for values in itertools.product(*names.values()))


@cache
def of_expression(space: str, text: str) -> int:
    test = dict(EXPRESSIONS[space])[text]
    return sum(1 << place for place, point in enumerate(grid(space)) if test(point))


@cache
def of_choice(space: str, name: str, values: frozenset[Any]) -> int:
    return sum(1 << place for place, point in enumerate(grid(space)) if point[name] in values)


def members(value: Any, domain: list[Any]) -> frozenset[Any]:
    """The values of a domain that a point, an interval or a set holds."""
    if isinstance(value, (set, frozenset)):
        return frozenset().union(*(members(each, domain) for each in value))
    if isinstance(value, tuple):
        value = Interval(*value)
    if not isinstance(value, Interval):
        return frozenset([value])
    found = set()
    for each in domain:
        if each is not None:
            above = value.low is None or each > value.low or (each == value.low and value.closed in ("both", "left"))
            below = (
                value.high is None or each < value.high or (each == value.high and value.closed in ("both", "right"))
            )
            if above and below:
                found.add(each)
    return frozenset(found)


class World:
    """`Subjects` and the definition, side by side; every step is taken by both and compared."""

    def __init__(self, unspecified: str = "null", engine: str = "adaptive", spaces: int = 2) -> None:
        self.any = unspecified == "any"
        self.spaces = list(DIMENSIONS)[:spaces]
        kinds = {"x": Number("int64"), "y": Number("int64"), "kind": Text(), "name": Text()}
        declared = {
            name: Space({each: kinds[each] for each in DIMENSIONS[name]}, unspecified=unspecified)  # type: ignore[arg-type]
            for name in self.spaces
        }
        people = Space({"age": Number("int64"), "team": Text()})
        self.subjects = Subjects(declared, properties=people, engine=engine)
        self.pubs: dict[int, dict[str, Any]] = {}
        self.subs: dict[str, dict[str, Any]] = {}
        self.now: set[tuple[int, str]] = set()
        self.steps = self.enters = self.leaves = 0

    # The definition

    def extent(self, space: str, values: dict[str, Any], object_: bool) -> int:
        """The points of a region given by values: what it leaves out is NULL or anything, or free in a box."""
        found = (1 << len(grid(space))) - 1
        for name, domain in DIMENSIONS[space].items():
            value = values.get(name)
            if value is not None:
                found &= of_choice(space, name, members(value, domain))
            elif object_:
                held = frozenset(domain) - {None} if self.any else frozenset([None])
                found &= of_choice(space, name, held)
        return found

    def extents(self, region: dict[str, Any], object_: bool) -> dict[str, int]:
        chosen = [region["space"]] if region["space"] else self.spaces
        if isinstance(region["of"], str):
            return {chosen[0]: of_expression(chosen[0], region["of"])}
        known = {space for space in chosen if any(region["of"].get(name) is not None for name in DIMENSIONS[space])}
        return {space: self.extent(space, region["of"], object_) for space in known}

    def said(self, regions: dict[str, Any], filter: str, **more: Any) -> dict[str, Any]:
        """A publication (with its audience) or a subscription (with its properties), and the points of its regions."""
        points = [self.extents(each, "audience" in more) for each in regions.values()]
        return {"regions": regions, "filter": filter, "points": dict(zip(regions, points, strict=True)), **more}

    def match(self, pub: dict[str, Any], sub: dict[str, Any]) -> bool:
        """The definition: the filters hold of the regions that have a point in common, and the audience agrees."""
        if pub["audience"] and not AUDIENCES[pub["audience"]](sub["properties"]):
            return False
        met = [
            (one, other)
            for one, ours in pub["points"].items()
            for other, theirs in sub["points"].items()
            if any(points & theirs.get(space, 0) for space, points in ours.items())
        ]
        return holds(pub, {one for one, _ in met}) and holds(sub, {other for _, other in met})

    def matching(self, pubs: Iterable[int], subs: Iterable[str]) -> set[tuple[int, str]]:
        """All pairs of these that match."""
        return {(key, id) for key in pubs for id in subs if self.match(self.pubs[key], self.subs[id])}

    def after(self, pubs: Collection[int], subs: Collection[str]) -> set[tuple[int, str]]:
        """All pairs that match after these have changed, come or gone. A pair matches or not by its own two sides."""
        there = [key for key in pubs if key in self.pubs], [id for id in subs if id in self.subs]
        found = {pair for pair in self.now if pair[0] not in pubs and pair[1] not in subs}
        found |= self.matching(there[0], self.subs) | self.matching(self.pubs, there[1])
        if self.steps % EVERY == 0:
            assert found == self.matching(self.pubs, self.subs)
        return found

    def compare(self, transitions: Any, pubs: Collection[int] = (), subs: Collection[str] = ()) -> None:
        told = list(transitions)
        after = self.after(pubs, subs)
        expected = [("enter", *pair) for pair in after - self.now] + [("leave", *pair) for pair in self.now - after]
        assert sorted(told) == sorted(expected), (told, expected)
        self.count(expected)
        self.now = after
        self.steps += 1

    def count(self, expected: list[Any]) -> None:
        enters = sum("enter" in one for one in expected)
        self.enters, self.leaves = self.enters + enters, self.leaves + len(expected) - enters

    # Drawing

    def value(self, random: Random, domain: list[Any]) -> Any:
        values = domain[1:]
        kind = random.randrange(10)
        if kind < 5:
            return random.choice(values)
        if kind < 9:
            low, high = sorted((random.choice(values), random.choice(values)))
            ends = ["both", "left"] if domain is TEXTS else ["both", "both", "left", "right", "neither"]
            closed = random.choice(ends) if low != high else "both"
            made = Interval(random.choice([low, low, None]), high, closed)  # type: ignore[arg-type]
            held = members(made, domain)
            if domain is TEXTS and not any(each.endswith("z") for each in held):
                return low
            return made if held else (low, high)
        return frozenset(random.choice(values) for _ in range(random.randrange(1, 4)))

    def values(self, random: Random, space: str | None) -> dict[str, Any]:
        domains = {name: each for one in ([space] if space else self.spaces) for name, each in DIMENSIONS[one].items()}
        chosen = random.sample(sorted(domains), random.randrange(1, len(domains) + 1))
        return {name: self.value(random, domains[name]) for name in chosen}

    def region(self, random: Random, object_: bool) -> dict[str, Any]:
        space = random.choice(self.spaces) if len(self.spaces) == 1 or random.randrange(4) else None
        if not object_ and random.randrange(3):
            space = space or self.spaces[0]
            return {"of": random.choice(EXPRESSIONS[space])[0], "space": space}
        return {"of": self.values(random, space), "space": space}

    def regions(self, random: Random, object_: bool) -> dict[str, Any]:
        names = ["region"] if random.randrange(3) else random.sample(["a", "b", "c"], random.randrange(1, 4))
        return {name: self.region(random, object_) for name in names}

    def filter(self, random: Random, names: list[str]) -> str:
        kind = random.randrange(4)
        if kind < 2 or len(names) == 1:
            return ["all", "any"][kind % 2]
        one, other = names[0], names[1]
        return [f"{one} AND NOT {other}", f"{other} OR {one}"][kind % 2]

    # Steps

    def step(self, random: Random) -> None:
        """Take one step of any kind."""
        weights = {"publish": 4, "update": 8, "delete": 2, "subscribe": 3, "change": 4, "unsubscribe": 2, "put_many": 2}
        weights["subscribe_many"] = 1
        kind = random.choices(list(weights), list(weights.values()))[0]
        if kind in ("update", "delete") and not self.pubs:
            kind = "publish"
        if kind in ("change", "unsubscribe") and not self.subs:
            kind = "subscribe"
        if kind == "publish" and len(self.pubs) >= 8:
            kind = "delete"
        if kind in ("subscribe", "subscribe_many") and len(self.subs) >= 8:
            kind = "unsubscribe"
        getattr(self, kind)(random)

    def publish(self, random: Random) -> None:
        key = random.choice([key for key in range(10) if key not in self.pubs])
        regions = self.regions(random, True)
        filter = self.filter(random, list(regions))
        audience = random.choice([None, None, None, random.choice(list(AUDIENCES))])
        self.pubs[key] = self.said(regions, filter, audience=audience)
        self.compare(self.subjects.publish(key, regions=given(regions), filter=filter, audience=audience), pubs=[key])

    def update(self, random: Random) -> None:
        key = random.choice(list(self.pubs))
        pub = self.pubs[key]
        regions = {name: {**each, "of": dict(each["of"])} for name, each in pub["regions"].items()}
        changes: dict[str, Any] = {}
        for name in random.sample(list(regions), random.randrange(1, len(regions) + 1)):
            if len(regions) > 1 and not random.randrange(5):
                changes[name] = None
                del regions[name]
                continue
            values = self.values(random, regions[name]["space"])
            for dimension in list(values)[1:]:
                if not random.randrange(4):
                    values[dimension] = None
            known = set(self.extents(regions[name], True)) | set(self.extents({**regions[name], "of": values}, True))
            merged = {**regions[name]["of"], **values}
            if set(self.extents({**regions[name], "of": merged}, True)) != known:
                continue  # leaving a space by taking the last dimension away is tested on its own
            regions[name]["of"] = merged
            changes[name] = Region(values, regions[name]["space"])
        more: dict[str, Any] = {}
        if "d" not in pub["regions"] and not random.randrange(6):
            regions["d"] = self.region(random, True)
            changes["d"] = Region(regions["d"]["of"], regions["d"]["space"])
        filter = pub["filter"] if pub["filter"] in ("all", "any") else "any"
        if filter != pub["filter"] or not random.randrange(6):
            filter = more["filter"] = self.filter(random, list(regions))
        audience = pub["audience"]
        if not random.randrange(8):
            audience = more["audience"] = random.choice([None, random.choice(list(AUDIENCES))])
        self.pubs[key] = self.said(regions, filter, audience=audience)
        if list(changes) == ["region"] and changes["region"] is not None and len(pub["regions"]) == 1 and not more:
            one = changes["region"].of if len(self.spaces) == 1 else changes["region"]
            self.compare(self.subjects.update(key, one), pubs=[key])
        else:
            self.compare(self.subjects.update(key, regions=changes, **more), pubs=[key])

    def delete(self, random: Random) -> None:
        keys = (
            random.sample(list(self.pubs), random.randrange(1, len(self.pubs) + 1)) if not random.randrange(4) else []
        )
        if keys:
            for key in keys:
                del self.pubs[key]
            self.compare(self.subjects.delete_many(keys), pubs=keys)
        else:
            key = random.choice(list(self.pubs))
            del self.pubs[key]
            self.compare(self.subjects.delete(key), pubs=[key])

    def subscribe(self, random: Random) -> None:
        id = random.choice([id for id in "stuvwxyzST" if id not in self.subs])
        regions = self.regions(random, False)
        filter = self.filter(random, list(regions))
        person = self.person(random)
        self.subs[id] = self.said(regions, filter, properties=person)
        self.compare(self.subjects.subscribe(id, regions=given(regions), filter=filter, properties=person), subs=[id])

    def subscribe_many(self, random: Random) -> None:
        """Expressions in one table; each row is a step of its own, told by its number."""
        space = random.choice(self.spaces)
        free = [id for id in "stuvwxyzST" if id not in self.subs]
        ids = random.sample(free, random.randrange(1, len(free) + 1))
        texts = [random.choice(EXPRESSIONS[space])[0] for _ in ids]
        told = self.subjects.subscribe_many(pa.table({"id": ids, "expression": texts}), space=space)
        expected = []
        for number, (id, text) in enumerate(zip(ids, texts, strict=True)):
            nobody = dict.fromkeys(PEOPLE)
            self.subs[id] = self.said({"region": {"of": text, "space": space}}, "all", properties=nobody)
            after = self.after([], [id])
            expected += [(number, "enter", *pair) for pair in after - self.now]
            self.now = after
        self.tell_rows(told, expected)

    def tell_rows(self, told: Any, expected: list[Any]) -> None:
        rows = told.to_arrow(encoded=bool(self.steps % 2)).to_pylist()
        found = [(row["row"], row["transition"], row["publication"], row["subscription"]) for row in rows]
        assert sorted(found) == sorted(expected)
        self.count(expected)
        self.steps += 1

    def person(self, random: Random) -> dict[str, Any]:
        return {name: random.choice(domain) for name, domain in PEOPLE.items()}

    def change(self, random: Random) -> None:
        id = random.choice(list(self.subs))
        sub = self.subs[id]
        regions = dict(sub["regions"])
        changes: dict[str, Any] = {}
        for name in random.sample(list(regions), random.randrange(1, len(regions) + 1)):
            if len(regions) > 1 and not random.randrange(5):
                changes[name] = None
                del regions[name]
                continue
            new = self.region(random, False)
            old = regions[name]
            if isinstance(new["of"], dict) and isinstance(old["of"], dict):
                new = {"of": {**old["of"], **new["of"]}, "space": new["space"] or old["space"]}
                known = DIMENSIONS[new["space"]] if new["space"] else {}
                if new["space"] and not set(new["of"]) <= set(known):
                    continue
                changes[name] = Region({each: new["of"][each] for each in new["of"]}, new["space"])
            else:
                new["space"] = new["space"] or old["space"]
                known = DIMENSIONS[new["space"]] if new["space"] else {}
                if isinstance(new["of"], dict) and new["space"] and not set(new["of"]) <= set(known):
                    continue
                changes[name] = Region(new["of"], new["space"])
            regions[name] = new
        filter = self.filter(random, list(regions))
        more: dict[str, Any] = {"filter": filter}
        person = sub["properties"]
        if not random.randrange(4):
            person = more["properties"] = self.person(random)
        self.subs[id] = self.said(regions, filter, properties=person)
        if list(changes) == list(sub["regions"]) == ["region"] and len(regions) == 1:
            self.compare(self.subjects.change(id, changes["region"], **more), subs=[id])
        else:
            self.compare(self.subjects.change(id, regions=changes, **more), subs=[id])

    def unsubscribe(self, random: Random) -> None:
        id = random.choice(list(self.subs))
        del self.subs[id]
        self.compare(self.subjects.unsubscribe(id), subs=[id])

    def put_many(self, random: Random) -> None:
        """Plain publications in one table; each row is a step of its own, told by its number."""
        space = self.spaces[0]
        plain = [
            key
            for key in range(8)
            if key not in self.pubs
            or (is_plain(self.pubs[key]) and self.pubs[key]["regions"]["region"]["space"] == space)
        ]
        if not plain:
            return
        rows = [
            (random.choice(plain), random.choice(NUMBERS[1:]), random.choice(NUMBERS))
            for _ in range(random.randrange(1, 6))
        ]
        table = pa.table(
            {
                "key": [row[0] for row in rows],
                "x": [row[1] for row in rows],
                "y": pa.array([row[2] for row in rows], pa.int64()),
            }
        )
        told = self.subjects.put_many(table, space=space)
        expected = []
        for number, (key, x, y) in enumerate(rows):
            old = self.pubs.get(key)
            values = {**(old["regions"]["region"]["of"] if old else {}), "x": x, "y": y}
            kept = old["filter"] if old else "all"
            self.pubs[key] = self.said({"region": {"of": values, "space": space}}, kept, audience=None)
            after = self.after([key], [])
            expected += [(number, "enter", *pair) for pair in after - self.now]
            expected += [(number, "leave", *pair) for pair in self.now - after]
            self.now = after
        self.tell_rows(told, expected)


def is_plain(pub: dict[str, Any]) -> bool:
    """One unnamed region without sets, the default filter, no audience."""
    if list(pub["regions"]) != ["region"] or pub["filter"] not in ("all", "any") or pub["audience"]:
        return False
    values = pub["regions"]["region"]["of"].values()
    return not any(isinstance(value, frozenset) for value in values)


def given(regions: dict[str, Any]) -> dict[str, Region]:
    return {name: Region(each["of"], each["space"]) for name, each in regions.items()}


def holds(one: dict[str, Any], met: set[str]) -> bool:
    """Whether a filter holds, given which of its regions are matched."""
    names = list(one["regions"])
    if one["filter"] == "all":
        return met == set(names)
    if one["filter"] == "any":
        return bool(met)
    return bool(eval(condition(one["filter"]), {}, {name: name in met for name in names}))


@cache
def condition(filter: str) -> CodeType:
    """A filter as Python, which has the same words in small letters."""
    return compile(filter.replace("AND", "and").replace("OR", "or").replace("NOT", "not"), filter, "eval")
