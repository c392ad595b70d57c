"""Transitions by their definition: registers in dictionaries, every pair evaluated again after every update."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Value = Any
Row = dict[str, Value]
Turn = tuple[Value, Value, Value, str]
"""Key, order of the cause (None: subscriptions changed), subscription, enter or leave."""

COLUMNS = ("x", "y", "s")
UPDATES = "truck string, at bigint, x bigint, y double, s string, gone boolean, clear array<string>"


class Rule(NamedTuple):
    """An expression, and what it is in Python: True, False, or None where SQL says NULL."""

    text: str
    holds: Callable[[Row], bool | None]


def rules(pick: random.Random) -> Rule:
    """Return a random expression over x (whole), y (double), s (text) and the key."""
    low, high = sorted((pick.randint(-3, 5), pick.randint(-3, 5)))
    word = pick.choice(["a", "b", "é", ""])
    leaves = [
        Rule(f"x BETWEEN {low} AND {high}", lambda r: None if r["x"] is None else low <= r["x"] <= high),
        Rule(f"x <> {low}", lambda r: None if r["x"] is None else r["x"] != low),
        Rule(f"y < {high + 0.5}", lambda r: None if r["y"] is None else r["y"] < high + 0.5),
        Rule("y IS NULL", lambda r: r["y"] is None),
        Rule("x IS NOT NULL", lambda r: r["x"] is not None),
        Rule(f"s = '{word}'", lambda r: None if r["s"] is None else r["s"] == word),
        Rule("s LIKE '%a%'", lambda r: None if r["s"] is None else "a" in r["s"]),
        Rule(f"truck < 'k{low + 3}'", lambda r: r["truck"] < f"k{low + 3}"),
    ]
    left, right = pick.sample(leaves, 2)
    kind = pick.choice(["one", "and", "or", "not"])
    if kind == "and":
        return Rule(f"{left.text} AND {right.text}", lambda r: _and(left.holds(r), right.holds(r)))
    if kind == "or":
        return Rule(f"({left.text}) OR ({right.text})", lambda r: _not(_and(_not(left.holds(r)), _not(right.holds(r)))))
    if kind == "not":
        return Rule(f"NOT ({left.text})", lambda r: _not(left.holds(r)))
    return left


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


class Oracle:
    """Publications and subscriptions, changed one at a time; every change returns its transitions."""

    def __init__(self, partial: bool) -> None:
        self.partial = partial
        self.registers: dict[str, dict[str, tuple[int, Value]]] = {}
        self.subscriptions: dict[Any, Rule] = {}
        self.ignored = 0

    def matches(self, key: str) -> set[Any]:
        registers = self.registers.get(key, {})
        if not registers.get("exists", (0, False))[1]:
            return set()
        row = {name: registers[name][1] if name in registers else None for name in COLUMNS} | {"truck": key}
        return {id for id, rule in self.subscriptions.items() if rule.holds(row)}

    def subscribe(self, changes: dict[Any, Rule | None]) -> list[Turn]:
        before = {key: self.matches(key) for key in self.registers}
        for id, rule in changes.items():
            if rule is None:
                self.subscriptions.pop(id, None)
            else:
                self.subscriptions[id] = rule
        return [turn for key, old in before.items() for turn in self._turns(key, None, old)]

    def batch(self, rows: Iterable[Row]) -> list[Turn]:
        """Apply rows of one batch: those of a key by order, and by ``tie`` where that is the same."""
        found = []
        for row in sorted(rows, key=lambda row: (row["at"], row.get("tie", 0))):
            old = self.matches(row["truck"])
            self._apply(row)
            found += self._turns(row["truck"], row["at"], old)
        return found

    def _apply(self, row: Row) -> None:
        registers = self.registers.setdefault(row["truck"], {})
        cleared = (row.get("clear") or []) if self.partial else []
        wanted: dict[str, Value] = {"exists": not row.get("gone")}
        for name in COLUMNS:
            value = None if row.get("gone") or name in cleared else row[name]
            if not self.partial or row.get("gone") or name in cleared or value is not None:
                wanted[name] = value
        newer = {
            name: (row["at"], value)
            for name, value in wanted.items()
            if name not in registers or row["at"] > registers[name][0]
        }
        self.ignored += not newer
        registers.update(newer)

    def _turns(self, key: str, order: int | None, old: set[Any]) -> list[Turn]:
        new = self.matches(key)
        return [(key, order, id, "leave") for id in old - new] + [(key, order, id, "enter") for id in new - old]


def random_rows(pick: random.Random, count: int, late: bool, ties: bool) -> list[Row]:
    """Return updates of a few keys, NULLs, clears and deletions among them; some late, some of an order seen before."""
    rows: list[Row] = []
    for number in range(count):
        at = number + 1
        if late and pick.random() < 0.3:
            at = max(1, at - pick.randint(1, 12))
        row: Row = {
            "truck": f"k{pick.randint(0, 6)}",
            "at": at,
            "x": pick.choice([None, *range(-3, 6)]),
            "y": pick.choice([None, -0.0, 0.5, 1.5, 3.25, float("inf")]),
            "s": pick.choice([None, "a", "b", "é", ""]),
            "gone": pick.choice([None, False, False, False, True]),
            "clear": pick.choice([None, None, [], ["x"], ["y", "s"]]),
            "tie": pick.getrandbits(62),
        }
        rows.append(row)
        if pick.random() < 0.15:
            again = dict(pick.choice(rows))
            rows.append(again if not ties else again | {"x": pick.randint(-3, 5), "tie": pick.getrandbits(62)})
    if not ties:  # one order of one key has one content
        firsts: dict[tuple[str, int], Row] = {}
        rows = [firsts.setdefault((row["truck"], row["at"]), row) for row in rows]
    return rows
