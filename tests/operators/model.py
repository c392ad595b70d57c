"""The definition of subscriptions with operators, in the plainest form: nested loops over everything.

It shares no code and no notion with the product. An expression is a nested tuple:

    ("call", name, constant, outputs)   outputs are ("var", x) or ("const", text, value); constant is ("const", …)
    ("compare", left, sign, right)      sides are ("var", x), ("const", …), ("field", name), ("arith", sign, a, b)
    ("isnull", side)
    ("field", name, sign, text, value)  an ordinary comparison of a field of the event
    ("fixed", truth)
    ("not", e), ("and", e, …), ("or", e, …)

A truth is a pair: whether it counts as TRUE where TRUE is wanted, and as FALSE where FALSE is wanted. TRUE is (1, 0),
FALSE (0, 1), unknown (0, 0). (1, 1) is a call without variables on a field that is unspecified in a space where that
spans the domain: it satisfies whatever is wanted.

An expression is taken apart at its ORs, so that each alternative is a conjunction with variables of its own. A
conjunction is a join, as SQL's: every call outside NOT contributes one of its rows, columns with one variable must be
equal pairwise, and everything else must hold of those values. A NOT holds if its inside, with what the conjunction
around it has bound, is FALSE; calls inside compare what they return with that, and bind it no further.
A call that failed has one row, of values of which nothing is known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

Truth = tuple[bool, bool]
Values = tuple[Any, ...]

TRUE: Truth = (True, False)
FALSE: Truth = (False, True)
UNKNOWN: Truth = (False, False)
ANYTHING: Truth = (True, True)

WITNESSES = range(-1, 6)
"""Values of the price, one on each side of every constant that it is compared with."""

FAILED = "failed"
"""The outcome of a call that raised."""


class Nothing:
    """A value of which nothing is known."""


NOTHING_KNOWN = Nothing()


class World:
    """One event: its fields (a missing one is None), and what each call comes to for it.

    ``outcomes`` has a truth, None, FAILED or a list of rows for each name and constant. ``spans``: an unspecified field
    spans its domain. ``asked`` says whether operators get what they read; otherwise every call is unknown.
    ``tested`` has values that ordinary tests see in place of a field's.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        outcomes: Mapping[tuple[str, Any], Any],
        spans: bool = False,
        asked: bool = True,
        tested: Mapping[str, Any] | None = None,
    ) -> None:
        self.fields, self.outcomes, self.spans, self.asked = fields, outcomes, spans, asked
        self.tested = tested or {}

    def with_price(self, price: int) -> World:
        """Return the event as ordinary tests see it with this price."""
        return World(self.fields, self.outcomes, self.spans, self.asked, {"price": price})


def matches(expression: Any, world: World) -> bool:
    """Return whether an event satisfies a subscription: where a field spans its domain, with some value of it."""
    if world.spans and world.fields.get("price") is None:
        return any(value(expression, world.with_price(price), {})[0] for price in WITNESSES)
    return value(expression, world, {})[0]


def negated(truth: Truth) -> Truth:
    """Return NOT."""
    return truth[1], truth[0]


def both(truths: list[Truth]) -> Truth:
    """Return AND."""
    return all(each[0] for each in truths), any(each[1] for each in truths)


def either(truths: list[Truth]) -> Truth:
    """Return OR."""
    return any(each[0] for each in truths), all(each[1] for each in truths)


def value(expression: Any, world: World, outer: Mapping[str, Values]) -> Truth:
    """Return the truth of an expression; variables that are not bound outside are existential in each alternative."""
    return either([_conjunction(parts, world, outer) for parts in alternatives(expression)])


def alternatives(expression: Any) -> list[list[Any]]:
    """Return the conjunctions of which an expression is the disjunction; what stands under NOT is one part."""
    kind = expression[0]
    if kind == "or":
        return [found for part in expression[1:] for found in alternatives(part)]
    if kind == "and":
        products = itertools.product(*(alternatives(part) for part in expression[1:]))
        return [[each for parts in product for each in parts] for product in products]
    if kind == "not" and expression[1][0] == "not":
        return alternatives(expression[1][1])
    return [[expression]]


def _conjunction(parts: list[Any], world: World, outer: Mapping[str, Values]) -> Truth:
    calls = [part for part in parts if part[0] == "call"]
    others = [part for part in parts if part[0] != "call"]
    found = []
    for rows in itertools.product(*(rows_of(call, world) for call in calls)):
        truths = [truth for truth, _ in rows]
        bound: dict[str, list[Any]] = {}
        for call, (_, row) in zip(calls, rows, strict=True):
            for output, held in zip(call[3], row, strict=False):
                if output[0] == "const":
                    truths.append(compared("=", output[2], held))
                else:
                    known = outer[output[1]] if output[1] in outer else bound.setdefault(output[1], [])
                    truths += [compared("=", each, held) for each in known]
                    if output[1] not in outer:
                        bound[output[1]].append(held)
        inner = {**{name: tuple(values) for name, values in bound.items()}, **outer}
        truths += [_part(part, world, inner) for part in others]
        found.append(both(truths))
    return either(found)


