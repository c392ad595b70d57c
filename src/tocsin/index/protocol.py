"""What an engine is: the one protocol that every engine in this room implements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from tocsin.index.boxes import Boxes, Int32s, Moved, Pairs, Queries
from tocsin.index.moves import asked_twice
from tocsin.kernels.picking import pick_over


def under_names(pairs: Pairs, names: Int32s) -> Pairs:
    """Return pairs with other names for the numbers, written over these: a large answer costs by the memory it
    touches."""
    pick_over(names, pairs.numbers)
    return pairs


class Index(Protocol):
    """Boxes under numbers chosen by the caller, and the questions one can ask of them.

    Numbers are non-negative and below 2**31, and free to reuse after removal. Calls that change an index are made by
    one thread at a time; ``overlap`` and ``moved`` may run in any number of threads, beside a change, and answer from
    the state before or after that change, never from one in between.
    """

    name: ClassVar[str]

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes; a number already present, or given twice, raises BoxNumberError and nothing is added."""

    def remove(self, numbers: Int32s) -> None:
        """Forget boxes; an unknown number raises BoxNumberError and nothing is removed."""

    def overlap(self, queries: Queries) -> Pairs:
        """Return every (row, box number) whose box has a point in common with the query."""

    def named_overlap(self, queries: Queries, names: Int32s) -> Pairs:
        """Return the same with other names for the numbers: ``names[number]``."""
        return under_names(self.overlap(queries), names)

    def moved(self, old: Queries, new: Queries) -> Moved:
        """Return which boxes each row has begun and ceased to overlap, moving from ``old`` to ``new``: row by row, so
        that both have as many. An engine that inherits this asks twice and takes the differences."""
        return asked_twice(self, old, new)

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return everything held, sorted by number: what is needed to rebuild the index."""

    def stats(self) -> Mapping[str, Any]:
        """Say what is held, how it is organised and what it costs, in plain values; ``boxes`` and ``bytes`` at
        least."""

    def __len__(self) -> int:
        """Return the number of boxes held."""
