"""Random subscriptions with operators, as trees of the model and as texts, and random outcomes of their calls."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from tests.operators.model import FAILED, names_in

OPERATORS: dict[str, tuple[int, str]] = {
    "t_scalar": (0, "scalar"),
    "t_vector": (0, "vector"),
    "t_bulk": (0, "bulk"),
    "t_async": (0, "async"),
    "u_scalar": (1, "scalar"),
    "u_vector": (1, "vector"),
    "u_bulk": (1, "bulk"),
    "u_async": (1, "async"),
    "v_scalar": (2, "scalar"),
    "v_vector": (2, "vector"),
}
"""Each operator with how many outputs it has and how it is called; each takes one constant."""

ARGUMENTS = (("const", "0", 0), ("const", "1", 1))
NULL = ("const", "NULL", None)
NAMES = ("x", "y", "z")
NULLS = 0.05
SIGNS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

PLAIN_VALUES: tuple[Any, ...] = (0, 1, 2, 3, 4)
ODD_VALUES: tuple[Any, ...] = (
    *(float("nan"), -0.0, 0.0, 1.0, 1.5, float("inf"), float("-inf"), 2.0**53, 1e307),
    *(2**53 + 1, 2**53, -(2**63), 2**63, 10**305, 10**400, -(10**400)),
    *(Decimal("1"), Decimal("1.50"), Decimal("-0.0"), True, False, "a", "", "ß", None, b"a"),
)
BULK_VALUES: tuple[Any, ...] = (0.0, -0.0, 1.0, 2.0, 3.0, 4.0, 1.5, float("inf"), 2.0**53)
CONSTANTS = (
    *(("const", str(each), each) for each in (0, 1, 2, 3, 4)),
    *(("const", str(each), each) for each in (0, 1, 2, 3, 4)),
    ("const", "1.5e0", 1.5),
    ("const", "1.0", Decimal("1.0")),
    ("const", "1e307", 1e307),
    ("const", "-0e0", -0.0),
    ("const", "9007199254740993", 2**53 + 1),
    ("const", "'a'", "a"),
    ("const", "TRUE", True),
    ("const", "CAST('NaN' AS DOUBLE)", float("nan")),
    NULL,
)


def text_of(node: Any) -> str:
    """Return a tree as the text of an expression."""
    kind = node[0]
    if kind == "call":
        return f"{node[1]}({', '.join(text_of(each) for each in (node[2], *node[3]))})"
    if kind == "compare":
        return f"{text_of(node[1])} {node[2]} {text_of(node[3])}"
    if kind == "isnull":
        return f"{text_of(node[1])} IS NULL"
    if kind == "field":
        return node[1] if len(node) == 2 else f"{node[1]} {node[2]} {node[3]}"
    if kind == "fixed":
        return {None: "NULL", True: "TRUE", False: "FALSE"}[node[1]]
    if kind == "var":
        return f":{node[1]}"
    if kind == "const":
        return str(node[1])
    if kind == "arith":
        return f"({text_of(node[2])} {node[1]} {text_of(node[3])})"
    if kind == "not":
        return f"NOT ({text_of(node[1])})"
    return "(" + f" {kind.upper()} ".join(text_of(part) for part in node[1:]) + ")"


class Drawing:
    """Draws expressions and outcomes. ``odd`` says how often values are none of the small whole numbers."""

    def __init__(self, rng: random.Random, odd: float, asynchronous: bool) -> None:
        self.rng, self.odd = rng, odd
        self.failing = {name for name, (_, form) in OPERATORS.items() if form == "bulk" and rng.random() < 0.1}
        self.names = [name for name, (_, form) in OPERATORS.items() if asynchronous or form != "async"]

    def expression(self) -> Any:
        """Draw a subscription."""
        depth = self.rng.choice((0, 1, 1, 1, 1, 2))
        several = [self.conjunction(depth, ()) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3)))]
        found = several[0] if len(several) == 1 else ("or", *several)
        return ("not", found) if self.rng.random() < 0.1 else found

    def outcomes(self) -> dict[tuple[str, Any], Any]:
        """Draw what every call comes to for one event."""
        return {(name, argument[2]): self._outcome(name) for name in OPERATORS for argument in ARGUMENTS}

    def conjunction(self, depth: int, outer: tuple[str, ...]) -> Any:
        """Draw parts joined by AND; ``outer`` are the variables that are bound around it."""
        rng = self.rng
        parts: list[Any] = [self._call() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
        if depth and rng.random() < 0.25:
            inside = sorted(_bound(parts)) if rng.random() < 0.5 else []
            parts.append(
                ("or", *(self.conjunction(depth - 1, (*outer, *inside)) for _ in range(rng.choice((2, 2, 3)))))
            )
        known = tuple(sorted({*outer, *_bound(parts)}))
        parts += [self._constraint(known) for _ in range(rng.choice((0, 0, 1, 1, 2)) if known else 0)]
        if rng.random() < 0.25:
            parts.append(self._field())
        parts += [self._negation(depth - 1, known) for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2)) if depth else 0)]
        if rng.random() < 0.03:
            parts.append(("fixed", rng.choice((True, False, None))))
        if not parts:
            parts.append(self._call())
        rng.shuffle(parts)
        return parts[0] if len(parts) == 1 else ("and", *parts)

    def _negation(self, depth: int, known: tuple[str, ...]) -> Any:
        rng, chance = self.rng, self.rng.random()
        if chance < 0.3:
            return ("not", self._call())
        if chance < 0.4:
            return ("not", ("not", self.conjunction(depth, known)))
        if chance < 0.6:
            return ("not", ("or", *(self.conjunction(depth, known) for _ in range(rng.choice((2, 3))))))
        return ("not", self.conjunction(depth, known))

    def _call(self) -> Any:
        rng = self.rng
        name = rng.choice(self.names)
        argument = NULL if rng.random() < NULLS else rng.choice(ARGUMENTS)
        outputs = tuple(
            rng.choice(CONSTANTS) if rng.random() < 0.15 else ("var", rng.choice(NAMES))
            for _ in range(OPERATORS[name][0])
        )
        return ("call", name, argument, outputs)

    def _constraint(self, known: tuple[str, ...]) -> Any:
        rng = self.rng
        left = self._side(known)
        if rng.random() < 0.08:
            found: Any = ("isnull", left)
        else:
            right = rng.choice(CONSTANTS) if rng.random() < 0.6 else self._side(known)
            sides = (left, right) if rng.random() < 0.8 else (right, left)
            found = ("compare", sides[0], rng.choice(SIGNS), sides[1])
        return ("not", found) if rng.random() < 0.2 else found

    def _side(self, known: tuple[str, ...]) -> Any:
        rng, name = self.rng, ("var", self.rng.choice(known))
        chance = rng.random()
        if chance < 0.7:
            return name
        if chance < 0.8:
            return ("arith", "+", name, ("field", "price"))
        return ("arith", rng.choice("+-*"), name, rng.choice((("var", rng.choice(known)), ("const", "2", 2))))

    def _field(self) -> Any:
        number = self.rng.randrange(4)
        return ("field", "price", self.rng.choice(SIGNS[:6]), str(number), number)

    def _outcome(self, name: str) -> Any:
        rng, (outputs, form) = self.rng, OPERATORS[name]
        if name in self.failing or (form != "bulk" and rng.random() < 0.12):  # a bulk call fails for all its pairs
            return FAILED
        if not outputs:
            return rng.choice((True, True, True, False, False, None))
        if form == "bulk":
            return [(rng.choice(BULK_VALUES),)] if rng.random() < 0.8 else []
        return [tuple(self._value() for _ in range(outputs)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]

    def _value(self) -> Any:
        return self.rng.choice(ODD_VALUES if self.rng.random() < self.odd else PLAIN_VALUES)


def _bound(parts: list[Any]) -> set[str]:
    """Return the variables that calls among the parts, or each alternative of an OR among them, bind."""
    found: set[str] = set()
    for part in parts:
        if part[0] == "call":
            found |= names_in(part[3])
        elif part[0] == "and":
            found |= _bound(list(part[1:]))
        elif part[0] == "or":
            found |= set.intersection(*(_bound([each]) for each in part[1:]))
        elif part[0] == "not" and part[1][0] == "not":
            found |= _bound([part[1][1]])
    return found
