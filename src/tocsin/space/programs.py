"""What is left to verify of a candidate, as a small program of tests with jumps.

An instruction tests one thing and says where to go when it holds and when not: to another instruction, to ACCEPT or to
REJECT. There is no negation and no third value: both were settled in the normal form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.index.boxes import Int32s
from tocsin.kernels.operators.programs import ACCEPT, ATOM_FALSE, ATOM_TRUE, EVERY, REJECT, SOME
from tocsin.language import symbolic
from tocsin.language.tree import Leaf
from tocsin.space.axes import Axes


class Skeleton(NamedTuple):
    """A program without its constants, shared by all subscriptions of a template.

    ``start`` is the first instruction. Parallel, an entry an instruction: ``operation``, ``axis``, ``on_true``,
    ``on_false`` (int32); ``sets`` has the set of a test, ``leaves`` the leaf of an atom.
    """

    start: int
    operation: Int32s
    axis: Int32s
    on_true: Int32s
    on_false: Int32s
    sets: tuple[symbolic.Set | None, ...]
    leaves: tuple[Leaf | None, ...]


def compile_rest(rest: tuple[symbolic.Node, ...], axes: Axes) -> Skeleton:
    """Return the program that accepts what satisfies every node."""
    compiler = _Compiler(axes)
    start = compiler.emit(symbolic.AllOf(rest), ACCEPT, REJECT)
    code = np.array(compiler.code, np.int32).reshape(-1, 4)
    operation, axis, on_true, on_false = (np.ascontiguousarray(column) for column in code.T)
    return Skeleton(start, operation, axis, on_true, on_false, tuple(compiler.sets), tuple(compiler.leaves))


class _Compiler:
    """Emits instructions backwards, so that the places to jump to are known."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self.code: list[tuple[int, int, int, int]] = []
        self.sets: list[symbolic.Set | None] = []
        self.leaves: list[Leaf | None] = []

    def emit(self, node: symbolic.Node, on_true: int, on_false: int) -> int:
        """Emit the code of a node; return where it begins."""
        if isinstance(node, symbolic.AllOf):
            for term in sorted(node.terms, key=_cost, reverse=True):
                on_true = self.emit(term, on_true, on_false)
            return on_true
        if isinstance(node, symbolic.AnyOf):
            for term in sorted(node.terms, key=_cost, reverse=True):
                on_false = self.emit(term, on_true, on_false)
            return on_false
        if isinstance(node, symbolic.Check):
            return self._append((ATOM_TRUE if node.wanted else ATOM_FALSE, -1, on_true, on_false), None, node.leaf)
        operation = EVERY if isinstance(node, symbolic.Every) else SOME
        return self._append((operation, self._axes.number(node.axis), on_true, on_false), node.inside, None)

    def _append(self, instruction: tuple[int, int, int, int], inside: symbolic.Set | None, leaf: Leaf | None) -> int:
        self.code.append(instruction)
        self.sets.append(inside)
        self.leaves.append(leaf)
        return len(self.code) - 1


def _cost(node: symbolic.Node) -> int:
    """Return what a node costs to test, roughly: atoms are dear."""
    if isinstance(node, (symbolic.AllOf, symbolic.AnyOf)):
        return sum(map(_cost, node.terms))
    return 1000 if isinstance(node, symbolic.Check) else 1
