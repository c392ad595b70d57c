"""From text to tree: Spark SQL through sqlglot, a documented subset of it, every refusal with its place.

sqlglot never sees the literals. They are cut out first (see `literals`), and it parses the text with the number of each
literal in its place, so that one parse serves every text of the same template and Spark's rules of escaping are ours.
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from tocsin.errors import ExpressionLimitError, ExpressionSyntaxError
from tocsin.kernels.language import literals as classes
from tocsin.language.arrays import text_array
from tocsin.language.literals import KINDS, refusal, split_texts
from tocsin.language.plain import plain_comparison
from tocsin.language.tree import Constant, Expression, Operand, Slot

T = TypeVar("T")

_FIRST = np.zeros(1, np.int64)

_SHALLOW = 16
_DEEP_LIMIT = 20_000
_deep_lock = threading.Lock()
_here = threading.local()


class Template:
    """One template: its text, the classes of its literals, and how positions map back to a text that has it."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.classes = [ord(character) for character in template if ord(character) in KINDS]

    def parse(self, bound: dict[int, Constant]) -> Expression:
        """Return the tree, with a `Slot` for each literal that is not bound to a constant."""

        def operand(number: int, place: int) -> Operand:
            if number >= len(self.classes):
                raise ExpressionSyntaxError("this number cannot stand here", self.template, place)
            return bound.get(number) or Slot(number, KINDS[self.classes[number]], place=place)

        return deeply(self.template, lambda: _parse(self.template, self.template, self.classes, operand, lambda at: at))


def parse(text: str) -> Expression:
    """Return the tree of an expression.

    >>> parse("price <= 400 AND city IN ('NYC', 'LA')").terms[0].constant
    Constant(value=400, kind='integer', place=9)
    >>> parse("price <")
    Traceback (most recent call last):
    ...
    tocsin.errors.ExpressionSyntaxError: something is missing after this (line 1, column 7)
      price <
            ^
    """
    problem = refusal(text)
    if problem is not None:
        raise problem
    batch = split_texts(text_array([text]))
    template = Template(batch.templates[0])
    encoded = text.encode()
    begins = (np.frombuffer(encoded, np.uint8) & 0xC0) != 0x80  # the bytes that begin a character
    characters = np.concatenate([np.zeros(1, np.int64), np.cumsum(begins)])
    starts = characters[batch.split.literal_start[: len(template.classes)]].tolist()
    ends = characters[batch.split.literal_end[: len(template.classes)]].tolist()
    places = _Places(template.template, starts, ends)

    def operand(number: int, place: int) -> Operand:
        if number >= len(template.classes):  # sqlglot saw a number where the scanner saw a part of a name: a.5D
            raise ExpressionSyntaxError("this number cannot stand here", text, place)
        literals = batch.literals(_FIRST, number, template.classes[number])
        constant = literals.constant(0)
        return Constant(constant.value, constant.kind, place=starts[number])

    return deeply(
        template.template, lambda: _parse(text, template.template, template.classes, operand, places.original)
    )


def deeply(text: str, call: Callable[[], T]) -> T:
    """Run a recursive function over an expression, on a thread with a deep stack if the expression nests deeply."""
    if getattr(_here, "deep", False):
        return call()
    try:
        if nesting(text) <= _SHALLOW:
            return call()
    except RecursionError:
        pass
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        _here.deep = True
        try:
            outcome.append(call())
        except BaseException as error:  # handed to the caller below
            errors.append(error)

    with _deep_lock:
        limit, stack = sys.getrecursionlimit(), threading.stack_size(256 * 1024 * 1024)
        sys.setrecursionlimit(max(limit, _DEEP_LIMIT))
        try:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(stack)
    if errors and isinstance(errors[0], RecursionError):
        raise ExpressionLimitError(
            "the expression nests too deeply; write it with fewer NOTs, signs or parentheses", text, 0
        )
    if errors:
        raise errors[0]
    return outcome[0]


def nesting(text: str) -> int:
    """Return how deep the parentheses of a text nest.

    >>> nesting("(a) OR ((b))")
    2
    """
    deepest = depth = 0
    for sign in re.findall(r"[()]", text):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    return deepest


class _Places:
    """Maps positions in the text that sqlglot parsed back to positions in the text that the user wrote."""

    def __init__(self, template: str, starts: list[int], ends: list[int]) -> None:
        self._parsed, self._written = [0], [0]
        parsed = number = 0
        for character in template:
            if ord(character) in KINDS:
                self._parsed.append(parsed)
                self._written.append(starts[number])
                parsed += len(_marker(number, ord(character)))
                self._parsed.append(parsed)
                self._written.append(ends[number])
                number += 1
            else:
                parsed += 1

    def original(self, at: int) -> int:
        """Return the position in the written text."""
        nearest = bisect_right(self._parsed, at) - 1
        return self._written[nearest] + at - self._parsed[nearest]


def _marker(number: int, literal_class: int) -> str:
    """Return what stands for a literal in the text for sqlglot; the blank keeps two literals side by side apart."""
    return f"'{number}' " if literal_class >= classes.PLAIN else f"{number} "


def _parse(
    text: str,
    template: str,
    literal_classes: list[int],
    operand: Callable[[int, int], Operand],
    original: Callable[[int], int],
) -> Expression:
    """Parse the template: by itself where it is plain, else with sqlglot."""
    plain = plain_comparison(template, operand, original)
    if plain is not None:
        return plain
    numbers = iter(range(len(literal_classes)))
    marked = "".join(
        _marker(next(numbers), ord(character)) if ord(character) in KINDS else character for character in template
    )
    if not marked.strip():
        raise ExpressionSyntaxError("the expression is empty; TRUE matches everything", text, 0)
    from tocsin.language.sql import translated

    return translated(marked, text, literal_classes, operand, original)
