"""From sqlglot's tree to ours: which of Spark SQL is accepted, and what the rest is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from tocsin.errors import ExpressionError, ExpressionSyntaxError, TypeClashError, UnsupportedExpressionError
from tocsin.language.arithmetic import NeedsValueError, cast, compare, fold
from tocsin.language.tree import (
    Affix,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Constant,
    Constraint,
    Expression,
    Field,
    Fixed,
    InNetwork,
    IsNull,
    IsTruth,
    Like,
    Matches,
    Membership,
    Not,
    Operand,
    Operator,
    Or,
    Slot,
    Term,
    Transform,
    Truth,
    Variable,
)

_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
"""The signs of arithmetic, in constraints, constants and formulas."""

_CONSTANTS: tuple[type[exp.Expression], ...] = (exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast, *ARITHMETIC)
_FIELDS = (exp.Column, exp.Dot, exp.Lower, exp.Upper)
_TWO_ARGUMENTS = (exp.StartsWith, exp.EndsWith, exp.Contains, exp.RegexpLike, exp.ArrayContains)
_NULL_TESTS = {"isnull": False, "isnotnull": True}
_ORDINARY_CALL = (
    "write comparisons, BETWEEN, IN, LIKE, RLIKE, startswith, endswith, contains, lower, upper, IS NULL, AND, OR, NOT"
)


class Translator:
    """Translates one parsed expression.

    ``operand(number, place)`` supplies the constant or slot of a literal; ``original`` maps a position in the parsed
    text to the written one, for errors.
    """

    def __init__(
        self,
        text: str,
        literal_classes: list[int],
        operand: Callable[[int, int], Operand],
        original: Callable[[int], int],
    ) -> None:
        self._text = text
        self._classes = literal_classes
        self._operand = operand
        self._original = original
        self._starts: dict[int, int] = {}

    def expression(self, node: exp.Expression) -> Expression:
        """Return our tree of a boolean expression."""
        node = _bare(node)
        if isinstance(node, (exp.And, exp.Or)):
            return self._joined(node)
        if isinstance(node, exp.Not):
            return Not(self.expression(node.this))
        if any(True for _ in node.find_all(exp.Placeholder)) and not isinstance(node, exp.Anonymous):
            return self._constraint(node)
        if type(node) in _OPERATORS:
            return self._comparison(node, _OPERATORS[type(node)])
        if isinstance(node, exp.NullSafeNEQ):
            return Not(self._comparison(node, "<=>"))
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._membership(node)
        if isinstance(node, (exp.Like, exp.ILike, exp.Escape)):
            return self._like(node)
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, (exp.Boolean, exp.Null)):
            return Fixed(None if isinstance(node, exp.Null) else bool(node.this))
        if isinstance(node, (exp.Column, exp.Dot)):
            return Truth(self._field(node))
        return self._function(node)

    # Logic and comparisons

    def _joined(self, node: exp.Expression) -> Expression:
        """Flatten a chain of one connective, however long, without recursion along it."""
        connective = type(node)
        terms: list[Expression] = []
        waiting = [node]
        while waiting:
            current = _bare(waiting.pop())
            if isinstance(current, connective):
                waiting += [current.expression, current.this]
            else:
                terms.append(self.expression(current))
        return And(tuple(terms)) if connective is exp.And else Or(tuple(terms))

    def _comparison(self, node: exp.Expression, operator: Operator) -> Expression:
        return self._compared(node, operator, node.this, node.expression)

    def _compared(
        self, node: exp.Expression, operator: Operator, left: exp.Expression, right: exp.Expression
    ) -> Expression:
        """Return the comparison of two sides, the field on the left."""
        left, right = _bare(left), _bare(right)
        if isinstance(left, _CONSTANTS) and isinstance(right, _CONSTANTS):
            return self._fixed(operator, left, right)
        if isinstance(left, _CONSTANTS):
            left, right, operator = right, left, _FLIPPED.get(operator, operator)
        if not isinstance(right, _CONSTANTS):
            quoted = f"; write a text in quotes: '{right.name}'" if isinstance(right, exp.Column) else ""
            raise self._unsupported(right, f"a field is compared with constants only{quoted}")
        constant = self._constant(right)
        if isinstance(left, _FIELDS):
            return Comparison(operator, self._field(left), constant)
        if _is_predicate(left):
            return self._of_truth(left, operator, constant, node)
        raise self._unsupported(left, "only a field, or lower or upper of one, can be compared")

    def _fixed(self, operator: Operator, left: exp.Expression, right: exp.Expression) -> Fixed:
        """Return the truth of a comparison of two constants."""
        try:
            return Fixed(compare(operator, self._constant(left), self._constant(right)))
        except (ArithmeticError, ValueError) as error:
            raise TypeClashError(str(error), self._text, self._place(left)) from None

    def _between(self, node: exp.Between) -> Expression:
        if node.args.get("symmetric"):
            raise self._unsupported(node, "BETWEEN takes no SYMMETRIC")
        subject, low, high = _bare(node.this), _bare(node.args["low"]), _bare(node.args["high"])
        if isinstance(subject, _FIELDS) and isinstance(low, _CONSTANTS) and isinstance(high, _CONSTANTS):
            return Between(self._field(subject), self._constant(low), self._constant(high))
        return And((self._compared(node, ">=", subject, low), self._compared(node, "<=", subject, high)))

    def _of_truth(
        self, predicate: exp.Expression, operator: Operator, constant: Operand, node: exp.Expression
    ) -> Expression:
        """Return ``(predicate) = TRUE`` and its like as the predicate or its negation."""
        if isinstance(constant, Constant) and constant.kind == "null" and operator != "<=>":
            return Fixed(None)
        if not isinstance(constant, Constant) or constant.kind != "boolean" or operator not in ("=", "<>"):
            raise self._unsupported(node, "a predicate can only be compared by = or <> with TRUE or FALSE")
        translated = self.expression(predicate)
        return translated if (operator == "=") == constant.value else Not(translated)

    def _membership(self, node: exp.In) -> Expression:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise self._unsupported(node, "IN takes a list of constants, not a query")
        if not node.expressions:
            raise ExpressionSyntaxError("IN needs at least one constant", self._text, self._place(node))
        constants = tuple(self._constant(item) for item in node.expressions)
        subject = _bare(node.this)
        if isinstance(subject, _CONSTANTS):
            tests = tuple(self._fixed("=", subject, item) for item in node.expressions)
            return tests[0] if len(tests) == 1 else Or(tests)
        return Membership(self._field(subject), constants)

    def _is(self, node: exp.Is) -> Expression:
        subject = _bare(node.this)
        if isinstance(node.expression, exp.Null):
            if isinstance(subject, _CONSTANTS):
                constant = self._constant(subject)
                return Fixed(isinstance(constant, Constant) and constant.kind == "null")
            return IsNull(self._field(subject))
        if isinstance(node.expression, exp.Boolean):
            return IsTruth(self._field(subject), bool(node.expression.this))
        raise self._unsupported(node, "IS is followed by NULL, TRUE or FALSE")

    # Text

    def _like(self, node: exp.Expression) -> Expression:
        escape = "\\"
        if isinstance(node, exp.Escape):
            given = self._value(node.expression)
            if len(given) != 1:
                raise self._unsupported(node.expression, "ESCAPE takes one character")
            escape, node = given, node.this
        if not isinstance(node, (exp.Like, exp.ILike)):
            raise self._unsupported(node, "ESCAPE follows LIKE")
        patterns = node.expression
        several = isinstance(patterns, (exp.Any, exp.All))
        listed = _bare(patterns.this) if several else patterns
        items = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
        if not items:
            raise ExpressionSyntaxError("ANY and ALL need at least one pattern", self._text, self._place(node))
        subject = self._field(node.this)
        case_blind = isinstance(node, exp.ILike)
        terms = tuple(self._one_like(subject, item, escape, case_blind) for item in items)
        if node.args.get("negate"):
            terms = tuple(Not(term) for term in terms)
        if len(terms) == 1:
            return terms[0]
        return And(terms) if isinstance(patterns, exp.All) else Or(terms)

    def _one_like(self, subject: Field, item: exp.Expression, escape: str, case_blind: bool) -> Expression:
        pattern = self._constant(item)
        if isinstance(pattern, Constant) and pattern.kind == "null":
            return Comparison("=", subject, pattern)
        if pattern.kind != "string":
            raise self._unsupported(item, "a pattern is a string")
        shape = self._classes[int(item.name)] if isinstance(item, exp.Literal) else 0
        if escape != "\\":
            self._value(item)
            shape = 0
        return Like(subject, pattern, shape, escape, case_blind)

    def _function(self, node: exp.Expression) -> Expression:
        """Return a predicate written as a function, or an operator call, or refuse it."""
        if isinstance(node, _TWO_ARGUMENTS):
            self._refuse_more_arguments(node)
        if isinstance(node, (exp.StartsWith, exp.EndsWith, exp.Contains)):
            name = type(node).__name__.lower()
            return self._text_test(node, lambda field, constant: Affix(name, field, constant))  # type: ignore[arg-type]
        if isinstance(node, exp.RegexpLike):
            return self._text_test(node, Matches)
        if isinstance(node, exp.ArrayContains):
            return self._compared(node, "=", node.this, node.expression)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            arguments = node.expressions
            if name in _NULL_TESTS and len(arguments) == 1:
                test = IsNull(self._field(arguments[0]))
                return Not(test) if _NULL_TESTS[name] else test
            if name == "regexp" and len(arguments) == 2:
                return self._function(exp.RegexpLike(this=arguments[0], expression=arguments[1]))
            if name == "in_network" and len(arguments) == 2:
                return InNetwork(self._field(arguments[0]), self._constant(arguments[1]))
            return Call(name, tuple(self._argument(item) for item in arguments), self._place(node))
        if isinstance(node, _CONSTANTS):
            raise self._unsupported(node, "a constant other than TRUE or FALSE is no condition")
        raise self._unsupported(node, _ORDINARY_CALL)

    def _refuse_more_arguments(self, node: exp.Expression) -> None:
        """Refuse a third argument, which sqlglot takes from other dialects: ``regexp_like(a, 'b', 'i')``."""
        for name, given in node.args.items():
            if name not in ("this", "expression") and isinstance(given, exp.Expression):
                raise self._unsupported(given, "this function takes a field and a constant, and nothing more")

    def _text_test(self, node: exp.Expression, make: Callable[[Field, Operand], Expression]) -> Expression:
        subject, constant = _bare(node.this), self._constant(node.expression)
        if isinstance(constant, Constant) and constant.kind == "null":
            return Comparison("=", self._field(subject), constant)
        if constant.kind != "string":
            raise self._unsupported(node.expression, "this takes a string")
        return make(self._field(subject), constant)

    def _argument(self, node: exp.Expression) -> Field | Operand | Variable:
        node = _bare(node)
        if isinstance(node, exp.Placeholder):
            return Variable(str(node.this))
        return self._constant(node) if isinstance(node, _CONSTANTS) else self._field(node)

    # Constraints over variables

    def _constraint(self, node: exp.Expression) -> Expression:
        names = [str(each.this) for each in node.find_all(exp.Placeholder)]
        place = max(self._text.find(f":{names[0]}"), 0)  # sqlglot does not say where a variable stands

        def compared(operator: Operator, left: exp.Expression, right: exp.Expression) -> Expression:
            return Constraint(operator, self._term(left), self._term(right), place)

        if type(node) in _OPERATORS:
            return compared(_OPERATORS[type(node)], node.this, node.expression)
        if isinstance(node, exp.NullSafeNEQ):
            return Not(compared("<=>", node.this, node.expression))
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return And((compared(">=", node.this, node.args["low"]), compared("<=", node.this, node.args["high"])))
        if isinstance(node, exp.In) and node.expressions:
            equal = tuple(compared("=", node.this, item) for item in node.expressions)
            return equal[0] if len(equal) == 1 else Or(equal)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Constraint("is null", self._term(node.this), Constant(None, "null"), place)
        raise self._unsupported(node, "a variable is compared by =, <>, <, <=, >, >=, <=>, BETWEEN, IN or IS NULL")

    def _term(self, node: exp.Expression) -> Term:
        """Return what a constraint compares: arithmetic over variables, fields and constants."""
        node = _bare(node)
        if isinstance(node, exp.Placeholder):
            return Variable(str(node.this))
        if isinstance(node, _FIELDS):
            return self._field(node)
        if any(True for _ in node.find_all(exp.Placeholder, exp.Column)):
            if isinstance(node, exp.Neg):
                return Arithmetic("-", Constant(0, "integer"), self._term(node.this))
            if type(node) in ARITHMETIC:
                sign = ARITHMETIC[type(node)]
                return Arithmetic(sign, self._term(node.this), self._term(node.expression))  # type: ignore[arg-type]
            for literal in node.find_all(exp.Literal):
                self._operand(int(literal.name), self._place(literal))  # a number inside a name is told as such
            raise self._unsupported(node, "a constraint has variables, fields, constants and + - * / % div")
        return self._constant(node)

    def _written(self, node: exp.Expression) -> exp.Expression:
        """Return a literal with its value in place of its number."""
        if not isinstance(node, exp.Literal):
            return node
        constant = _known(self._operand(int(node.name), 0))
        return exp.Literal(this=str(constant.value), is_string=constant.kind == "string")

    # Fields and constants

    def _field(self, node: exp.Expression) -> Field:
        node = _bare(node)
        transform: Transform = ""
        if isinstance(node, (exp.Lower, exp.Upper)):
            transform = "lower" if isinstance(node, exp.Lower) else "upper"
            node = _bare(node.this)
        parts: list[str] = []
        place = self._place(node)
        while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            parts.insert(0, str(node.expression.name))
            node = node.this
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise self._unsupported(node, "a field is expected here")
        parts[:0] = [part.name for part in node.parts]
        return Field(tuple(parts), transform, place)

    def _constant(self, node: exp.Expression) -> Operand:
        node = _bare(node)
        place = self._place(node)
        if isinstance(node, exp.Boolean):
            return Constant(bool(node.this), "boolean", place)
        if isinstance(node, exp.Null):
            return Constant(None, "null", place)
        try:
            if isinstance(node, exp.Literal):
                return self._operand(int(node.name), place)
            return self._computed(node, place)
        except (ArithmeticError, ValueError) as error:
            raise ExpressionError(str(error), self._text, place) from None

    def _computed(self, node: exp.Expression, place: int) -> Operand:
        if isinstance(node, exp.Neg):
            operand = self._constant(node.this)
            if isinstance(operand, Slot) and operand.kind in ("integer", "decimal", "double"):
                return Slot(operand.number, operand.kind, not operand.negative, place)
            if isinstance(operand, Constant) and isinstance(operand.value, int) and operand.kind == "integer":
                return Constant(-operand.value, "integer", place)  # beyond 64 bits it is a decimal, as in Spark
            known = _known(operand)
            if known.kind in ("decimal", "double"):  # 0 - 0.0 would lose the sign
                negated = known.value.copy_negate() if isinstance(known.value, Decimal) else -known.value  # type: ignore[operator]
                return Constant(negated, known.kind, place)
            return fold("-", Constant(0, "integer"), known, place)
        if isinstance(node, exp.Cast):
            target = node.to.copy().transform(self._written)
            if node.args.get("quantity"):
                return self._quantity(node)
            if not isinstance(target, exp.DataType):
                raise self._unsupported(node, "a constant is cast to a type")
            return cast(self._constant(node.this), target, place)
        if type(node) in ARITHMETIC:
            left, right = _known(self._constant(node.this)), _known(self._constant(node.expression))
            return fold(ARITHMETIC[type(node)], left, right, place)
        raise self._unsupported(node, "a constant is expected here")

    def _quantity(self, node: exp.Expression) -> Operand:
        """Return ``quantity('40 GB')``, which the parser hands on as a cast."""
        operand = self._constant(node.this)
        if operand.kind != "string":
            raise self._unsupported(node, "quantity takes a string: quantity('40 GB')")
        return replace(operand, kind="quantity")

    def _value(self, node: exp.Expression) -> str:
        """Return the string that a literal stands for."""
        constant = _known(self._constant(node))
        if constant.kind != "string":
            raise self._unsupported(node, "a string is expected here")
        return str(constant.value)

    # Errors

    def _place(self, node: exp.Expression) -> int:
        """Return where a node begins in the written text: the first position known in or below it."""
        chain: list[exp.Expression] = []
        start: int | None = None
        for found in _leftmost(node):
            start = self._starts.get(id(found))
            if start is not None:
                break
            chain.append(found)
            if "start" in found.meta:
                start = self._original(found.meta["start"])
                break
        self._starts |= dict.fromkeys(map(id, chain), start or 0)
        return start or 0

    def _unsupported(self, node: exp.Expression, advice: str) -> UnsupportedExpressionError:
        what = "this is not supported in a subscription"
        return UnsupportedExpressionError(f"{what}: {advice}", self._text, self._place(node))


def _bare(node: exp.Expression) -> exp.Expression:
    """Return the node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _leftmost(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the node and, of all that is below it, only what may stand first in the text."""
    while True:
        yield node
        children = [child for child in node.args.values() if isinstance(child, (exp.Expression, list)) and child]
        first = children[0] if children else None
        if isinstance(node, exp.Column):
            yield from (part for part in node.parts if isinstance(part, exp.Expression))
        if isinstance(first, list):
            first = first[0]
        if not isinstance(first, exp.Expression):
            return
        node = first


def _is_predicate(node: exp.Expression) -> bool:
    return isinstance(node, (exp.Predicate, exp.Not, exp.And, exp.Or, exp.StartsWith, exp.EndsWith, exp.Contains))


def _known(operand: Operand) -> Constant:
    """Return the constant, or ask for the template to be parsed anew with its value bound."""
    if isinstance(operand, Slot):
        raise NeedsValueError(operand.number)
    return operand
