"""Random histories of publications over all types of dimensions, several spaces, filters and audiences."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from tests.models.draws import Drawer
from tests.models.kind import Kind
from tests.models.kinds import Truth
from tests.subjects.witness_spaces import SpaceModel
from tocsin import Interval

KNOWN_GAPS: frozenset[str] = frozenset()
"""What the histories leave out because it is known not to hold; each name is looked for where it is drawn."""

TREE: dict[str, list[str]] = {
    "thing": [],
    "tool": ["thing"],
    "saw": ["tool"],
    "gift": ["thing"],
    "knife": ["tool", "gift"],
    "other": [],
}
KINDS: dict[str, list[Any]] = {
    "int64": ["int64"],
    "double": ["double"],
    "short decimal": ["decimal", 4, 2],
    "long decimal": ["decimal", 38, 10],
    "text": ["text", {}],
    "synonyms": ["text", {"US": "United States", "aa": "a"}],
    "boolean": ["boolean"],
    "date": ["date"],
    "timestamp": ["timestamp"],
    "timestamp_ntz": ["timestamp_ntz"],
    "address": ["address"],
    "concept": ["concept", TREE, {"blade": "knife"}, False],
    "concept or text": ["concept", TREE, {"blade": "knife"}, True],
}
PEOPLE: dict[str, Any] = {
    "unspecified": "null",
    "dimensions": {"age": ["int64"], "team": ["text", {}], "keen": ["boolean"]},
}


def intricate(step: dict[str, Any]) -> bool:
    """Return whether a publication has what rows of a table cannot update."""
    regions = [region for region in step["regions"].values() if region is not None]
    sets = any(isinstance(value, frozenset) for region in regions for value in region["of"].values())
    return sets or not isinstance(step.get("filter", "all"), str) or step.get("audience") is not None


class Histories(Drawer):
    """Draws one history."""

    def __init__(self, random: Random, gaps: frozenset[str] = KNOWN_GAPS, only: list[str] | None = None) -> None:
        super().__init__(random, gaps)
        self.only = only
        self.keys = 0
        self.pubs: dict[Any, dict[str, Any]] = {}
        self.subs: dict[Any, dict[str, Any]] = {}

    def history(self, steps: int) -> dict[str, Any]:
        """Return a history of so many steps."""
        names = ["only"] if self.chance(0.6) or "spaces" in self.gaps else ["map", "shop"]
        unspecified = self.random.choice(["null", "any"])
        specs = {name: self.space(name, unspecified) for name in names}
        self.spaces = {name: SpaceModel(spec) for name, spec in specs.items()}
        self.people = SpaceModel(PEOPLE)
        engine = self.random.choice([None, None, "adaptive", "bounds"])
        made = [self.step() for _ in range(steps)]
        return {"spaces": specs, "properties": PEOPLE, "engine": engine, "steps": made}

    def space(self, name: str, unspecified: str) -> dict[str, Any]:
        names = self.only or [name for name in KINDS if f"kind {name}" not in self.gaps]
        fields = ["x", "y", "z"] if name != "shop" else ["x", "v", "w"]
        dimensions = {}
        for place, field in enumerate(fields[: self.random.choice([1, 2, 3, 3])]):
            nested = f"d.{field}" if place and "nested" not in self.gaps and self.chance(0.3) else field
            dimensions[nested] = KINDS[self.random.choice(names)]
        if name == "shop":  # a field that is in both spaces has one type
            dimensions["x"] = self.first["dimensions"]["x"]
        spec: dict[str, Any] = {"unspecified": unspecified, "dimensions": dimensions}
        if "derived" not in self.gaps and self.chance(0.2):
            self.derive(dimensions, "made" if name != "shop" else "made_shop")
        if "field synonyms" not in self.gaps and self.chance(0.15):
            plain = [name for name in dimensions if dimensions[name][0] != "derived"]
            spec["synonyms"] = {f"alias_{name}": self.random.choice(plain)}
        self.first = spec
        return spec

    def derive(self, dimensions: dict[str, Any], name: str) -> None:
        """Add a field that a formula makes of another, where there is a formula for its type."""
        made = {"double": ("2 * {}", ["double"]), "date": ("year({})", ["int64"])}
        texts = [("lower({})", ["text", {}]), ("concat({}, 'x')", ["text", {}])]
        for field, spec in list(dimensions.items()):
            formula, kind = made.get(spec[0], self.random.choice(texts) if spec == ["text", {}] else (None, None))
            if formula:
                dimensions[name] = ["derived", formula, field, kind]
                return

    # Values

    def given(self, field: str, kind: Kind) -> Any:
        """Return a point, an interval or a set."""
        way = self.random.random()
        if not kind.ordered or isinstance(kind, Truth):
            if way < 0.8:
                return self.value(field, kind)
            return frozenset(self.value(field, kind) for _ in range(self.random.randrange(1, 3)))
        if way < 0.45:
            return self.value(field, kind)
        if way < 0.85:
            return self.interval(field, kind)
        return frozenset(
            self.value(field, kind) if self.chance(0.6) else self.interval(field, kind)
            for _ in range(self.random.randrange(1, 4))
        )

    def interval(self, field: str, kind: Kind) -> Any:
        ends = [self.value(field, kind), self.value(field, kind)]
        if kind.compare(kind.read(ends[0]), kind.read(ends[1])) > 0 and self.chance(0.97):
            ends.reverse()
        if self.chance(0.3):
            return tuple(ends)
        low, high = (None if self.chance(0.15) else end for end in ends)
        return Interval(low, high, self.random.choice(["both", "left", "right", "neither"]))  # type: ignore[arg-type]

    def fields(self, space: str | None, given: bool = False) -> dict[str, Kind]:
        """Return the fields of a space, or of all; those that a publication may give, or all that may be tested."""
        found: dict[str, Kind] = {}
        for name in [space] if space else self.spaces:
            model = self.spaces[name]
            names = model.dimensions if given else model.kinds
            found |= {field: model.kinds[field] for field in names if not (given and field in model.below)}
            found |= {alias: model.kinds[field] for alias, field in model.aliases.items()}
        return found

    def values_of(self, space: str | None, changing: bool = False) -> dict[str, Any]:
        fields = self.fields(space, True)
        made: dict[str, Any] = {}
        for field in self.random.sample(sorted(fields), self.random.randrange(1, min(3, len(fields)) + 1)):
            names = {self.spaces[name].known(field) for name in ([space] if space else self.spaces)}
            said = {
                self.spaces[name].known(other) for other in made for name in ([space] if space else self.spaces)
            } - {None}
            if names & said:
                continue  # one dimension under two of its names
            made[field] = None if changing and self.chance(0.2) else self.given(field, fields[field])
        return made

    def region(self, side: str, space: str | None = None) -> dict[str, Any]:
        if space is None and list(self.spaces) != ["only"] and self.chance(0.75):
            space = self.random.choice(list(self.spaces))
        if side == "publication" or self.chance(0.25):
            return {"of": self.values_of(space), "space": space}
        return {"of": self.expression(self.fields(space or next(iter(self.spaces)))), "space": space}

    def filter(self, names: list[str]) -> Any:
        if self.chance(0.6) or len(names) == 1:
            return self.random.choice(["all", "all", "any"])
        leaves = [["leaf", name, None, ["met"]] for name in names]
        one, other = self.random.sample(leaves, 2)
        return self.random.choice([["and", [one, ["not", other]]], ["or", [one, other]], ["and", leaves], one])

    def regions(self, side: str) -> tuple[dict[str, Any], str]:
        if self.chance(0.65) or (side == "subscription" and "several regions" in self.gaps):
            return {"region": self.region(side)}, self.random.choice(["single", "single", "objects", "plain"])
        names = self.random.sample(["a", "b", "c"], self.random.choice([1, 2, 2, 3]))
        return {name: self.region(side) for name in names}, "objects"

    def audience(self) -> Any:
        return self.expression(self.people.kinds, 1) if self.chance(0.2) and "audience" not in self.gaps else None

    def person(self) -> Any:
        if self.chance(0.4):
            return None
        return {
            field: self.value(f"people {field}", kind) for field, kind in self.people.kinds.items() if self.chance(0.7)
        }

    # Steps

    def step(self) -> dict[str, Any]:
        weights = {"publish": 5, "update": 8, "put": 2, "delete": 1, "put_many": 3, "delete_many": 0.5}
        weights |= {"subscribe": 5, "change": 3, "unsubscribe": 1, "subscribe_many": 2}
        names = [name for name in weights if name not in self.gaps]
        kind = self.random.choices(names, [weights[name] for name in names])[0]
        if len(self.pubs) > 8 and kind in ("publish", "put", "put_many"):
            kind = "delete"
        if len(self.subs) > 8 and kind in ("subscribe", "subscribe_many"):
            kind = "unsubscribe"
        if kind in ("update", "delete", "delete_many") and not self.pubs:
            kind = "publish"
        if kind in ("change", "unsubscribe") and not self.subs:
            kind = "subscribe"
        made: dict[str, Any] = getattr(self, kind)()
        return made

    def key(self) -> Any:
        """A new key; now and then one that may be there."""
        if self.pubs and self.chance(0.04):
            return self.random.choice(list(self.pubs))
        self.keys += 1
        return self.keys

    def publish(self) -> dict[str, Any]:
        key = self.key()
        regions, form = self.regions("publication")
        step = {"do": "publish", "key": key, "regions": regions, "form": form, "beside": self.chance(0.5)}
        step |= {"filter": self.filter(list(regions)), "audience": self.audience()}
        self.pubs.setdefault(key, {"regions": regions, "intricate": intricate(step)})
        return step

    def update(self) -> dict[str, Any]:
        key = self.random.choice(list(self.pubs))
        old = self.pubs[key]["regions"]
        names = self.random.sample(list(old), self.random.randrange(1, len(old) + 1))
        changes: dict[str, Any] = {}
        for name in names:
            if len(old) > 1 and self.chance(0.15):
                changes[name] = None
            else:
                space = old[name]["space"]
                changes[name] = {
                    "of": self.values_of(space, True),
                    "space": space if self.chance(0.5) or "space kept" in self.gaps else None,
                }
        if self.chance(0.1) and "d" not in old:
            changes["d"] = self.region("publication")
        form = "single" if len(old) == 1 and list(changes) == list(old) and self.chance(0.8) else "plain"
        step: dict[str, Any] = {"do": "update", "key": key, "regions": changes, "form": form}
        after = {name: region for name, region in {**old, **changes}.items() if region is not None}
        if self.chance(0.1) and after:
            step["filter"] = self.filter(list(after))
        if self.chance(0.1):
            step["audience"] = self.audience()
        if after:
            kept = {name: old.get(name) or after[name] for name in after}
            self.pubs[key] = {"regions": kept, "intricate": intricate(step) or self.pubs[key].get("intricate")}
        return step

    def put(self) -> dict[str, Any]:
        if self.pubs and self.chance(0.6):
            return {**self.update(), "do": "put"}
        key = self.key()
        regions, form = self.regions("publication")
        self.pubs.setdefault(key, {"regions": regions, "intricate": intricate({"regions": regions})})
        return {"do": "put", "key": key, "regions": regions, "form": form}

    def delete(self) -> dict[str, Any]:
        key = self.random.choice(list(self.pubs)) if self.chance(0.95) else "none"
        self.pubs.pop(key, None)
        return {"do": "delete", "key": key}

    def delete_many(self) -> dict[str, Any]:
        keys = self.random.sample(list(self.pubs), self.random.randrange(1, min(3, len(self.pubs)) + 1))
        for key in keys:
            del self.pubs[key]
        return {"do": "delete_many", "keys": keys}

    def put_many(self) -> dict[str, Any]:
        space = None if list(self.spaces) == ["only"] else self.random.choice(list(self.spaces))
        fields = self.fields(space, True)
        names = self.values_of(space)
        columns: dict[str, Any] = {}
        for field in names:
            kind = fields[field]
            shapes = ["plain", "plain", "pair", "closed"] if kind.ordered and not isinstance(kind, Truth) else ["plain"]
            columns[field] = [self.random.choice(shapes), self.arrow(kind)]
        fitting = [
            key
            for key, pub in self.pubs.items()
            if len(pub["regions"]) == 1
            and next(iter(pub["regions"].values()))["space"] == space
            and (not pub.get("intricate") or self.chance(0.05))
        ]
        rows = []
        for _ in range(self.random.randrange(1, 5)):
            key = self.random.choice(fitting) if fitting and self.chance(0.5) else None
            if key is None:
                self.keys += 1
                key = self.keys
            of = {field: self.cell(field, fields[field], shape) for field, (shape, _) in columns.items()}
            rows.append({"key": key, "of": of})
            fitting.append(key)
        for row in rows:
            self.pubs.setdefault(row["key"], {"regions": {"region": {"of": row["of"], "space": space}}})
        return {"do": "put_many", "space": space, "columns": columns, "rows": rows}

    def arrow(self, kind: Kind) -> int:
        """Return the number of an Arrow type that holds a dimension."""
        types = list(enumerate(kind.arrow()))
        if "string views" in self.gaps:
            types = [(place, each) for place, each in types if not pa.types.is_string_view(each)]
        return self.random.choice(types)[0]

    def cell(self, field: str, kind: Kind, shape: str) -> Any:
        if self.chance(0.15):
            return None
        if shape == "plain" or self.chance(0.3):
            return self.value(field, kind)
        made = self.interval(field, kind)
        return Interval(made.low, made.high) if shape == "pair" and isinstance(made, Interval) else made

    def subscribe(self) -> dict[str, Any]:
        self.keys += 1
        id = f"s{self.keys}" if not self.subs or self.chance(0.96) else self.random.choice(list(self.subs))
        regions, form = self.regions("subscription")
        self.subs.setdefault(id, {"regions": regions})
        step = {"do": "subscribe", "id": id, "regions": regions, "form": form, "beside": self.chance(0.5)}
        return step | {"filter": self.filter(list(regions)), "properties": self.person()}

    def subscribe_many(self) -> dict[str, Any]:
        space = None if list(self.spaces) == ["only"] else self.random.choice(list(self.spaces))
        rows = []
        for _ in range(self.random.randrange(1, 5)):
            self.keys += 1
            rows.append({"id": f"s{self.keys}", "of": self.expression(self.fields(space))})
        if self.chance(0.05):
            rows[-1]["id"] = self.random.choice([None, rows[0]["id"] if len(rows) > 1 else None])
        for row in rows:
            if row["id"] is not None:
                self.subs.setdefault(row["id"], {"regions": {"region": {"of": row["of"], "space": space}}})
        return {"do": "subscribe_many", "space": space, "rows": rows}

    def change(self) -> dict[str, Any]:
        id = self.random.choice(list(self.subs))
        old = self.subs[id]["regions"]
        name = self.random.choice(list(old))
        space = old[name]["space"]
        if isinstance(old[name]["of"], dict) and self.chance(0.6):
            region = {"of": self.values_of(space, True), "space": space}
        else:
            region = self.region("subscription", space) if space else self.region("subscription")
            region["space"] = space
        form = "single" if len(old) == 1 and self.chance(0.7) else "plain"
        step: dict[str, Any] = {"do": "change", "id": id, "regions": {name: region}, "form": form}
        if self.chance(0.15):
            step["properties"] = self.person()
        self.subs[id] = {"regions": {**old, name: region}}
        return step

    def unsubscribe(self) -> dict[str, Any]:
        id = self.random.choice(list(self.subs)) if self.chance(0.95) else "none"
        self.subs.pop(id, None)
        return {"do": "unsubscribe", "id": id}
