"""Random spaces with meaning, and histories of subscriptions, events, growth and saved matchers over them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from tests.matcher.meaning_model import MeaningModel
from tests.models.draws import Drawer
from tests.models.formulas import LENIENT, STRICT
from tests.models.kind import Kind
from tests.models.kinds import Days, Moments, Words
from tests.models.numbers import Double, Long, Whole
from tests.models.quantities import SIGNS, UNITS, Measured

KNOWN_GAPS: frozenset[str] = frozenset()
"""What the histories leave out because it is known not to hold; each name is looked for where it is drawn."""

ENGINES = ["adaptive", "bitmap", "bounds", "counting", "dynamic", "propagation", "scan", "static"]
GOODS: dict[str, list[str]] = {
    "product": [],
    "computer": ["product"],
    "portable": ["computer"],
    "laptop": ["portable"],
    "tablet": ["portable", "gift"],
    "phone": ["product"],
    "gift": ["product"],
    "service": [],
}
WORDS = {"notebook": "laptop", "笔记本": "laptop", "mobile": "phone"}
RATES = [["EUR", "1.08", "2026-01-01"], ["EUR", "1.10", "2026-07-01"], ["GBP", "1.27"], ["JPY", "0.0067", "2025-01-01"]]
DAYS = [date(2025, 12, 31), date(2026, 1, 1), date(2026, 6, 30), date(2026, 7, 1), date(2026, 11, 16)]
MOMENTS = [datetime(2026, 6, 30, 23, 30), datetime(2026, 7, 1), datetime(2026, 3, 1, 12), datetime(2026, 6, 30, 22, 30)]
MOMENTS += [datetime(2025, 12, 31, 23, 59, 59, 999999)]
AMOUNTS = [Decimal(text) for text in ("0", "1", "2.5", "40", "100", "-3", "0.01", "400", "1000", "0.1", "370.37")]
AMOUNTS += [Decimal(1024)]
NUMBERS = [["double"], ["int64"], ["decimal", 10, 2], ["decimal", 38, 10], ["decimal", 20, 2]]


class Meanings(Drawer):
    """Draws one history."""

    def __init__(self, random: Random, gaps: frozenset[str] = KNOWN_GAPS, only: frozenset[str] | None = None) -> None:
        super().__init__(random, gaps, few=8)
        self.only = only
        self.ids = 0
        self.subscriptions: list[Any] = []
        self.grown = 0

    def wants(self, part: str, share: float) -> bool:
        """Return whether a history has some part of meaning."""
        if part in self.gaps:
            return False
        return part in self.only if self.only is not None else self.chance(share)

    def history(self, steps: int) -> dict[str, Any]:
        spec = self.space()
        self.model = MeaningModel({"space": spec})
        engine = "adaptive" if self.chance(0.4) else self.random.choice(ENGINES)
        made = [self.subscribe_many(3), *(self.step() for _ in range(steps)), self.match()]
        return {"space": spec, "engine": engine, "steps": made}

    def space(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"trees": {}, "dimensions": {}, "attributes": {}, "synonyms": {}}
        spec["timezone"] = (
            "UTC" if "zones" in self.gaps else self.random.choice(["UTC", "UTC", "Europe/Paris", "America/New_York"])
        )
        spec["money"] = {"base": "USD", "rates": RATES, "names": {"G": "GB", "euro": "EUR"}}
        dimensions = spec["dimensions"]
        if self.wants("concepts", 0.5):
            self.concepts(spec)
        if self.wants("units", 0.5):
            self.units(dimensions)
        if self.wants("texts", 0.4):
            dimensions["country"] = ["text", {"US": "United States", "USA": "United States", "a": "ab"}]
        if self.wants("attributes", 0.35):
            inner: list[Any] = self.random.choice([["text", {}], ["text", {"US": "ab"}], ["int64"], ["double"]])
            if "NaN below an attribute" in self.gaps and inner == ["double"]:
                inner = ["int64"]
            dimensions |= {"email": inner, "cellphone": inner}
            spec["attributes"] = {"contact": ["email", "cellphone"]}
            if self.chance(0.3):
                dimensions["work"] = inner
                spec["attributes"]["email"] = ["work"]
                del dimensions["email"]
        if self.wants("derived", 0.4):
            self.derived(spec)
        if self.wants("repeated", 0.25):
            dimensions["tags"] = [
                "repeated",
                self.random.choice([["text", {"US": "ab"}], ["int64"], ["decimal", 38, 10]]),
            ]
            if spec["trees"] and self.chance(0.5):
                dimensions["kinds"] = ["repeated", ["in tree", "goods", dimensions["target"][2]]]
        if self.wants("field synonyms", 0.3) and dimensions:
            free = [name for name in dimensions if dimensions[name][0] != "measured"]
            chosen = free if "quantities under a synonym" in self.gaps else list(dimensions)
            spec["synonyms"] = {"alias": self.random.choice(chosen)} if chosen else {}
        if not dimensions or self.chance(0.3):
            dimensions["plain"] = self.random.choice([["int64"], ["decimal", 38, 10], ["text", {}], ["address"]])
        return spec

    def concepts(self, spec: dict[str, Any]) -> None:
        texts = self.chance(0.4) and "plain words" not in self.gaps
        spec["trees"] = {"goods": [GOODS, WORDS]}
        spec["dimensions"]["target"] = ["in tree", "goods", texts]
        if self.chance(0.3):
            spec["dimensions"]["other"] = ["in tree", "goods", texts]

    def units(self, dimensions: dict[str, Any]) -> None:
        numbers = NUMBERS[:3] if "long decimals" in self.gaps else NUMBERS
        if self.chance(0.7):
            beside: dict[str, str] = {}
            if self.chance(0.4):
                beside["unit_field"] = "currency"
            if self.chance(0.4) and "rates by day" not in self.gaps:
                beside["at"] = "seen"
                dimensions["seen"] = self.random.choice([["timestamp"], ["date"], ["timestamp_ntz"]])
            dimensions["price"] = ["measured", self.random.choice(numbers), self.random.choice(["USD", "EUR"]), beside]
        if self.chance(0.6) or "price" not in dimensions:
            unit = self.random.choice(list(UNITS))
            dimensions["size"] = ["measured", self.random.choice(numbers), unit, {}]

    def derived(self, spec: dict[str, Any]) -> None:
        formulas = STRICT | LENIENT
        every = {"n": ["int64"], "m": ["int64"], "d": ["double"], "c": ["decimal", 10, 2], "day": ["date"]}
        every |= {"t": ["text", {}], "u": ["text", {}]}
        names = [name for name in formulas if f"formula {name}" not in self.gaps]
        for place in range(self.random.choice([1, 1, 2])):
            name = self.random.choice(names)
            fields, _, kind = formulas[name]
            spec["dimensions"] |= {field: every[field] for field in fields}
            spec["dimensions"][f"made{place}"] = ["derived", name, kind]
            if kind == ["int64"] and self.chance(0.2) and "derived below an attribute" not in self.gaps:
                spec["attributes"].setdefault("score", []).append(f"made{place}")

    # Values

    def given(self, field: str, kind: Kind) -> Any:
        """Return a value of an event."""
        match kind:
            case Days():
                return self.random.choice(DAYS)
            case Moments():
                moment = self.random.choice(MOMENTS)
                return moment.replace(tzinfo=UTC) if kind.zoned else moment
            case Measured():
                return self.amount(kind)
        if field in ("n", "m"):
            return self.random.choice([0, 1, 2, 3, -7, 5, 2026, 2**62, 2**63 - 1])
        if field == "d":
            return self.random.choice([0.0, 1.0, 0.5, -2.5, 1.5, 1e300, 7.0])
        return self.value(field, kind)

    def amount(self, kind: Measured) -> Any:
        number = self.random.choice(AMOUNTS)
        return self.typed(number, kind.base)

    def typed(self, number: Decimal, base: Kind) -> Any:
        """Return a number in a type that its dimension takes."""
        match base:
            case Double():
                return float(number)
            case Whole():
                return int(number)
            case Long():
                return number if self.chance(0.7) else float(number)
        raise TypeError(base)

    def unit(self, kind: Measured) -> str:
        money = self.model.money
        if money.is_money(kind.unit):
            return self.random.choice(["USD", "EUR", "GBP", "euro", "€", "$", "JPY", "USD"])
        same = [name for name, each in UNITS.items() if each[0] == UNITS[kind.unit][0]]
        return self.random.choice([*same, *(["G"] if kind.unit == "GB" else [])]) if self.chance(0.95) else "lb"

    def quantity(self, kind: Measured) -> str:
        number, unit = self.random.choice(AMOUNTS), self.unit(kind)
        return f"{unit}{number}" if unit in SIGNS else f"{number} {unit}"

    def constant(self, field: str, kind: Kind) -> Any:
        if isinstance(kind, Measured):
            if self.chance(0.5):
                return ("quantity", self.quantity(kind))
            return self.typed(self.random.choice(AMOUNTS), kind.base)
        if isinstance(kind, (Days, Moments)) or field in ("n", "m", "d") or field.startswith("made"):
            return self.made_constant(field, kind)
        return super().constant(field, kind)

    def made_constant(self, field: str, kind: Kind) -> Any:
        match kind:
            case Words():
                return self.random.choice(["a", "ab", "SS", "none", "a-b", "ab2026", "b1.50", "É", "ss", ""])
            case Whole():
                return self.random.choice([0, 1, 2, 3, 4, 5, 6, -1, 2026, 2020, 2027, 6 * 365, -5])
            case Long():
                return self.random.choice([Decimal("1.00"), Decimal("2.5"), 0, 1, Decimal("100.98")])
            case Double():
                return self.random.choice([0.0, 0.5, 1.0, 2.0, 3, 14.0])
        return self.given(field, kind)

    def test(self, field: str, kind: Kind) -> tuple[str | None, list[Any]]:
        if isinstance(kind, Measured):
            test = self.comparison(lambda: self.constant(field, kind))
            if test[0] == "in":
                kept = [each for each in test[1] if not isinstance(each, float)] or [("quantity", self.quantity(kind))]
                return None, ["in", kept]
            return None, test
        fold, test = super().test(field, kind)
        name = self.model.synonyms.get(field, field)
        if test[0] in ("<=>", "is") and (name in self.model.repeated or name in self.model.attributes):
            return fold, ["null"]
        return fold, test

    def text_test(self, field: str, kind: Words) -> tuple[str | None, list[Any]]:
        fold, test = super().text_test(field, kind)
        if kind.synonyms and fold:
            return None, test
        return fold, test

    # Steps

    def step(self) -> dict[str, Any]:
        weights = {"subscribe": 3.0, "subscribe_many": 1, "unsubscribe": 1, "match": 4, "grow": 1.5, "reload": 0.7}
        if not self.model.trees or "growth" in self.gaps:
            del weights["grow"]
        if "saving" in self.gaps:
            del weights["reload"]
        kind = self.random.choices(list(weights), list(weights.values()))[0]
        if kind == "unsubscribe" and not self.subscriptions:
            kind = "subscribe"
        made: dict[str, Any] = getattr(self, kind)()
        return made

    def fields(self) -> Mapping[str, Kind]:
        names = [name for name in self.model.kinds if name != "currency"]
        return {name: self.model.kinds[self.model.synonyms.get(name, name)] for name in [*names, *self.model.synonyms]}

    def subscribe(self) -> dict[str, Any]:
        self.ids += 1
        self.subscriptions.append(self.ids)
        return {"do": "subscribe", "id": self.ids, "expression": self.expression(self.fields())}

    def subscribe_many(self, least: int = 1) -> dict[str, Any]:
        rows = []
        for _ in range(self.random.randrange(least, least + 4)):
            self.ids += 1
            self.subscriptions.append(self.ids)
            rows.append({"id": self.ids, "of": self.expression(self.fields())})
        return {"do": "subscribe_many", "rows": rows}

    def unsubscribe(self) -> dict[str, Any]:
        id = self.random.choice(self.subscriptions)
        self.subscriptions.remove(id)
        return {"do": "unsubscribe", "id": id}

    def reload(self) -> dict[str, Any]:
        return {"do": "reload"}

    def grow(self) -> dict[str, Any]:
        """New names below others, further parents, words that become concepts, further synonyms."""
        tree = self.model.trees["goods"]
        field = self.random.choice(list(self.model.tree_of))
        additions: dict[str, list[str]] = {}
        synonyms: dict[str, str] = {}
        way = self.random.randrange(4)
        above = self.random.choice(list(tree.parents))
        if way < 2:
            self.grown += 1
            name = f"new{self.grown}" if self.chance(0.7) or "word" in tree.parents else "word"
            additions = {above: [name]}
            if self.chance(0.3):
                synonyms = {f"word{self.grown}": name}
        elif way == 2:
            name = self.random.choice(list(tree.parents))
            if tree.is_a(above, name) or above in tree.parents[name] or not tree.parents[name]:
                self.grown += 1
                name = f"new{self.grown}"
            additions = {above: [name]}
        else:
            self.grown += 1
            synonyms = {f"synonym{self.grown}": above}
        tree.grow(additions, synonyms)
        self.pools = {}
        return {"do": "grow", "field": field, "additions": additions, "synonyms": synonyms}

    def match(self) -> dict[str, Any]:
        """Events of one shape, which are matched one by one and as a table."""
        forms = {}
        for name, kind in self.model.kinds.items():
            if isinstance(kind, Measured):
                forms[name] = self.random.choice(["number", "text", "struct"])
        rows = [self.event(forms) for _ in range(self.random.randrange(2, 7))]
        types = self.random.randrange(12)
        step = {"do": "match", "forms": forms, "events": rows, "types": types}
        return {**step, "whole": True} if "missing columns" in self.gaps else step

    def event(self, forms: dict[str, str]) -> dict[str, Any]:
        model = self.model
        event: dict[str, Any] = {}
        for name, kind in model.kinds.items():
            if name in model.formulas or self.chance(0.15):
                continue
            key = next((alias for alias, field in model.synonyms.items() if field == name and self.chance(0.5)), name)
            if self.chance(0.07):
                event[key] = None
            elif name in model.repeated:
                event[key] = [self.given(name, kind) for _ in range(self.random.randrange(3))]
                if self.chance(0.1):
                    event[key].append(None)
            elif name in model.attributes:
                if self.chance(0.3) and "parents given" not in self.gaps:
                    event[key] = [self.given(name, kind) for _ in range(self.random.randrange(1, 3))]
            elif isinstance(kind, Measured):
                self.measured(event, key, kind, forms[name])
            else:
                event[key] = self.given(name, kind)
        return event

    def measured(self, event: dict[str, Any], key: str, kind: Measured, form: str) -> None:
        if form == "text":
            event[key] = self.quantity(kind)
        elif form == "struct":
            event[key] = {"value": self.amount(kind), "unit": self.unit(kind)}
        else:
            event[key] = self.amount(kind)
            if "unit_field" in kind.beside and self.chance(0.7):
                event[kind.beside["unit_field"]] = self.unit(kind)
