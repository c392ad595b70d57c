"""The least whole number of 64 bits beside its neighbour.

NULL has taken its code, so that both share one. A comparison with a constant that tells them apart looks at a second
axis, on which the least is 0 and every other number 1.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tocsin.language.symbolic import AllOf, AnyOf, AxisKey, Compared, Intersection, Node, Set, Test
from tocsin.language.tree import Between, Comparison, Constant, Membership, Operand

LEAST = -(2**63)


def least_apart(leaf: Comparison | Between | Membership, inside: Set | None, wanted: bool) -> Node:
    """Return what makes a leaf TRUE (``wanted``) or FALSE; ``inside`` are the codes for which it is."""
    if inside is None:
        return AnyOf(())
    path = leaf.field.path
    own, apart = AxisKey(path), AxisKey(path, "least")
    shared = Constant(LEAST + 1, "integer")
    found: list[Node] = [Test(own, Intersection((inside, Compared(">", shared))))]
    for side, value in enumerate((LEAST, LEAST + 1)):
        if _holds(leaf, value) is wanted:
            alone = Compared("=", Constant(side, "integer"))
            found.append(AllOf((Test(own, Compared("=", shared)), Test(apart, alone))))
    return AnyOf(tuple(found))


def _holds(leaf: Comparison | Between | Membership, value: int) -> bool | None:
    """Return what a leaf is of one number: True, False, or None for NULL."""
    if isinstance(leaf, Comparison):
        return _related(leaf.operator, value, leaf.constant)
    if isinstance(leaf, Between):
        sides = _related(">=", value, leaf.low), _related("<=", value, leaf.high)
        return False if False in sides else None if None in sides else True
    members = [_related("=", value, constant) for constant in leaf.constants]
    return True if True in members else None if None in members else False


def _related(operator: str, value: int, operand: Operand) -> bool | None:
    assert isinstance(operand, Constant)  # what a slot holds is known where it tells numbers apart
    constant: Any = operand.value
    if constant is None:
        return None
    if isinstance(constant, float):  # Spark compares as doubles, of which NaN is the greatest
        above = constant != constant or float(value) < constant
        equal = float(value) == constant
    else:
        above, equal = Decimal(value) < constant, Decimal(value) == constant
    return {"=": equal, "<=>": equal, "<>": not equal, "<": above, "<=": above or equal}.get(
        operator, not above if operator == ">=" else not above and not equal
    )
