"""Formulas: how a derived field is computed from others. A small part of Spark SQL, parsed by sqlglot.

Numbers, texts, fields, ``+ - * / % div ||``, and the functions in `FUNCTIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tocsin.language.tree import Constant, Field

FUNCTIONS: dict[str, tuple[int, int]] = {
    "now": (0, 0),
    "current_timestamp": (0, 0),
    "current_date": (0, 0),
    "year": (1, 1),
    "month": (1, 1),
    "day": (1, 1),
    "hour": (1, 1),
    "minute": (1, 1),
    "datediff": (2, 2),
    "abs": (1, 1),
    "round": (1, 1),
    "floor": (1, 1),
    "ceil": (1, 1),
    "length": (1, 1),
    "lower": (1, 1),
    "upper": (1, 1),
    "trim": (1, 1),
    "concat": (1, 99),
    "coalesce": (1, 99),
    "least": (2, 99),
    "greatest": (2, 99),
}
"""The functions of formulas, with the least and the most arguments that each takes."""


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or sign applied to formulas."""

    function: str
    arguments: tuple[Formula, ...]


Formula: TypeAlias = "Apply | Field | Constant"


def parse_formula(text: str) -> Formula:
    """Return the tree of a formula.

    >>> parse_formula("year(now()) - graduation_year").function
    '-'
    """
    from tocsin.language.formula_sql import translated_formula

    return translated_formula(text)


def fields_of(formula: Formula) -> list[Field]:
    """Return the fields that a formula reads, each once.

    >>> [field.name for field in fields_of(parse_formula("a + b.c * a"))]
    ['a', 'b.c']
    """
    if isinstance(formula, Field):
        return [formula]
    if isinstance(formula, Constant):
        return []
    return list(dict.fromkeys(field for each in formula.arguments for field in fields_of(each)))
