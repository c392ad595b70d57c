"""Which subscriptions may come in: ids once each and not NULL, texts that are there, the rest told why not."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.arguments import expect, expect_choice
from tocsin.errors import DuplicateSubscriptionError, ExpressionError, SubscriptionError, TocsinError
from tocsin.index.boxes import Int64s
from tocsin.language.arrays import text_array
from tocsin.matcher.ids import NAN_ID, NO_ID, check_column, is_nan
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.space.filling import Filled

Duplicates = Literal["error", "replace"]


class Problem(NamedTuple):
    """A row that was refused, and why."""

    row: int
    id: Any
    error: TocsinError


Problems: TypeAlias = list[Problem] | None
"""Where refused rows are put; without it, the first is raised."""


def admissible(
    subscriptions: Subscriptions, ids: pa.Array, texts: pa.Array, duplicates: Duplicates
) -> tuple[Int64s, list[Problem]]:
    """Return the rows whose id and text may be used at all, and the problems of the others."""
    check_column(subscriptions, ids)
    refused: list[Problem] = []
    known = ids.to_pylist()
    if not ids.null_count and not texts.null_count and not pa.types.is_floating(ids.type):
        found = subscriptions.slots_of(known)
        if len(found) == len(known) and (duplicates == "replace" or set(found.values()) <= {None}):
            return np.arange(len(known)), refused
    seen: dict[Any, int] = {}
    blank = np.array(texts.is_null())
    good = np.ones(len(known), bool)
    for row, id in enumerate(known):
        error: TocsinError | None = None
        if id is None or is_nan(id):
            error = SubscriptionError(NO_ID if id is None else NAN_ID)
        elif id in seen:
            error = DuplicateSubscriptionError(f"the id {id!r} stands in row {seen[id]} already")
        elif duplicates == "error" and id in subscriptions:
            error = DuplicateSubscriptionError(f"there is a subscription {id!r} already; pass duplicates='replace'")
        elif blank[row]:
            error = ExpressionError("the expression is NULL")
        if error is not None:
            refused.append(Problem(row, id, error))
            good[row] = False
        else:
            seen[id] = row
    return np.flatnonzero(good), refused


def only(filled: Filled, fine: npt.NDArray[np.bool_]) -> Filled:
    """Return what was filled with its rows renumbered, the bad ones having no box."""
    if fine.all():
        return filled
    place = np.cumsum(fine) - 1
    return filled._replace(rows=place[filled.rows].astype(np.int32), problems={})


def single_text(expression: Any) -> pa.Array:
    """Return one expression as an array of texts; ExpressionError if it is none."""
    if not isinstance(expression, str):
        raise ExpressionError(
            "the expression is NULL" if expression is None else f"an expression is text, not {expression!r}"
        )
    try:
        return text_array([expression])
    except UnicodeEncodeError:
        raise ExpressionError(f"the expression is not valid text: {expression!r}") from None


def check_duplicates(duplicates: str) -> None:
    """Refuse another word than the two that say what to do with an id that is there already."""
    expect_choice(duplicates, "duplicates", "error", "replace")


def check_problems(problems: object) -> None:
    """Refuse what cannot take the problems of rows."""
    expect(problems, (list, type(None)), "problems", "a list that problems are appended to, or None")
