"""Play a history of publications in `Subjects` and in the model side by side."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from tests.models.kind import Kind
from tests.models.logic import Expression, holds, sql
from tests.subjects.witness_spaces import Extent, Refused, SpaceModel, Undocumented
from tests.subjects.witnesses import Model
from tocsin import Interval, Region, Subjects, TocsinError


class Run:
    """A history in progress."""

    def __init__(self, history: dict[str, Any]) -> None:
        self.history = history
        self.model = Model(history)
        spaces = {name: space.declare() for name, space in self.model.spaces.items()}
        people = self.model.people.declare() if self.model.people else None
        given: Any = next(iter(spaces.values())) if list(spaces) == ["only"] else spaces
        options = {"engine": history["engine"]} if history.get("engine") else {}
        self.subjects = Subjects(given, properties=people, **options)
        self.rows: list[Any] = []
        self.counts: Counter[str] = Counter()

    def play(self) -> Run:
        """Take every step in both and compare; at the end and after refusals ask for all pairs anew."""
        try:
            for step in self.history["steps"]:
                self.take(step)
        except Undocumented:
            return self
        self.ask("at the end")
        return self

    def ask(self, when: str) -> None:
        found = self.subjects.matches()
        assert found == self.model.pairs, f"{when}: matches() has {show(found, self.model.pairs)}"

    def take(self, step: dict[str, Any]) -> None:
        """Take a step in `Subjects` and then in the model; what patterns beside ranges may be, the first decides."""
        plain = self.canonical(step)
        found: list[Any] = []
        error: TocsinError | None = None
        try:
            told = getattr(self, f"do_{step['do']}")(step)
            bulk = step["do"] in ("put_many", "subscribe_many")
            found = rows_of(told) if bulk else [(0, *each) for each in told]
        except TocsinError as raised:
            error = raised
        self.rows = found
        before = dict(self.model.pubs), dict(self.model.subs), self.model.pairs
        self.row(0)
        try:
            expected = getattr(self, f"expect_{step['do']}")(plain)
        except Refused as refused:
            self.model.pubs, self.model.subs, self.model.pairs = before
            assert error, f"{step['do']} was accepted, though: {refused}; step: {self.text(step)}"
            self.counts["refused"] += 1
            self.ask("after a refusal")
            return
        assert not error, f"{step['do']} was refused: {type(error).__name__}: {error}; step: {self.text(step)}"
        expected = [each if len(each) == 4 else (0, *each) for each in expected]
        assert len(set(found)) == len(found), "a transition was told twice"
        assert set(found) == set(expected), f"{self.text(step)}: transitions {show(set(found), set(expected))}"
        self.counts["steps"] += 1
        self.counts["transitions"] += len(found)

    def row(self, number: int) -> None:
        """Let the model know what was told of one row of a step."""
        self.model.told = {each[1:] for each in self.rows if each[0] == number}

    def canonical(self, step: dict[str, Any]) -> dict[str, Any]:
        """Return a step with the names of dimensions for their synonyms, so that updates meet what they change."""
        made = dict(step)
        if step.get("regions"):
            made["regions"] = {
                name: region and {**region, "of": self.renamed(region["of"], self.lies_in(step, name, region["space"]))}
                for name, region in step["regions"].items()
            }
        if step["do"] == "put_many":
            space = step["space"] or next(iter(self.model.spaces))
            made["rows"] = [{**row, "of": self.renamed(row["of"], space)} for row in step["rows"]]
        return made

    def lies_in(self, step: dict[str, Any], name: str, space: str | None) -> str | None:
        """Return the one space in which a region lies; None if there may be several."""
        if len(self.model.spaces) == 1:
            return next(iter(self.model.spaces))
        old = (self.model.pubs if "key" in step else self.model.subs).get(step.get("key", step.get("id")))
        known = old["regions"] if old else {}
        if step.get("form") == "single" and len(known) == 1:
            (name,) = known
        return space or (known[name]["space"] if name in known else None)

    def renamed(self, of: Any, space: str | None) -> Any:
        if not isinstance(of, dict):
            return of
        if space is None:
            if any(name in each.aliases for name in of for each in self.model.spaces.values()):
                raise Undocumented("a synonym where the space is open")
            return of
        model = self.model.spaces[space]
        return {model.known(name) or name: value for name, value in of.items()}

    def text(self, step: dict[str, Any]) -> str:
        """Return a step as a reader understands it."""
        regions = {
            name: region and {**region, "of": self.said(region["of"])}
            for name, region in (step.get("regions") or {}).items()
        }
        rows = [{**row, "of": self.said(row["of"])} for row in step.get("rows") or ()]
        return str({**step, "regions": regions, "rows": rows})

    def said(self, of: Any) -> Any:
        return of if isinstance(of, dict) else sql(of, self.kind)

    # The model

    def expect_publish(self, step: dict[str, Any]) -> Any:
        if step["key"] in self.model.pubs:
            raise Refused("the key is there")
        self.check_new(step)
        regions = {name: dict(region) for name, region in step["regions"].items()}
        self.model.pubs[step["key"]] = self.model.publication(regions, step["filter"], step["audience"])
        return self.model.step(pubs=[step["key"]])

    def check_new(self, step: dict[str, Any]) -> None:
        if None in step["regions"].values():
            raise Undocumented("a region is taken away from what is not there")
        if step.get("form") == "single" and list(step["regions"]) != ["region"]:
            raise Undocumented("a single region has no name of its own")

    def expect_update(self, step: dict[str, Any]) -> Any:
        old = self.model.pubs.get(step["key"])
        if old is None:
            raise Refused("no such key")
        regions = merged(old["regions"], named(step, old["regions"]))
        filter, audience = step.get("filter", old["filter"]), step.get("audience", old["audience"])
        self.model.pubs[step["key"]] = self.model.publication(regions, filter, audience)
        return self.model.step(pubs=[step["key"]])

    def expect_put(self, step: dict[str, Any]) -> Any:
        if step["key"] in self.model.pubs:
            return self.expect_update(step)
        return self.expect_publish({"filter": "all", "audience": None, **step})

    def expect_put_many(self, step: dict[str, Any]) -> Any:
        told = []
        for number, row in enumerate(step["rows"]):
            self.row(number)
            name = "region"
            if row["key"] in self.model.pubs:
                name = only_region(self.model.pubs[row["key"]])
            region = {"of": row["of"], "space": step["space"]}
            one = self.expect_put({"key": row["key"], "regions": {name: region}, "form": "plain"})
            told += [(number, *each) for each in one]
        return told

    def expect_delete(self, step: dict[str, Any]) -> Any:
        if self.model.pubs.pop(step["key"], None) is None:
            raise Refused("no such key")
        return self.model.step(pubs=[step["key"]])

    def expect_delete_many(self, step: dict[str, Any]) -> Any:
        for key in step["keys"]:
            if self.model.pubs.pop(key, None) is None:
                raise Refused("no such key")
        return self.model.step(pubs=step["keys"])

    def expect_subscribe(self, step: dict[str, Any]) -> Any:
        if step["id"] in self.model.subs:
            raise Refused("the id is there")
        self.check_new(step)
        regions = {name: dict(region) for name, region in step["regions"].items()}
        self.model.subs[step["id"]] = self.model.subscription(regions, step["filter"], step["properties"])
        return self.model.step(subs=[step["id"]])

    def expect_subscribe_many(self, step: dict[str, Any]) -> Any:
        told = []
        for number, row in enumerate(step["rows"]):
            self.row(number)
            if row["id"] is None:
                raise Refused("an id is NULL")
            region = {"of": row["of"], "space": step["space"]}
            one = {"id": row["id"], "regions": {"region": region}, "filter": "all", "properties": None}
            told += [(number, *each) for each in self.expect_subscribe(one)]
        return told

    def expect_change(self, step: dict[str, Any]) -> Any:
        old = self.model.subs.get(step["id"])
        if old is None:
            raise Refused("no such id")
        regions = merged(old["regions"], named(step, old["regions"]))
        filter, people = step.get("filter", old["filter"]), step.get("properties", old["properties"])
        self.model.subs[step["id"]] = self.model.subscription(regions, filter, people)
        return self.model.step(subs=[step["id"]])

    def expect_unsubscribe(self, step: dict[str, Any]) -> Any:
        if self.model.subs.pop(step["id"], None) is None:
            raise Refused("no such id")
        return self.model.step(subs=[step["id"]])

    # Subjects

    def do_publish(self, step: dict[str, Any]) -> Any:
        return self.subjects.publish(step["key"], **self.region(step), **self.more(step))

    def do_put(self, step: dict[str, Any]) -> Any:
        return self.subjects.put(step["key"], **self.region(step), **self.more(step))

    def do_update(self, step: dict[str, Any]) -> Any:
        return self.subjects.update(step["key"], **self.region(step), **self.more(step))

    def do_put_many(self, step: dict[str, Any]) -> Any:
        table = self.table(step)
        return self.subjects.put_many(table, **({"space": step["space"]} if step["space"] else {}))

    def do_delete(self, step: dict[str, Any]) -> Any:
        return self.subjects.delete(step["key"])

    def do_delete_many(self, step: dict[str, Any]) -> Any:
        return self.subjects.delete_many(step["keys"])

    def do_subscribe(self, step: dict[str, Any]) -> Any:
        return self.subjects.subscribe(step["id"], **self.region(step), **self.more(step))

    def do_change(self, step: dict[str, Any]) -> Any:
        return self.subjects.change(step["id"], **self.region(step), **self.more(step))

    def do_subscribe_many(self, step: dict[str, Any]) -> Any:
        texts = [self.expression(row["of"]) for row in step["rows"]]
        table = pa.table({"id": pa.array([row["id"] for row in step["rows"]]), "expression": texts})
        return self.subjects.subscribe_many(table, **({"space": step["space"]} if step["space"] else {}))

    def do_unsubscribe(self, step: dict[str, Any]) -> Any:
        return self.subjects.unsubscribe(step["id"])

    def kind(self, field: str) -> Kind:
        for space in [*self.model.spaces.values(), *([self.model.people] if self.model.people else [])]:
            name = space.known(field)
            if name is not None:
                return space.kinds[name]
        raise KeyError(field)

    def expression(self, of: Expression) -> str:
        return sql(of, self.kind)

    def region(self, step: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that give the regions of a step, in the form that it asks for."""
        made: dict[str, Any] = {}
        for name, region in step["regions"].items():
            if region is None:
                made[name] = None
                continue
            of = nested(region["of"]) if isinstance(region["of"], dict) else self.expression(region["of"])
            made[name] = Region(of, region["space"]) if region["space"] or step["form"] == "objects" else of
        if step["form"] == "single":
            ((name, one),) = made.items()
            space = step["regions"][name]["space"]
            if step["do"] in ("publish", "subscribe") and space and step.get("beside"):
                return {"region": one.of, "space": space}
            return {"region": one}
        return {"regions": made}

    def more(self, step: dict[str, Any]) -> dict[str, Any]:
        """Return the filter, the audience and the properties that a step gives."""
        made = {}
        if "filter" in step:
            made["filter"] = filter_text(step["filter"])
        if "audience" in step:
            made["audience"] = None if step["audience"] is None else sql(step["audience"], self.kind)
        if "properties" in step:
            made["properties"] = step["properties"]
        return made

    def table(self, step: dict[str, Any]) -> pa.Table:
        """Return the rows of a step as a table; a column is plain or a range, and typed as the step says."""
        space = self.model.spaces[step["space"] or next(iter(self.model.spaces))]
        columns: dict[str, Any] = {"key": pa.array([row["key"] for row in step["rows"]])}
        tree: dict[str, Any] = {}
        for field, (shape, number) in step["columns"].items():
            values = [row["of"].get(field) for row in step["rows"]]
            put(tree, field.split("."), column(values, shape, arrow_type(space, field, number)))
        return pa.table({**columns, **{name: flat(each) for name, each in tree.items()}})


