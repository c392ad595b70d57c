"""Expressions as nested lists, their Spark SQL, and their truth in SQL's three-valued logic.

``["and", [...]]``, ``["or", [...]]``, ``["not", one]``, ``["fixed", truth]`` and ``["leaf", field, fold, test]``, where
a test is one of ``["=", constant]`` (or ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``<=>``), ``["between", low, high]``,
``["in", constants]``, ``["null"]``, ``["like", pattern, case_blind]``, ``["startswith", text]`` (``endswith``,
``contains``), ``["truth"]``, ``["is", truth]``, ``["is_a", names]`` and ``["network", text]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from tests.models.kind import Kind, literal
from tests.models.kinds import Concepts, folded, network
from tests.models.numbers import to_double

Truth3 = bool | None
Expression = list[Any]

SIGNS: dict[str, Callable[[int], bool]] = {
    "=": lambda found: found == 0,
    "<>": lambda found: found != 0,
    "<": lambda found: found < 0,
    "<=": lambda found: found <= 0,
    ">": lambda found: found > 0,
    ">=": lambda found: found >= 0,
}


def all3(truths: list[Truth3]) -> Truth3:
    return False if False in truths else None if None in truths else True


def any3(truths: list[Truth3]) -> Truth3:
    return True if True in truths else None if None in truths else False


def holds(expression: Expression, leaf: Callable[[Expression], Truth3]) -> Truth3:
    """Return the truth of an expression, given that of its leaves."""
    match expression:
        case ["and", terms]:
            return all3([holds(term, leaf) for term in terms])
        case ["or", terms]:
            return any3([holds(term, leaf) for term in terms])
        case ["not", term]:
            truth = holds(term, leaf)
            return None if truth is None else not truth
        case ["fixed", truth]:
            return truth
    return leaf(expression)


def leaves(expression: Expression) -> Iterator[Expression]:
    """Yield the leaves from left to right."""
    match expression:
        case ["and" | "or", terms]:
            for term in terms:
                yield from leaves(term)
        case ["not", term]:
            yield from leaves(term)
        case ["leaf", *_]:
            yield expression


def fits(kind: Kind, fold: str | None, test: list[Any], value: Any) -> Truth3:
    """Return the truth of one test of one value, which has been read; None is NULL."""
    if test[0] == "null":
        return value is None
    if test[0] == "is":
        return value is test[1]
    if test[0] == "<=>":
        if value is None or test[1] is None:
            return value is None and test[1] is None
        return fits(kind, fold, ["=", test[1]], value)
    if value is None:
        return None
    if fold:
        value = folded(value, fold)
    match test:
        case [("=" | "<>" | "<" | "<=" | ">" | ">=") as sign, constant]:
            return compared(kind, sign, value, constant)
        case ["between", low, high]:
            return all3([compared(kind, ">=", value, low), compared(kind, "<=", value, high)])
        case ["in", constants]:
            if any(isinstance(each, float) for each in constants):
                constants = [each if each is None else to_double(each) for each in constants]
            return any3([compared(kind, "=", value, each) for each in constants])
        case ["truth"]:
            return bool(value)
        case ["like", pattern, case_blind]:
            return like(value.lower(), pattern.lower()) if case_blind else like(value, pattern)
        case ["startswith", text]:
            return bool(value.startswith(text))
        case ["endswith", text]:
            return bool(value.endswith(text))
        case ["contains", text]:
            return text in value
        case ["is_a", names]:
            assert isinstance(kind, Concepts)
            return any(kind.tree.is_a(value, kind.tree.meaning(name)) for name in names)
        case ["network", texts]:
            return any(low <= value <= high for low, high in map(network, texts))
    raise TypeError(test)


def compared(kind: Kind, sign: str, value: Any, constant: Any) -> Truth3:
    if constant is None:
        return None
    return SIGNS[sign](kind.compare(value, kind.constant(constant)))


@lru_cache(maxsize=100_000)
def like(text: str, pattern: str) -> bool:
    """Return whether a text has the shape of a LIKE pattern; a backslash takes the next character as it is."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(like(text[start:], rest) for start in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
        return text[:1] == first and like(text[1:], rest)
    return text != "" and first in ("_", text[0]) and like(text[1:], rest)


def sql(expression: Expression, kinds: Callable[[str], Kind]) -> str:
    """Return an expression as Spark SQL; everything below NOT, AND and OR is in parentheses."""
    match expression:
        case ["and" | "or", terms]:
            return f" {expression[0].upper()} ".join(f"({sql(term, kinds)})" for term in terms)
        case ["not", term]:
            return f"NOT ({sql(term, kinds)})"
        case ["fixed", truth]:
            return literal(truth)
        case ["leaf", field, fold, test]:
            return test_sql(quoted(field) if fold is None else f"{fold}({quoted(field)})", test, kinds(field))
    raise TypeError(expression)


def quoted(field: str) -> str:
    return ".".join(part if part.isidentifier() and part.isascii() else f"`{part}`" for part in field.split("."))


def test_sql(field: str, test: list[Any], kind: Kind) -> str:
    match test:
        case [("=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>") as sign, constant]:
            return f"{field} {sign} {kind.sql(constant)}"
        case ["between", low, high]:
            return f"{field} BETWEEN {kind.sql(low)} AND {kind.sql(high)}"
        case ["in", constants]:
            return f"{field} IN ({', '.join(kind.sql(each) for each in constants)})"
        case ["null"]:
            return f"{field} IS NULL"
        case ["is", truth]:
            return f"{field} IS {literal(truth)}"
        case ["truth"]:
            return field
        case ["like", pattern, case_blind]:
            return f"{field} {'ILIKE' if case_blind else 'LIKE'} {literal(pattern)}"
        case [("startswith" | "endswith" | "contains") as name, text]:
            return f"{name}({field}, {literal(text)})"
        case ["is_a", names]:
            return f"is_a({field}, {', '.join(literal(name) for name in names)})"
        case ["network", texts]:
            if len(texts) == 1:
                return f"in_network({field}, {literal(texts[0])})"
            return f"{field} IN ({', '.join(literal(text) for text in texts)})"
    raise TypeError(test)


test_sql.__test__ = False  # type: ignore[attr-defined]


def constants(test: list[Any]) -> list[Any]:
    """Return the constants that a test compares with, without NULL and patterns."""
    match test:
        case ["=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>", constant]:
            found = [constant]
        case ["between", low, high]:
            found = [low, high]
        case ["in", several]:
            found = list(several)
            if any(isinstance(each, float) for each in several):
                found += [to_double(each) for each in several if each is not None]
        case ["is_a", names]:
            found = list(names)
        case _:
            return []
    return [each for each in found if each is not None]


def pattern_free(fold: str | None, test: list[Any]) -> bool:
    """Return whether a test says nothing that takes more than a beginning or an end of a text to decide."""
    match test:
        case ["like", pattern, case_blind]:
            if case_blind and fold:
                return False
            inner = pattern.replace("\\%", "").replace("\\_", "")
            return "_" not in inner and inner.count("%") <= 1 and (inner[:1] == "%" or "%" not in inner[:-1])
        case ["contains", _]:
            return False
    return True
