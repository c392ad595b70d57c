"""Which orders of operator calls there are to choose of; `orders` is what they do."""

from __future__ import annotations

from typing import Literal, get_args

from tocsin.arguments import brief, is_one_of
from tocsin.errors import OperatorError

Order = Literal["naive", "sequential", "sub-order", "adaptive"]


def check_order(order: str) -> None:
    """Refuse an order that is not there.

    >>> check_order("best")
    Traceback (most recent call last):
    ...
    tocsin.errors.OperatorError: order is one of naive, sequential, sub-order, adaptive, not 'best'
    """
    if not is_one_of(order, get_args(Order)):
        raise OperatorError(f"order is one of {', '.join(get_args(Order))}, not {brief(order)}")
