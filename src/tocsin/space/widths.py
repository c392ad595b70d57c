"""How many intervals the sets of texts have, so that texts with few and with many are not filled together.

Sets are filled as columns, padded to the widest: where one concept of many parents has a thousand intervals, a million
texts beside it would be padded to a thousand each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tocsin.language import symbolic
from tocsin.language.literals import Literals
from tocsin.language.tree import Operand
from tocsin.language.variables import parts_of
from tocsin.space.codes import Codec
from tocsin.space.concepts import ConceptCodes
from tocsin.space.plan import Plan

Rows = npt.NDArray[np.int64]

NARROW = 16
_CELLS = 2**22


def by_width(plan: Plan, codecs: Sequence[Codec], rows: Rows, supply: Callable[[Operand], Literals]) -> list[Rows]:
    """Return the rows in groups that are filled together: all of them unless some have many intervals."""
    widths = np.ones(len(rows))
    for box in plan.boxes:
        tested = list(zip(box.axes, box.sets, strict=True))
        if box.program is not None:
            tested += [(at, inside) for at, inside in zip(box.program.axis, box.program.sets, strict=True) if inside]
        for axis, inside in tested:
            codec = codecs[axis]
            if isinstance(codec, ConceptCodes):
                widths = np.maximum(widths, _width(codec, inside, supply, len(rows)))
    if widths.max(initial=1) <= NARROW:
        return [rows]
    kinds = np.ceil(np.log2(np.maximum(widths, NARROW))).astype(np.int64)
    groups = []
    for kind in np.unique(kinds):
        some = np.flatnonzero(kinds == kind)
        most = max(1, _CELLS >> int(min(kind, 22)))
        groups += [rows[some[start : start + most]] for start in range(0, len(some), most)]
    return groups


def _width(
    codec: ConceptCodes, inside: symbolic.Set, supply: Callable[[Operand], Literals], count: int
) -> npt.NDArray[np.float64]:
    """Return how many intervals a set may have for each row: sums in a union, products in an intersection."""
    both = any(True for _ in parts_of(inside, symbolic.Intersection))
    found = np.ones(count)
    for below in parts_of(inside, symbolic.Below):
        each = np.sum([np.broadcast_to(codec.widths(supply(one)), count) for one in below.constants], axis=0)
        found = found * each if both else found + each - 1
    return found
