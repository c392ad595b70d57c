"""The plainest templates, one field compared with one literal, read without sqlglot: a process whose subscriptions are
made of these never imports it.

Whatever is not certainly such a comparison is left to sqlglot; a test holds both ways against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tocsin.kernels.language import literals as classes
from tocsin.language.tree import Comparison, Field, Operand, Operator

_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_LITERALS = "".join(map(chr, (classes.INTEGER, classes.DECIMAL, classes.DOUBLE, classes.PLAIN)))
_PLAIN = re.compile(rf"[ \n\t]*([A-Za-z_][A-Za-z0-9_]*)[ \n\t]*([=<>!]+)[ \n\t]*[{_LITERALS}][ \n\t]*")

WORDS = frozenset({"FALSE", "NULL", "TRUE"})
"""The words that are no names where a field may stand; Spark reserves no others."""


def plain_comparison(
    template: str, operand: Callable[[int, int], Operand], original: Callable[[int], int]
) -> Comparison | None:
    """Return the tree of a template, if it is one field compared with one literal; ``operand`` and ``original`` are as
    for a translator.

    >>> from tocsin.language.tree import Slot
    >>> found = plain_comparison("price <= \x01", lambda number, place: Slot(number, "integer", place=place), int)
    >>> found.operator, found.field.path, found.constant.place
    ('<=', ('price',), 9)
    >>> plain_comparison("null <= \x06", lambda number, place: Slot(number, "string"), int) is None
    True
    """
    found = _PLAIN.fullmatch(template)
    if found is None or found[2] not in _OPERATORS or found[1].upper() in WORDS:
        return None
    literal = len(template.rstrip(" \n\t")) - 1
    return Comparison(
        _OPERATORS[found[2]], Field((found[1],), place=original(found.start(1))), operand(0, original(literal))
    )
