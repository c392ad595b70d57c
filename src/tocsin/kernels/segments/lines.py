"""A query as a line of bytes, one for each column: tested against pairs of words, 16 at once.

As in `vectors.py`, the plain functions say what the compiled ones mean, and run with the JIT off.
"""

from __future__ import annotations

from typing import Any

from tocsin.kernels.vectors import TABLE

LINE = TABLE
"""Bytes of a line: as many as a register has."""

PAIRS = 16
"""Pairs of words that are tested at once."""

BLOCK = 6 * PAIRS
"""Their bytes."""

EDGE = 8
"""Rows and columns that `turn` exchanges at once."""


def both_hold(words: Any, block: Any, lines: Any, query: Any) -> Any:
    """Test a query's bytes against a block of 16 pairs of words; return a bit for each pair of which both may hold.

    ``words`` uint8[BLOCK * blocks]: of each block 16 first and 16 second columns, then as many lowest bytes, then how
    far above those, round at 256, a query's bytes may be. ``lines`` uint8[queries, LINE], with three bytes of memory
    after them: the byte of each query in each column.
    """
    columns, lowest, room = words[BLOCK * block : BLOCK * (block + 1)].reshape(3, 2 * PAIRS)
    held = lines[query, columns] - lowest <= room
    return sum(1 << k for k in range(PAIRS) if held[k] and held[PAIRS + k])


def turn(columns: Any, known: Any, queries: Any, lines: Any) -> None:
    """Write the bytes of so many queries in the columns that are known, of ``columns`` uint8[LINE, queries], into
    ``lines`` uint8[queries, LINE]; of both as many more as fill squares of 8, for which there must be room."""
    known, queries = known + -known % EDGE, queries + -queries % EDGE
    lines[:queries, :known] = columns[:known, :queries].T
