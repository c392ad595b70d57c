"""From tree to text: what is printed parses back to the same tree."""

from __future__ import annotations

import re
from decimal import Decimal

from tocsin.language import tree

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})
_RESERVED = frozenset(
    """
    and or not in is null true false like ilike rlike regexp between escape case when then else end select from
    where date timestamp interval cast exists any all some div as on using join union except intersect group order
    by having limit distinct with set values table into lateral array map struct if current_date current_timestamp
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
_TYPED = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}


def to_text(expression: tree.Expression) -> str:
    """Return the expression as Spark SQL.

    >>> from tocsin.language.parser import parse
    >>> to_text(parse("not(a=1 or `b c` like 'x%')  and  d in(1,2.50)"))
    "NOT (a = 1 OR `b c` LIKE 'x%') AND d IN (1, 2.50)"
    """
    match expression:
        case tree.And(terms):
            return " AND ".join(_inner(term, (tree.Or,)) for term in terms)
        case tree.Or(terms):
            return " OR ".join(_inner(term, ()) for term in terms)
        case tree.Not(term):
            return f"NOT {_inner(term, (tree.And, tree.Or))}"
        case tree.Fixed(value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]
        case tree.Truth(field):
            return field_text(field)
        case tree.IsTruth(field, value):
            return f"{field_text(field)} IS {'TRUE' if value else 'FALSE'}"
        case tree.IsNull(field):
            return f"{field_text(field)} IS NULL"
        case tree.Comparison(operator, field, constant):
            return f"{field_text(field)} {operator} {constant_text(constant)}"
        case tree.Between(field, low, high):
            return f"{field_text(field)} BETWEEN {constant_text(low)} AND {constant_text(high)}"
        case tree.Membership(field, constants):
            return f"{field_text(field)} IN ({', '.join(map(constant_text, constants))})"
        case tree.Like(field, pattern, _, escape, case_blind):
            tail = "" if escape == "\\" else f" ESCAPE {_quoted(escape)}"
            return f"{field_text(field)} {'ILIKE' if case_blind else 'LIKE'} {_pattern_text(pattern)}{tail}"
        case tree.Matches(field, pattern):
            return f"{field_text(field)} RLIKE {constant_text(pattern)}"
        case tree.Affix(function, field, constant):
            return f"{function}({field_text(field)}, {constant_text(constant)})"
        case tree.InNetwork(field, network):
            return f"in_network({field_text(field)}, {constant_text(network)})"
        case tree.IsA(field, concepts):
            return f"is_a({field_text(field)}, {', '.join(map(constant_text, concepts))})"
        case tree.Call(name, arguments):
            return f"{name}({', '.join(map(_argument_text, arguments))})"
        case tree.Constraint("is null", left, _):
            return f"{term_text(left)} IS NULL"
        case tree.Constraint(operator, left, right):
            return f"{term_text(left)} {operator} {term_text(right)}"
        case tree.Exists(term):
            return f"({to_text(term)})"


def term_text(term: tree.Term) -> str:
    """Return one side of a constraint as it is written in an expression.

    >>> from tocsin.language.parser import parse
    >>> to_text(parse(":y > 2 * (:z + 1)"))
    ':y > 2 * (:z + 1)'
    """
    if isinstance(term, tree.Arithmetic):
        left, right = (
            f"({term_text(side)})" if isinstance(side, tree.Arithmetic) else term_text(side)
            for side in (term.left, term.right)
        )
        return f"{left} {term.sign} {right}"
    return _argument_text(term)


def field_text(field: tree.Field) -> str:
    """Return a field's name as it is written in an expression."""
    path = ".".join(_name_text(name) for name in field.path)
    return f"{field.transform}({path})" if field.transform else path


def constant_text(constant: tree.Operand) -> str:
    """Return a constant as a literal; a slot as a question mark.

    >>> from tocsin.language.tree import Constant
    >>> constant_text(Constant(1.5, "double")), constant_text(Constant("it's", "string"))
    ('1.5D', "'it\\\\'s'")
    """
    if isinstance(constant, tree.Slot):
        return "?"
    value, kind = constant.value, constant.kind
    if kind == "quantity":
        return f"quantity({_quoted(str(value))})"
    if kind == "string":
        return _quoted(str(value))
    if kind in _TYPED:
        return f"{_TYPED[kind]} {_quoted(str(value))}"
    if kind == "double":
        text = repr(value)
        return f"CAST('{text}' AS DOUBLE)" if text.lstrip("-") in ("inf", "nan") else f"{text}D"
    if kind == "decimal" and isinstance(value, Decimal):
        return f"{value:f}" if "." in f"{value:f}" else f"{value:f}BD"
    return {True: "TRUE", False: "FALSE", None: "NULL"}[value] if kind in ("boolean", "null") else str(value)  # type: ignore[index]


def _pattern_text(pattern: tree.Operand) -> str:
    r"""Return a LIKE pattern quoted: Spark keeps the backslash of ``\%`` and ``\_``, so those are not doubled."""
    if isinstance(pattern, tree.Slot):
        return "?"
    return re.sub(r"\\\\([%_])", r"\\\1", _quoted(str(pattern.value)))


def _quoted(text: str) -> str:
    return f"'{text.translate(_ESCAPES)}'"


def _name_text(name: str) -> str:
    if _PLAIN_NAME.match(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def _inner(term: tree.Expression, wrapped: tuple[type, ...]) -> str:
    """Return the text of a term, in parentheses if its connective binds less tightly."""
    return f"({to_text(term)})" if isinstance(term, wrapped) else to_text(term)


def _argument_text(argument: tree.Field | tree.Operand | tree.Variable) -> str:
    if isinstance(argument, tree.Variable):
        return f":{argument.name}"
    return field_text(argument) if isinstance(argument, tree.Field) else constant_text(argument)
