"""What an expression is: a small tree of frozen nodes.

Leaves test one field against constants; `And`, `Or` and `Not` join them with SQL's three-valued logic. A constant is a
`Constant` when its value is known and a `Slot` when the tree is a template whose constants are filled in later. Nodes
compare by meaning: the place in the text is not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "integer", "decimal", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz", "null", "quantity"
]
"""The type of a constant, as Spark SQL reads its literal."""

Value: TypeAlias = int | float | Decimal | str | bool | None
"""The value of a constant. Dates and timestamps stay text until a space, which knows the time zone, reads them."""

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "<=>"]
Transform: TypeAlias = Literal["", "lower", "upper"]

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the event, by its path; ``transform`` is the text function around it."""

    path: tuple[str, ...]
    transform: Transform = ""
    place: int = field(default=NOWHERE, compare=False)

    @property
    def name(self) -> str:
        """The path with dots between its parts."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value written in the expression. Equal constants have equal kinds: 1, 1.0 and TRUE all differ."""

    value: Value
    kind: Kind
    place: int = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a constant in a template: which literal of the text, whether its sign is turned, which type it is
    cast to."""

    number: int
    kind: Kind
    negative: bool = False
    place: int = field(default=NOWHERE, compare=False)


Operand: TypeAlias = Constant | Slot


@dataclass(frozen=True, slots=True)
class Comparison:
    """``field operator constant``."""

    operator: Operator
    field: Field
    constant: Operand


@dataclass(frozen=True, slots=True)
class Between:
    """``field BETWEEN low AND high``, one predicate: of a repeated field, one element lies between."""

    field: Field
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class Membership:
    """``field IN (constants)``."""

    field: Field
    constants: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """``field [I]LIKE pattern``; ``shape`` is the class of the pattern's literal (see `kernels.language.literals`)."""

    field: Field
    pattern: Operand
    shape: int
    escape: str = "\\"
    case_blind: bool = False


@dataclass(frozen=True, slots=True)
class Matches:
    """``field RLIKE pattern``."""

    field: Field
    pattern: Operand


@dataclass(frozen=True, slots=True)
class Affix:
    """``startswith``, ``endswith`` or ``contains`` of a field and a constant."""

    function: Literal["startswith", "endswith", "contains"]
    field: Field
    constant: Operand


@dataclass(frozen=True, slots=True)
class InNetwork:
    """``in_network(field, '10.0.0.0/8')``."""

    field: Field
    network: Operand


@dataclass(frozen=True, slots=True)
class IsA:
    """``is_a(field, 'concept', ...)``: the field's concept is one of these or below one. A space makes it of a call."""

    field: Field
    concepts: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """``field IS NULL``."""

    field: Field


@dataclass(frozen=True, slots=True)
class IsTruth:
    """``field IS TRUE`` or ``field IS FALSE``: never unknown."""

    field: Field
    value: bool


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean field that stands as a predicate by itself."""

    field: Field


@dataclass(frozen=True, slots=True)
class Fixed:
    """``TRUE``, ``FALSE`` or, as None, the unknown truth of a comparison with NULL."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of an expression; unknown stays unknown."""

    term: Expression


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction of two or more expressions."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction of two or more expressions."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable ``:name`` bound by an operator."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operator call ``name(arguments)`` or a concept test ``is_a(field, 'concept')``.

    ``operator`` is what the name means in a space, once that is known.
    """

    name: str
    arguments: tuple[Field | Operand | Variable, ...]
    place: int = field(default=NOWHERE, compare=False)
    operator: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left sign right`` over variables, fields and constants."""

    sign: Literal["+", "-", "*", "/", "%", "div"]
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison over variables, ``:x > 2 * :y``; ``is null`` has the constant NULL on its right."""

    operator: Operator | Literal["is null"]
    left: Term
    right: Term
    place: int = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """Some binding of the variables that occur only in here makes the expression TRUE. Stands under `Not`."""

    term: Expression


Leaf: TypeAlias = (
    Comparison
    | Between
    | Membership
    | Like
    | Matches
    | Affix
    | InNetwork
    | IsA
    | IsNull
    | IsTruth
    | Truth
    | Fixed
    | Call
    | Constraint
    | Exists
)
Term: TypeAlias = Variable | Field | Operand | Arithmetic
"""What a constraint compares."""

Expression: TypeAlias = Leaf | Not | And | Or
