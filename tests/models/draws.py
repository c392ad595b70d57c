"""Random values, constants, tests and expressions of every type, from pools that hold the ends and the odd ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

from tests.models.kind import Kind
from tests.models.kinds import Concepts, Days, Hosts, Moments, Truth, Words
from tests.models.logic import Expression
from tests.models.numbers import LEAST, MOST, Double, Long, Whole

INTEGERS = [LEAST, LEAST + 1, -(2**53) - 1, -2, -1, 0, 1, 2, 3, 4, 7, 2**53, 2**53 + 1, MOST - 1, MOST]
DOUBLES = [-math.inf, -1.7976931348623157e308, -1.5, -5e-324, -0.0, 0.0, 5e-324, 0.1, 1.0, 1.5, 2.0, 2.5]
DOUBLES += [9007199254740992.0, 9007199254740994.0, 1.7976931348623157e308, math.inf, math.nan]
TEXTS = ["", "a", "a\0", "a\0\0", "aa", "ab", "abc", "A", "AB", "Ab", "b", "B", "ba", "é", "É", "z", "ß", "ss", "SS"]
TEXTS += ["日本", "😀", "it's", "a b", "k", "\u212a", "a%", "a_", "\\", "\U0010ffff", "s"]
DAYS = [date.min, date(1, 1, 2), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29), date(2024, 12, 31)]
DAYS += [date(2025, 1, 1), date(9999, 12, 30), date.max]
TIMES = [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(2020, 2, 29, 12)]
TIMES += [datetime(2024, 12, 31, 23, 30), datetime(2025, 1, 1), datetime(2025, 1, 1, 0, 0, 0, 1), datetime.max]
HOSTS = ["::", "::1", "0.0.0.0", "10.0.0.0", "10.0.0.1", "10.255.255.255", "192.168.1.1", "255.255.255.255"]
HOSTS += ["::ffff:10.0.0.1", "2001:db8::", "2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::fffe:ffff:ffff"]
NETWORKS = ["10.0.0.0/8", "10.0.0.0/31", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1", "192.168.1.1"]
PATTERNS = ["a%", "%b", "%b%", "a_", "_", "%", "", "A%", "a%b", "é%", "%a", "a\\%", "_b%", "ß%"]


def pool(kind: Kind) -> list[Any]:
    """Return values of a type as they may be given in a publication, ends and odd ones among them."""
    match kind:
        case Whole():
            return INTEGERS
        case Double():
            return DOUBLES
        case Long():
            steps = {kind.most, kind.most - 1, 0, 1, 150, 123, 10**kind.scale, 10 ** (kind.digits // 2) + 1}
            return [kind.of(sign * each) for each in sorted(steps) if each <= kind.most for sign in (1, -1)]
        case Words():
            return [*TEXTS, *kind.synonyms, *kind.synonyms.values()]
        case Truth():
            return [False, True]
        case Days():
            return DAYS
        case Moments():
            return [each.replace(tzinfo=UTC) for each in TIMES] if kind.zoned else TIMES
        case Hosts():
            return HOSTS
        case Concepts():
            return [*kind.tree.parents, *kind.tree.synonyms, *(["plain", "word"] if kind.texts else [])]
    raise TypeError(kind)


class Drawer:
    """Draws what a history consists of; of each dimension only a few values, so that they meet."""

    def __init__(self, random: Random, gaps: frozenset[str] | set[str] = frozenset(), few: int = 6) -> None:
        self.random, self.gaps, self.few = random, gaps, few
        self.pools: dict[str, list[Any]] = {}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def values(self, field: str, kind: Kind) -> list[Any]:
        """Return the few values of a dimension that this history uses."""
        field = f"{field} {kind.name}"
        if field not in self.pools:
            every = pool(kind)
            if "least int64" in self.gaps:
                every = [each for each in every if not (type(each) is int and each <= LEAST + 1)]
            if "domain ends" in self.gaps and kind.ordered and not isinstance(kind, Truth):
                ends = [kind.read(each) for each in every]
                least = [each for each, value in zip(every, ends, strict=True) if value not in kind.ends()]
                every = least or every
            self.pools[field] = self.random.sample(every, min(self.few, len(every)))
        return self.pools[field]

    def value(self, field: str, kind: Kind) -> Any:
        return self.random.choice(self.values(field, kind))

    def constant(self, field: str, kind: Kind) -> Any:
        """Return a constant that may be compared with a field: of its type, or of another that Spark casts."""
        given = self.value(field, kind)
        if isinstance(kind, (Whole, Double, Long)) and self.chance(0.35):
            return self.other_number(given)
        if isinstance(kind, Days) and self.chance(0.15):
            return given.isoformat()
        if isinstance(kind, Moments):
            return self.other_time(given, kind)
        return given

    def other_number(self, given: Any) -> Any:
        """Return a number of another type at or near another number."""
        kind = self.random.randrange(5)
        if kind == 0:
            return float(given)
        if isinstance(given, float) and not math.isfinite(given):
            return given
        if kind == 1:
            exact = Decimal(given) if not isinstance(given, float) else Decimal(repr(given))
            shift = self.random.choice([Decimal("0.5"), Decimal("-0.001"), Decimal(0)])
            moved = exact + shift if abs(exact) < 10**20 else exact
            digits = moved.as_tuple()
            small = len(digits.digits) <= 30 and -30 < int(digits.exponent) <= 0
            return moved if small else given
        if kind == 2 and abs(given) < 2**62:
            return int(given)
        return self.random.choice([given, 0] if "domain ends" in self.gaps else [given, 10**20, -(10**20), 0])

    def other_time(self, given: datetime, kind: Moments) -> Any:
        way = self.random.randrange(6)
        if way == 0 and kind.zoned and given.year not in (1, 9999):
            return given.astimezone(timezone(timedelta(hours=self.random.choice([-5, 2]))))
        if way == 1:
            return given.date()
        if way == 2:
            return given.isoformat(" ")
        return given

    def test(self, field: str, kind: Kind) -> tuple[str | None, list[Any]]:
        """Return a fold and a test of a field."""
        random = self.random
        if self.chance(0.08):
            return None, ["null"]
        if field == "made" and isinstance(kind, Whole):
            return None, self.comparison(lambda: random.choice([1, 1969, 1970, 2020, 2024, 2025, 9999]))
        match kind:
            case Concepts():
                way = random.randrange(4)
                if way < 2:
                    names = [self.value(field, kind) for _ in range(random.randrange(1, 3))]
                    return None, ["is_a", names]
                if way == 2:
                    return None, ["in", [self.value(field, kind) for _ in range(random.randrange(1, 4))]]
                return None, [random.choice(["=", "<>", "<=>"]), self.value(field, kind)]
            case Truth():
                way = random.randrange(4)
                if way == 0:
                    return None, ["truth"]
                if way == 1:
                    return None, ["is", random.choice([True, False])]
                if way == 2:
                    return None, ["in", [random.choice([True, False, None]) for _ in range(random.randrange(1, 4))]]
                return None, [random.choice(["=", "<>", "<=>"]), random.choice([True, False])]
            case Hosts() if self.chance(0.4):
                return None, ["network", [random.choice(NETWORKS) for _ in range(random.choice([1, 1, 2]))]]
            case Words():
                return self.text_test(field, kind)
        return None, self.comparison(lambda: self.constant(field, kind))

    def text_test(self, field: str, kind: Words) -> tuple[str | None, list[Any]]:
        fold = self.random.choice(["lower", "upper"]) if self.chance(0.3) and "folded texts" not in self.gaps else None
        way = self.random.randrange(8)
        if way == 0 and "patterns" not in self.gaps:
            return fold, ["like", self.random.choice(PATTERNS), self.chance(0.3)]
        if way == 1 and "patterns" not in self.gaps:
            text = self.random.choice(["", "a", "b", "A", "é", "ab"])
            return fold, [self.random.choice(["startswith", "endswith", "contains"]), text]
        draw = self.value if fold is None else lambda field, kind: self.random.choice(["a", "AB", "ss", "SS", "k", "é"])
        return fold, self.comparison(lambda: draw(field, kind))

    def comparison(self, draw: Callable[[], Any]) -> list[Any]:
        way = self.random.randrange(10)
        if way == 0:
            return ["between", draw(), draw()]
        if way == 1:
            null = [None] if self.chance(0.2) else []
            return ["in", [draw() for _ in range(self.random.randrange(1, 5))] + null]
        if way == 2:
            return ["<=>", draw() if self.chance(0.8) else None]
        return [self.random.choice(["=", "=", "<>", "<", "<=", ">", ">="]), draw() if self.chance(0.97) else None]

    def expression(self, kinds: Mapping[str, Kind], depth: int = 2) -> Expression:
        """Return an expression over some of these fields."""
        way = self.random.random()
        if depth == 0 or way < 0.3:
            field = self.random.choice(list(kinds))
            fold, test = self.test(field, kinds[field])
            leaf = ["leaf", field, fold, test]
            return ["not", leaf] if self.chance(0.25) else leaf
        if way < 0.4:
            return ["not", self.expression(kinds, depth - 1)]
        terms = [self.expression(kinds, depth - 1) for _ in range(self.random.choice([2, 2, 3]))]
        return ["and" if way < 0.75 else "or", terms]