def rows_of(call: Any, world: World) -> list[tuple[Truth, Values]]:
    """Return the rows that a call contributes, with its truth."""
    _, name, constant, outputs = call
    variables = any(output[0] == "var" for output in outputs)
    outcome = world.outcomes[name, constant[2]] if world.asked else None
    if not world.asked and world.spans and not variables and constant[2] is not None:
        return [(ANYTHING, ())]
    if constant[2] is None or outcome is None or outcome is FAILED:
        return [(UNKNOWN, (NOTHING_KNOWN,) * len(outputs))]
    if isinstance(outcome, bool):
        return [(TRUE if outcome else FALSE, ())]
    return [(TRUE, row) for row in outcome]


def _part(part: Any, world: World, bound: Mapping[str, Values]) -> Truth:
    kind = part[0]
    if kind == "not":
        return negated(value(part[1], world, bound))
    if kind == "fixed":
        return UNKNOWN if part[1] is None else TRUE if part[1] else FALSE
    if kind == "field":
        _, name, sign, _, constant = part
        return compared(sign, world.tested.get(name, world.fields.get(name)), constant)
    found = []
    for chosen in choices(sorted(names_in(part)), bound):
        if kind == "isnull":
            held = computed(part[1], world, chosen)
            found.append(UNKNOWN if held is NOTHING_KNOWN else TRUE if held is None else FALSE)
        else:
            found.append(compared(part[2], computed(part[1], world, chosen), computed(part[3], world, chosen)))
    return both(found)


def choices(names: list[str], bound: Mapping[str, Values]) -> Iterator[dict[str, Any]]:
    """Yield each choice of one of its values for every variable."""
    for chosen in itertools.product(*(bound[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def names_in(node: Any) -> set[str]:
    """Return the variables in a part."""
    if not isinstance(node, tuple) or not node:
        return set()
    if node[0] == "var":
        return {node[1]}
    return set().union(*(names_in(each) for each in node)) if node[0] != "const" else set()


class Uncomputed(Exception):  # noqa: N818
    """Arithmetic without a result."""


def computed(side: Any, world: World, bound: Mapping[str, Any]) -> Any:
    """Return the value of one side of a comparison; what cannot be computed is not known."""
    try:
        return _computed(side, world, bound)
    except Uncomputed:
        return NOTHING_KNOWN


def _computed(side: Any, world: World, bound: Mapping[str, Any]) -> Any:
    if side[0] == "var":
        return bound[side[1]]
    if side[0] == "const":
        return side[2]
    if side[0] == "field":
        return world.fields.get(side[1])
    _, sign, left, right = side
    one, other = _computed(left, world, bound), _computed(right, world, bound)
    if one is NOTHING_KNOWN or other is NOTHING_KNOWN:
        raise Uncomputed
    if one is None or other is None:
        if not all(each is None or is_number(each) or isinstance(each, (str, bool)) for each in (one, other)):
            raise Uncomputed
        return None
    if not is_number(one) or not is_number(other):
        raise Uncomputed
    return arithmetic(sign, one, other)


def arithmetic(sign: str, one: Any, other: Any) -> Any:
    """Return a sum, difference or product: of whole numbers within 64 bits, with a double as doubles, else decimals of
    at most 38 digits."""
    if isinstance(one, float) or isinstance(other, float):
        try:
            left, right = float(one), float(other)
        except OverflowError:
            raise Uncomputed from None
        return {"+": left + right, "-": left - right, "*": left * right}[sign]
    exact = {"+": Fraction(one) + Fraction(other), "-": Fraction(one) - Fraction(other)}
    result = exact[sign] if sign in exact else Fraction(one) * Fraction(other)
    if isinstance(one, int) and isinstance(other, int):
        if not -(2**63) <= result < 2**63:
            raise Uncomputed
        return int(result)
    if abs(result) >= 10**30:  # decimals here have few places: what does not fit has more than 38 digits
        raise Uncomputed
    return result


def is_number(held: Any) -> bool:
    """Return whether a value is a number; truths are not."""
    return isinstance(held, (int, float, Decimal, Fraction)) and not isinstance(held, bool)


def compared(sign: str, one: Any, other: Any) -> Truth:
    """Return a comparison as SQL's, exact whatever the types of numbers: NaN is equal to itself and above all."""
    if one is NOTHING_KNOWN or other is NOTHING_KNOWN:
        return UNKNOWN
    if sign == "<=>" and (one is None or other is None):
        return TRUE if one is None and other is None else FALSE
    if one is None or other is None:
        return UNKNOWN
    if is_number(one) and is_number(other):
        left: Any = _placed(one)
        right: Any = _placed(other)
    elif type(one) is type(other) and isinstance(one, (str, bool)):
        left, right = one, other
    else:
        return UNKNOWN
    if left == right:
        holds = sign in ("=", "<=", ">=", "<=>")
    elif left < right:
        holds = sign in ("<", "<=", "<>")
    else:
        holds = sign in (">", ">=", "<>")
    return TRUE if holds else FALSE


def _placed(number: Any) -> tuple[int, Fraction]:
    """Return a number's place in the order of all."""
    if isinstance(number, (float, Decimal)):
        if math.isnan(number):
            return 2, Fraction(0)
        if math.isinf(number):
            return (1 if number > 0 else -1), Fraction(0)
    return 0, Fraction(number)
