"""What sqlglot makes of a formula. Only who has a formula imports this, as sqlglot takes long."""

from __future__ import annotations

from decimal import Decimal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tocsin.errors import ExpressionSyntaxError, UnsupportedExpressionError
from tocsin.language.formulas import FUNCTIONS, Apply, Formula
from tocsin.language.literals import MAX_DIGITS
from tocsin.language.translate import ARITHMETIC
from tocsin.language.tree import Constant, Field

_SIGNS: dict[type[exp.Expression], str] = {**ARITHMETIC, exp.DPipe: "concat"}
_NOW = {"now": "now", "current_timestamp": "now", "current_date": "current_date"}
_NAMES = {"day_of_month": "day", "ceiling": "ceil", "char_length": "length", "date_diff": "datediff"}


def translated_formula(text: str) -> Formula:
    """Return the tree of a formula."""
    try:
        parsed = sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        told = str(error).split("\n")[0]
        raise ExpressionSyntaxError(f"the formula {text!r} is no Spark SQL: {told}") from None
    if not isinstance(parsed, exp.Expression):
        raise ExpressionSyntaxError(f"the formula {text!r} is no expression")
    return _formula(parsed, text)


def _formula(node: exp.Expression, text: str) -> Formula:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal):
        return Constant(str(node.this), "string") if node.is_string else _number(str(node.this), text)
    if isinstance(node, exp.Boolean):
        return Constant(bool(node.this), "boolean")
    if isinstance(node, exp.Null):
        return Constant(None, "null")
    if isinstance(node, exp.Neg):
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number(f"-{node.this.this}", text)
        return Apply("negate", (_formula(node.this, text),))
    if type(node) in _SIGNS:
        return Apply(_SIGNS[type(node)], (_formula(node.this, text), _formula(node.expression, text)))
    if isinstance(node, (exp.Column, exp.Dot)):
        parts = tuple(part.name for part in node.find_all(exp.Identifier, bfs=False))
        if len(parts) == 1 and parts[0].lower() in _NOW:
            return Apply(_NOW[parts[0].lower()], ())
        return Field(tuple(part.name for part in node.parts) if isinstance(node, (exp.Column, exp.Dot)) else parts)
    return _call(node, text)


def _number(written: str, text: str) -> Constant:
    """Return a number as Spark reads it: whole, with a point a decimal, with an exponent a double."""
    if "e" in written.lower():
        return Constant(float(written), "double")
    if len(written) > MAX_DIGITS + 2 or len(written.lstrip("-").replace(".", "")) > MAX_DIGITS:
        raise UnsupportedExpressionError(f"the formula {text!r} holds a number of more than {MAX_DIGITS} digits")
    if "." in written:
        return Constant(Decimal(written), "decimal")
    return Constant(int(written), "integer")


def _call(node: exp.Expression, text: str) -> Formula:
    if isinstance(node, (exp.CurrentTimestamp, exp.CurrentDate)):
        return Apply("now" if isinstance(node, exp.CurrentTimestamp) else "current_date", ())
    if isinstance(node, exp.Anonymous):
        name, inner = str(node.this).lower(), list(node.expressions)
    elif isinstance(node, exp.Func):
        name = node.sql_name().lower()
        given = [node.args.get(key) for key in node.arg_types]
        inner = [each for some in given for each in (some if isinstance(some, list) else [some])]
        inner = [each for each in inner if isinstance(each, exp.Expression)]
    else:
        raise UnsupportedExpressionError(f"the formula {text!r} holds {node.sql(dialect='spark')!r}; {_advice()}")
    name = _NAMES.get(name, name)
    # sqlglot wraps what it takes for a date; a cast that somebody wrote is refused
    inner = [each.this if isinstance(each, exp.TsOrDsToDate) else each for each in inner]
    if name not in FUNCTIONS or isinstance(node, exp.Cast):
        raise UnsupportedExpressionError(f"the formula {text!r} calls {name}; {_advice()}")
    least, most = FUNCTIONS[name]
    if not least <= len(inner) <= most:
        wanted = f"{least}" if least == most else f"{least} or more"
        raise UnsupportedExpressionError(f"the formula {text!r}: {name} takes {wanted} arguments, not {len(inner)}")
    return Apply(name, tuple(_formula(each, text) for each in inner))


def _advice() -> str:
    return f"a formula has numbers, texts, fields, + - * / % div ||, and {', '.join(FUNCTIONS)}"
