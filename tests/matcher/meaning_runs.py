"""Play a history of meaning in `Matcher` and in the model side by side."""

from __future__ import annotations

import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.matcher.meaning_model import MeaningModel
from tests.models.kind import Kind, Misfit
from tests.models.kinds import Hosts, Moments
from tests.models.logic import Expression, constants, leaves, sql
from tests.models.quantities import Measured
from tests.subjects.witness_spaces import Undocumented
from tocsin import Matcher, TocsinError

Answer = tuple[set[Any], set[Any]]


class MeaningRun:
    """A history in progress."""

    def __init__(self, history: dict[str, Any], folder: Path) -> None:
        self.history, self.folder = history, folder
        self.model = MeaningModel(history)
        self.matcher = Matcher(self.model.declare(), engine=history["engine"])
        self.saved = 0
        self.ever: set[str] = set()
        self.counts: Counter[str] = Counter()

    def play(self) -> MeaningRun:
        for step in self.history["steps"]:
            try:
                getattr(self, step["do"])(step)
            except Undocumented:
                return self
            self.counts["steps"] += 1
        return self

    def kind(self, field: str) -> Kind:
        return self.model.kinds[self.model.synonyms.get(field, field)]

    def text(self, expression: Expression) -> str:
        return sql(expression, self.kind)

    def taken(self, expression: Expression) -> bool:
        """Return whether the constants of a subscription are taken: its quantities fit, its terms are known."""
        for _, field, _, test in leaves(expression):
            kind = self.kind(field)
            try:
                for constant in constants(test):
                    kind.constant(constant)
                for name in test[1] if test[0] == "is_a" else ():
                    kind.read(name)
            except Misfit:
                if test[0] == "in" and None in test[1]:
                    raise Undocumented("a constant that does not fit beside NULL, where nothing is compared") from None
                return False
        return True

    # Steps

    def subscribe(self, step: dict[str, Any]) -> None:
        text = self.text(step["expression"])
        taken = self.taken(step["expression"])
        self.ever |= self.model.tested(step["expression"])
        try:
            self.matcher.subscribe(step["id"], text)
        except TocsinError as error:
            assert not taken, f"refused: {text}: {type(error).__name__}: {error}"
            self.counts["refused"] += 1
            return
        if not taken:  # what can never match is not read further
            assert step["id"] in self.matcher.never(), f"accepted, though a constant does not fit: {text}"
            self.matcher.unsubscribe(step["id"])
            return
        self.model.subscriptions[step["id"]] = step["expression"]

    def subscribe_many(self, step: dict[str, Any]) -> None:
        rows = [row for row in step["rows"] if self.taken(row["of"])]
        texts = [self.text(row["of"]) for row in rows]
        table = pa.table(
            {"id": pa.array([row["id"] for row in rows], pa.int64()), "expression": pa.array(texts, pa.string())}
        )
        self.matcher.subscribe_many(table)
        self.model.subscriptions |= {row["id"]: row["of"] for row in rows}
        self.ever |= {name for row in rows for name in self.model.tested(row["of"])}

    def unsubscribe(self, step: dict[str, Any]) -> None:
        if self.model.subscriptions.pop(step["id"], None) is not None:
            self.matcher.unsubscribe(step["id"])

    def grow(self, step: dict[str, Any]) -> None:
        tree = self.model.trees[self.model.tree_of[step["field"]]]
        if any(tree.meaning(above) not in tree.parents for above in step["additions"]):
            raise Undocumented("growth below what an earlier step added")
        roots = {name for name, above in tree.parents.items() if not above}
        if any(tree.meaning(name) in roots for names in step["additions"].values() for name in names):
            raise Undocumented("a root below another")
        known = {*tree.parents, *(name for names in step["additions"].values() for name in names)}
        if any(name not in known for name in step["synonyms"].values()):
            raise Undocumented("a synonym of what an earlier step added")
        self.matcher.grow(step["field"], step["additions"], synonyms=step["synonyms"] or None)
        tree.grow(step["additions"], step["synonyms"])

    def reload(self, step: dict[str, Any]) -> None:
        self.saved += 1
        path = self.folder / str(self.saved)
        self.matcher.save(path)
        self.matcher = Matcher.load(path)

    def match(self, step: dict[str, Any]) -> None:
        """Match events one by one, as a table, and one of them as a table of its own."""
        expected = [self.model.answer(event) for event in step["events"]]
        never = set(self.matcher.never()) if any(spoilt for _, spoilt in expected) else set()
        expected = [(found, spoilt - never) for found, spoilt in expected]
        for event, answer in zip(step["events"], expected, strict=True):
            self.same(self.single(event), answer, event, "a dictionary")
        table = self.table(step)
        if table is None:
            return
        for event, found, answer in zip(step["events"], self.batch(table), expected, strict=True):
            self.same(found, answer, event, f"a row of a table with {table.schema}")
        row = step["types"] % len(expected)
        self.same(self.batch(table.slice(row, 1))[0], expected[row], step["events"][row], "a table of one row")
        self.counts["answers"] += (2 * len(expected) + 1) * len(self.model.subscriptions)

    def same(
        self, found: set[Any] | None, expected: tuple[set[Any], set[Any]], event: dict[str, Any], form: str
    ) -> None:
        """Compare an answer; an event whose misfits no subscription looks at, or has looked at, may be taken."""
        self.counts["events"] += 1
        answer, spoilt = expected
        if found is None:
            wrong = self.model.read(event)[1]
            assert self.ever & wrong.keys(), f"{form}: {event} is refused: {self.why(event)}"
            self.counts["bad"] += 1
            return
        assert not spoilt, f"{form}: {event} is taken, though {self.model.read(event)[1]}: {self.texts(spoilt)}"
        if found != answer:
            wrong_ids = found ^ answer
            kinds = {id: "too much" if id in found else "missing" for id in wrong_ids}
            raise AssertionError(f"{form}: {event}: {kinds}: {self.texts(wrong_ids)}")

    def texts(self, ids: set[Any]) -> dict[Any, str]:
        return {id: self.text(self.model.subscriptions[id]) for id in sorted(ids)[:3]}

    def why(self, event: dict[str, Any]) -> str:
        try:
            self.matcher.match(event)
        except TocsinError as error:
            return f"{type(error).__name__}: {error}"
        return "only in a table"

    def single(self, event: dict[str, Any]) -> set[Any] | None:
        try:
            found = self.matcher.match(event)
        except TocsinError:
            return None
        assert len(set(found)) == len(found), "an id was given twice"
        return set(found)

    def batch(self, table: pa.Table) -> list[set[Any] | None]:
        problems: list[Any] = []
        pairs = self.matcher.match_batch(table, missing="unspecified", problems=problems)
        found: list[set[Any] | None] = [set() for _ in range(table.num_rows)]
        for event, id in zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
            answer = found[event]
            assert answer is not None and id not in answer, "a pair was given twice"
            answer.add(id)
        for problem in problems:
            assert not found[problem.row], "a bad row has matches"
            found[problem.row] = None
        return found

    def table(self, step: dict[str, Any]) -> pa.Table | None:
        """Return the events as columns, typed by the step; None where they have no common type."""
        names = dict.fromkeys(name for event in step["events"] for name in event)
        if step.get("whole"):  # a column for every field that a formula may read
            said = {self.model.synonyms.get(name, name) for name in names}
            formulas = self.model.formulas
            names |= dict.fromkeys(name for name in self.model.kinds if name not in said and name not in formulas)
        columns: dict[str, pa.Array] = {}
        for name in names:
            values = [event.get(name) for event in step["events"]]
            columns[name] = self.column(name, values, step)
        return pa.table(columns) if columns else None

    def column(self, name: str, values: list[Any], step: dict[str, Any]) -> pa.Array:
        field = self.model.synonyms.get(name, name)
        if field not in self.model.kinds:
            return pa.array(values, pa.string())
        kind = self.model.kinds[field]
        if isinstance(kind, Measured):
            form = step["forms"].get(field, "number")
            if form == "text":
                return pa.array(values, [pa.string(), pa.large_string()][step["types"] % 2])
            inner = kind.arrow()[0]
            if form == "struct":
                values = [each and {**each, "value": number(each["value"], inner)} for each in values]
                return pa.array(values, pa.struct({"value": inner, "unit": pa.string()}))
            return pa.array([number(each, inner) for each in values], inner)
        types = [
            each for each in kind.arrow() if not pa.types.is_string_view(each) and not pa.types.is_dictionary(each)
        ]
        chosen = types[step["types"] % len(types)]
        if field in self.model.repeated or field in self.model.attributes:
            lists = [each if each is None or isinstance(each, list) else [each] for each in values]
            return pa.array(
                [each and [written(one, kind, types[0]) for one in each] for each in lists], pa.list_(types[0])
            )
        return pa.array([written(each, kind, chosen) for each in values], chosen)


def number(value: Any, kind: Any) -> Any:
    """Return a number that a column of decimals takes: as it prints."""
    return Decimal(repr(value)) if isinstance(value, float) and pa.types.is_decimal(kind) else value


def written(value: Any, kind: Kind, arrow: Any) -> Any:
    """Return a value as a column holds it."""
    if value is None:
        return None
    if isinstance(kind, Hosts):
        return str(value)
    if (pa.types.is_string(arrow) or pa.types.is_large_string(arrow)) and hasattr(value, "isoformat"):
        return value.isoformat(" ") if isinstance(kind, Moments) else value.isoformat()
    return number(value, arrow)


def play(history: dict[str, Any]) -> MeaningRun:
    """Play a whole history."""
    with tempfile.TemporaryDirectory() as folder:
        return MeaningRun(history, Path(folder)).play()
