"""Does an expression fit a space? Names are resolved, types compared, and every misfit is told with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tocsin.errors import (
    ExpressionLimitError,
    TypeClashError,
    UnknownFieldError,
    UnknownTermError,
    UnsupportedExpressionError,
)
from tocsin.kernels.language import literals as shapes
from tocsin.language.arithmetic import NeedsValueError
from tocsin.language.patterns import like_problem, regex_problem
from tocsin.language.scopes import scoped
from tocsin.language.symbolic import AxisKey
from tocsin.language.tree import (
    Affix,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Constant,
    Constraint,
    Exists,
    Expression,
    Field,
    Fixed,
    InNetwork,
    IsA,
    IsNull,
    IsTruth,
    Leaf,
    Like,
    Matches,
    Membership,
    Not,
    Operand,
    Or,
    Slot,
    Term,
    Truth,
)
from tocsin.space.axes import codec_of
from tocsin.space.blame import first_place
from tocsin.space.codes import Codec, Integers
from tocsin.space.concepts import ConceptCodes
from tocsin.space.declared import check_call, refuse_ordinary
from tocsin.space.quantities import Quantities
from tocsin.space.space import Space
from tocsin.space.types import Address, Boolean, Concept, Repeated, Text

_ADVICE = {
    "number": "compare it with a number without quotes",
    "boolean": "compare it with TRUE or FALSE",
    "text": "write the constant in quotes",
    "time": "write the constant like '2026-01-31' or '2026-01-31 12:00:00'",
    "address": "write the constant like '10.0.0.1'",
    "concept": "write the name of the concept in quotes",
}


class Checked:
    """An expression that fits a space: names resolved; ``opaque`` are the leaves that no interval can say exactly."""

    def __init__(
        self,
        space: Space,
        text: str,
        expression: Expression,
        classes: list[int],
        operators: Mapping[str, Any] | None = None,
    ) -> None:
        self._space, self._text, self._classes = space, text, classes
        self._operators = space.operators if operators is None else operators
        opaque: set[Leaf] = set()
        self._opaque = opaque
        self.expression = self._check(self._scoped(expression))
        self.opaque = frozenset(opaque)

    def _scoped(self, expression: Expression) -> Expression:
        try:
            return scoped(expression)
        except ExpressionLimitError as error:  # the fault of the whole, so the place is where it begins
            raise ExpressionLimitError(error.reason, self._text, first_place(expression)) from None

    def _check(self, expression: Expression) -> Expression:
        if isinstance(expression, (And, Or)):
            return type(expression)(tuple(self._check(term) for term in expression.terms))
        if isinstance(expression, Not):
            return Not(self._check(expression.term))
        if isinstance(expression, Fixed):
            return expression
        if isinstance(expression, Exists):
            refuse_ordinary(expression.term, self._text)
            return Exists(self._check(expression.term))
        if isinstance(expression, Constraint):
            return replace(expression, left=self._term(expression.left), right=self._term(expression.right))
        if isinstance(expression, Call) and expression.name == "is_a":
            expression = self._is_a(expression)
        if isinstance(expression, Call):
            return check_call(expression, self._space, self._operators, self._text)
        field = self._field(expression.field)
        leaf: Leaf = replace(expression, field=field)
        if isinstance(leaf, Membership):
            leaf = replace(leaf, constants=self._of_one_type(leaf.constants))
        self._check_leaf(leaf, field, codec_of(self._space, AxisKey(field.path)))
        if leaf in self._opaque and isinstance(leaf, Comparison) and leaf.operator == "<=>":
            equal = replace(leaf, operator="=")
            self._opaque.add(equal)
            return And((Not(IsNull(field)), equal))
        return leaf

    def _check_leaf(self, leaf: Leaf, field: Field, codec: Codec) -> None:
        kind = self._space.scalar(field.path)
        if field.transform and not isinstance(kind, Text):
            raise self._clash(field, f"{field.transform} takes text, and {field.name} is {kind.type}")
        match leaf:
            case Comparison(operator, _, constant):
                if operator not in ("=", "<>", "<=>"):
                    self._ordered(field, operator)
                self._refuse_null_safe(operator == "<=>", field)
                self._comparable(leaf, field, codec, (constant,))
            case Between(_, low, high):
                self._ordered(field, "BETWEEN")
                self._comparable(leaf, field, codec, (low, high))
            case Membership(_, constants):
                self._comparable(leaf, field, codec, constants)
            case InNetwork(_, network):
                if not isinstance(kind, Address):
                    raise self._clash(field, f"in_network takes an address, and {field.name} is {kind.type}")
                self._comparable(leaf, field, codec, (network,))
            case IsA(_, concepts):
                self._comparable(leaf, field, codec, concepts)
            case Like(_, pattern, shape):
                self._text_only(field, "LIKE")
                if shape not in (shapes.PLAIN, shapes.STARTS, shapes.ENDS, shapes.CONTAINS):
                    known = self._known(pattern)
                    folded = str(known.value).lower() if leaf.case_blind else str(known.value)
                    self._refuse_pattern(known, like_problem(folded, leaf.escape))
            case Matches(_, pattern):
                self._text_only(field, "RLIKE")
                known = self._known(pattern)
                self._refuse_pattern(known, regex_problem(str(known.value)))
            case Affix(function, _, _):
                self._text_only(field, function)
            case IsTruth() | Truth():
                self._refuse_null_safe(isinstance(leaf, IsTruth), field)
                if not isinstance(kind, Boolean):
                    raise self._clash(field, f"{field.name} is {kind.type}, not boolean; compare it with something")
            case IsNull():
                pass

    def _is_a(self, call: Call) -> IsA:
        """Return ``is_a(field, 'concept', ...)`` as a leaf."""
        field, *concepts = call.arguments or (None,)
        if not isinstance(field, Field) or not concepts or not all(isinstance(each, Operand) for each in concepts):
            reason = "is_a takes a field and one or more concepts: is_a(target, 'computer')"
            raise UnsupportedExpressionError(reason, self._text, call.place)
        kind = self._space.scalar(self._field(field).path)
        if not isinstance(kind, Concept):
            raise self._clash(field, f"is_a takes a concept, and {field.name} is {kind.type}; declare Concept(tree)")
        return IsA(field, tuple(each for each in concepts if isinstance(each, Operand)))

    def _ordered(self, field: Field, operator: str) -> None:
        if isinstance(self._space.scalar(field.path), Concept):
            reason = f"concepts have no order, so {operator} does not apply to {field.name}; use =, <>, IN or is_a"
            raise self._clash(field, reason)

    def _field(self, field: Field) -> Field:
        path = self._space.find(field.path)
        if path is None:
            advice = self._space.nearest(field.name)
            raise UnknownFieldError(f"there is no field {field.name!r}; {advice}", self._text, field.place)
        return replace(field, path=path)

    def _of_one_type(self, constants: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Return the constants of an IN as Spark compares them: if one is a double, all numbers are."""
        if not any(constant.kind == "double" for constant in constants):
            return constants
        return tuple(
            constant if constant.kind not in ("integer", "decimal") else self._as_double(self._known(constant))
            for constant in constants
        )

    @staticmethod
    def _as_double(constant: Constant) -> Constant:
        return Constant(float(constant.value), "double", constant.place)  # type: ignore[arg-type]

    def _comparable(self, leaf: Leaf, field: Field, codec: Codec, constants: tuple[Operand, ...]) -> None:
        """Refuse constants of types that the field cannot be compared with; see which must be known or verified."""
        for constant in constants:
            if constant.kind == "null":
                continue
            if constant.kind not in codec.kinds:
                name = self._space.scalar(field.path).type
                advice = _ADVICE[name]
                if isinstance(codec, Quantities):
                    advice += f", or with a quantity such as quantity('40 {codec.unit}')"
                article = "an" if constant.kind == "integer" else "a"
                reason = f"{field.name} is {name} and cannot be compared with {article} {constant.kind}; {advice}"
                raise TypeClashError(reason, self._text, constant.place)
            if isinstance(constant, Slot) and self._classes[constant.number] in (
                shapes.LONG_INTEGER,
                shapes.LONG_DECIMAL,
            ):
                raise NeedsValueError(constant.number)
            if isinstance(codec, Integers) and isinstance(constant, Constant) and codec.tells_least_apart(constant):
                self._opaque.add(leaf)
            if isinstance(constant, Constant) and isinstance(codec, ConceptCodes):
                problem = codec.refusal(str(constant.value))
                if problem is not None:
                    raise UnknownTermError(problem, self._text, constant.place)
            if isinstance(constant, Constant) and constant.kind == "quantity" and isinstance(codec, Quantities):
                problem = codec.refusal(str(constant.value))
                if problem is not None:
                    raise TypeClashError(f"{field.name}: {problem}", self._text, constant.place)
        if leaf in self._opaque:
            for constant in constants:
                self._known(constant)

    def _refuse_null_safe(self, null_safe: bool, field: Field) -> None:
        if null_safe and isinstance(self._space[field.path], Repeated):
            reason = f"{field.name} is repeated: <=> and IS TRUE do not apply to it; use = or IS NULL"
            raise UnsupportedExpressionError(reason, self._text, field.place)

    def _text_only(self, field: Field, what: str) -> None:
        kind = self._space.scalar(field.path)
        if not isinstance(kind, Text):
            raise self._clash(field, f"{what} takes text, and {field.name} is {kind.type}")

    def _known(self, operand: Operand) -> Constant:
        if isinstance(operand, Slot):
            raise NeedsValueError(operand.number)
        return operand

    def _refuse_pattern(self, pattern: Constant, problem: str | None) -> None:
        """Refuse a pattern that Spark or RE2 refuses, or that is too large."""
        if problem is not None:
            kind = ExpressionLimitError if "the limit is" in problem else UnsupportedExpressionError
            raise kind(problem, self._text, pattern.place)

    def _term(self, term: Term) -> Term:
        """Return one side of a constraint, its fields resolved."""
        if isinstance(term, Arithmetic):
            return replace(term, left=self._term(term.left), right=self._term(term.right))
        if isinstance(term, Field):
            return self._field(term)
        if isinstance(term, (Constant, Slot)) and term.kind in ("date", "timestamp", "timestamp_ntz"):
            reason = f"a variable is not compared with a {term.kind}; let the operator return a number or a text"
            raise UnsupportedExpressionError(reason, self._text, term.place)
        return term

    def _clash(self, field: Field, reason: str) -> TypeClashError:
        return TypeClashError(reason, self._text, field.place)
