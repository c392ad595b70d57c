"""What sqlglot makes of a text, and its complaints in our words. Only who needs sqlglot imports this: it takes long."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from tocsin.errors import ExpressionError, ExpressionSyntaxError
from tocsin.language.tokens import checked_tokens
from tocsin.language.translate import Translator
from tocsin.language.tree import Expression, Operand

_SPARK = Spark()


class _Tokenizer(Spark.Tokenizer):
    """Spark's tokenizer for expressions: no word at the beginning makes the rest of the text a command."""

    COMMANDS = set()  # noqa: RUF012 - as the base declares it


def translated(
    marked: str,
    text: str,
    literal_classes: list[int],
    operand: Callable[[int, int], Operand],
    original: Callable[[int], int],
) -> Expression:
    """Return the tree of a text in which the number of each literal stands in its place, ``marked``."""
    try:
        parsed = (_read_again if len(marked) <= _KEPT_LENGTH else _read)(marked)
    except ExpressionError as error:
        raise type(error)(error.reason, text, original(error.offset or 0)) from None
    except ParseError as error:
        raise _syntax_error(error, text, marked, original) from None
    except (TokenError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # MAP(a) trips sqlglot
        raise ExpressionSyntaxError("this is not Spark SQL", text, 0) from None
    if not isinstance(parsed, exp.Expression):
        raise ExpressionSyntaxError("this is not an expression", text, 0)
    if "quantity" in marked.lower():
        parsed = parsed.transform(_quantities)
    try:
        return Translator(text, literal_classes, operand, original).expression(parsed)
    except (
        ArithmeticError,
        LookupError,
        ValueError,
    ):  # sqlglot read a number out of what the scanner took for a name, such as a.5e3
        raise ExpressionSyntaxError("a number runs into a name here", text, 0) from None


def _read(marked: str) -> Any:
    """Return what sqlglot makes of a text. The translator only reads it."""
    tokens = checked_tokens(_Tokenizer(dialect=_SPARK).tokenize(marked), marked)
    return _SPARK.parser().parse_into(exp.Condition, tokens, marked)[0]


_read_again = functools.lru_cache(maxsize=256)(_read)
"""The same, kept for a while: a template some of whose constants must be known is translated once for each of them."""

_KEPT_LENGTH = 10_000
"""A longer text is not kept: its tree is large."""


def _quantities(node: exp.Expression) -> exp.Expression:
    """Return the call ``quantity('40 GB')`` as a cast, so that it may stand wherever a constant may."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "quantity" and len(node.expressions) == 1:
        return exp.Cast(this=node.expressions[0], to=exp.DataType.build("string"), quantity=True)
    return node


def _syntax_error(error: ParseError, text: str, marked: str, original: Callable[[int], int]) -> ExpressionSyntaxError:
    """Return sqlglot's complaint in our words, at its place."""
    if not error.errors:
        return ExpressionSyntaxError("this is not Spark SQL", text, 0)
    first = error.errors[0]
    description = str(first.get("description", ""))
    line_start = sum(len(line) + 1 for line in marked.split("\n")[: int(first["line"]) - 1])
    highlight = str(first.get("highlight") or " ")
    place = original(max(0, line_start + int(first["col"]) - len(highlight)))
    if "Required" in description:
        reason = "something is missing after this"
    elif "Expecting" in description:
        reason = f"{description[0].lower()}{description[1:]} after this"
    else:
        reason = "this cannot stand here"
    return ExpressionSyntaxError(reason, text, place)
