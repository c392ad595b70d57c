"""What may be an id: one scalar of a kind that an Arrow column can hold, the same kind for all of a matcher."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import SubscriptionError
from tocsin.language.arrays import numbers_of
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.space.scalars import brief

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "double"),
    (str, "text"),
    (bytes, "bytes"),
    (Decimal, "decimal"),
    (datetime, "timestamp"),
    (date, "date"),
    (time, "time"),
    (timedelta, "duration"),
    (UUID, "UUID"),
)


_KIND_BY_TYPE = dict(_KINDS)

MAX_ID = 2**63 - 1
"""The greatest integer id that is given alone; a column of uint64 may hold greater ones."""

_MAX_DIGITS = 76
"""The digits of Arrow's widest decimal."""

NO_ID = "the id is NULL"
NAN_ID = "the id is NaN, which equals nothing and would never be found again"


def kind_of(id: Any) -> str:
    """Return what kind of value an id is; refuse one that no column could hold, or that would not be found again.

    >>> kind_of("a"), kind_of(True), kind_of(2**63)
    ('text', 'boolean', 'unsigned integer')
    """
    if id is None:
        raise SubscriptionError(NO_ID)
    kind = _KIND_BY_TYPE.get(type(id)) or next((name for type, name in _KINDS if isinstance(id, type)), None)
    if kind is None:
        names = ", ".join(name for _, name in _KINDS)
        raise SubscriptionError(f"an id is a single value ({names}), not {brief(id)}, a {type(id).__name__}")
    if is_nan(id):
        raise SubscriptionError(NAN_ID)
    if isinstance(id, Decimal) and not _fits_column(id):
        raise SubscriptionError(f"a decimal id is finite and has at most {_MAX_DIGITS} digits, not {brief(id)}")
    if kind == "integer" and not -MAX_ID - 1 <= id <= MAX_ID:
        if not MAX_ID < id < 2**64:
            raise SubscriptionError(f"an integer id has at most 64 bits, not {brief(id)}; use it as text")
        return "unsigned integer"
    if kind == "text":
        _check_text(id)
    return f"{kind} with a zone" if kind == "timestamp" and id.tzinfo is not None else kind


def _fits_column(id: Decimal) -> bool:
    """Return whether an Arrow column can hold a decimal."""
    if not id.is_finite():
        return False
    return sum(_widths(id)) <= _MAX_DIGITS


def _widths(id: Decimal) -> tuple[int, int]:
    """Return how many digits a finite decimal has before and behind its point."""
    _, digits, exponent = id.as_tuple()
    behind = max(-int(exponent), 0)
    return max(len(digits) + int(exponent), 0), behind


def _check_together(subscriptions: Subscriptions, ids: Iterable[Decimal]) -> None:
    """Refuse the first decimal id that does not fit one column with those held and those before it: a column has room
    for the most digits before the point and the most behind it."""
    held, exact = subscriptions.decimal_digits or _most(subscriptions.ids()), False
    own = 0, 0
    for id in ids:
        own = _most([id], own)
        if not exact and _digits(held, own) > _MAX_DIGITS:  # ids that are gone need no room
            held, exact = _most(subscriptions.ids()), True
        if _digits(held, own) > _MAX_DIGITS:
            raise SubscriptionError(
                f"the id {brief(id)} does not fit one column with the others: before and behind the point they have "
                f"more than {_MAX_DIGITS} digits together, the most of a column of decimals; use texts"
            )
    subscriptions.decimal_digits = max(held[0], own[0]), max(held[1], own[1])


def _digits(held: tuple[int, int], own: tuple[int, int]) -> int:
    """Return how many digits a column has for two groups of decimals."""
    return max(held[0], own[0]) + max(held[1], own[1])


def _most(ids: Iterable[Decimal], least: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Return the most digits that some decimals have before and behind their points."""
    before, behind = least
    for id in ids:
        some, others = _widths(id)
        before, behind = max(before, some), max(behind, others)
    return before, behind


def is_nan(id: Any) -> bool:
    """Return whether an id is not a number, and so equals nothing.

    >>> is_nan(float("nan")), is_nan(Decimal("sNaN")), is_nan("nan")
    (True, True, False)
    """
    if isinstance(id, Decimal):
        return id.is_nan()
    return isinstance(id, (float, datetime)) and id != id  # NaT of pandas is a datetime


def checked_id(subscriptions: Subscriptions, id: Any) -> Any:
    """Return an id as it will be held (a NumPy scalar as the plain value); refuse one of another kind than those
    held."""
    plain = id.item() if isinstance(id, np.generic) else id
    kind = kind_of(plain)
    if kind == "unsigned integer":
        raise SubscriptionError(f"the id {plain} is beyond 2**63 - 1; give such ids in a table, as a column of uint64")
    held = subscriptions.any_id()
    if held is not None and kind_of(held) != kind:
        raise _mixture(held, kind, brief(plain))
    if kind == "decimal":
        _check_together(subscriptions, [plain])
    return plain


def check_column(subscriptions: Subscriptions, ids: pa.Array) -> None:
    """Refuse a column of ids of another kind than those held; it has one kind by its type."""
    some = ids.drop_null() if ids.null_count else ids
    if pa.types.is_floating(ids.type):
        some = some.filter(pc.invert(pc.is_nan(some)))
    if len(some):
        first = int(numbers_of(some).max()) if pa.types.is_integer(ids.type) else some[0].as_py()
        held, kind = subscriptions.any_id(), kind_of(first)
        if held is not None and kind_of(held) != kind:
            raise _mixture(held, kind, f"column of {ids.type}")
        if kind == "decimal":
            _check_together(subscriptions, some.to_pylist())


def _mixture(held: Any, kind: str, said: str) -> SubscriptionError:
    return SubscriptionError(
        f"all ids of a matcher are of one kind, so that they fit one column: there are ids like {held!r} "
        f"({kind_of(held)}), and {said} is {kind}"
    )


def _check_text(id: str) -> None:
    try:
        id.encode()
    except UnicodeEncodeError:
        raise SubscriptionError(f"the id is not valid text: {id!r}") from None