def arrow_type(space: SpaceModel, field: str, number: int) -> Any:
    types = space.kinds[space.known(field) or field].arrow()
    return types[number % len(types)]


def column(values: list[Any], shape: str, kind: Any) -> pa.Array:
    """Return a column of points, or of structs that are ranges, or of lists that are sets."""
    if shape == "plain":
        return array(values, kind)
    if shape == "list":
        flat_values = [array([*value], kind) if value is not None else None for value in values]
        return pa.array([each.to_pylist() if each is not None else None for each in flat_values], pa.list_(kind))
    ranges = [Interval(value, value) if value is not None and not is_range(value) else value for value in values]
    ranges = [Interval(*each) if isinstance(each, tuple) else each for each in ranges]
    lows = array([None if each is None else each.low for each in ranges], kind)
    highs = array([None if each is None else each.high for each in ranges], kind)
    closed = pa.array([None if each is None or each.closed == "both" else each.closed for each in ranges], pa.string())
    mask = pa.array([each is None for each in ranges])
    if shape == "pair":
        return pa.StructArray.from_arrays([lows, highs], ["low", "high"], mask=mask)
    return pa.StructArray.from_arrays([lows, highs, closed], ["low", "high", "closed"], mask=mask)


def array(values: list[Any], kind: Any) -> pa.Array:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.array([None if each is None else as_text(each) for each in values], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else value.isoformat() if hasattr(value, "isoformat") else str(value)


def is_range(value: Any) -> bool:
    return isinstance(value, (tuple, Interval))


def put(tree: dict[str, Any], path: list[str], leaf: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = leaf


def flat(each: Any) -> pa.Array:
    """Return a column, or the struct of the columns below it."""
    if not isinstance(each, dict):
        return each
    return pa.StructArray.from_arrays([flat(below) for below in each.values()], list(each))


def named(step: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of an update by name; one that is given without is of the only region there is."""
    changes: dict[str, Any] = step["regions"]
    if step.get("form") != "single":
        return changes
    if len(old) > 1:
        raise Refused("several regions, and none is named")
    return dict(zip(old, changes.values(), strict=True))


def only_region(pub: dict[str, Any]) -> str:
    """Return the name of the one region of a publication that rows of a table may update."""
    filter = pub["filter"]
    filtered = not isinstance(filter, str) and holds(filter, lambda leaf: True) is not True
    if len(pub["regions"]) > 1 or filtered or pub["audience"] is not None:
        raise Refused("several regions, a filter or an audience")
    ((name, extents),) = pub["extents"].items()
    for extent in extents.values():
        for field, value in extent.values.items():
            if isinstance(value, frozenset):
                parts = {str(Extent(extent.space, {field: each}).of(field)) for each in value}
                if len(parts) > 1:
                    raise Refused("a set")
                raise Undocumented("whether a set whose members mean the same is a set")
    return str(name)


def merged(old: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return regions after an update: None takes one away, a new name adds one, a dictionary changes dimensions."""
    regions = {name: dict(region) for name, region in old.items()}
    for name, change in changes.items():
        if change is None:
            regions.pop(name, None)
        elif name in regions and change["space"] not in (None, regions[name]["space"]):
            raise Undocumented("an update that names another space")
        elif name in regions and isinstance(regions[name]["of"], dict) and isinstance(change["of"], dict):
            regions[name] = {"of": {**regions[name]["of"], **change["of"]}, "space": regions[name]["space"]}
        elif name in regions:
            regions[name] = {"of": change["of"], "space": change["space"] or regions[name]["space"]}
        else:
            regions[name] = dict(change)
    return regions


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """Return dotted names as dictionaries in dictionaries."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        put(tree, name.split("."), value)
    return tree


def filter_text(filter: Any) -> str:
    if isinstance(filter, str):
        return filter
    match filter:
        case ["and" | "or", terms]:
            return f" {filter[0].upper()} ".join(f"({filter_text(term)})" for term in terms)
        case ["not", term]:
            return f"NOT ({filter_text(term)})"
    return str(filter[1])


def rows_of(told: Any) -> list[tuple[Any, ...]]:
    table = told.to_arrow()
    columns = [table[name].to_pylist() for name in ("row", "transition", "publication", "subscription")]
    return list(zip(*columns, strict=True))


def show(found: set[Any], expected: set[Any]) -> str:
    more, less = sorted(found - expected, key=repr)[:4], sorted(expected - found, key=repr)[:4]
    return f"too many: {more}, too few: {less}"


def play(history: dict[str, Any]) -> Run:
    """Play a whole history."""
    return Run(history).play()
