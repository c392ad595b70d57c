"""Putting subscriptions in place: programs and slots first, the boxes last, so that readers find all or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.index.boxes import Int32s
from tocsin.matcher.state import State
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.space.filling import Filled

_NONE = np.empty(0, np.int32)


def put_in_place(state: State, subscriptions: Subscriptions, ids: Any, texts: pa.Array, filled: Filled) -> Int32s:
    """Add filled subscriptions; return the numbers of the boxes that they replace, which are still in the index."""
    numbers, replaced = numbered(state, subscriptions, ids, texts, filled)
    try:
        if len(numbers):
            state.index.insert(numbers, filled.boxes)
    except BaseException:  # an interrupt too leaves nothing half done
        subscriptions.take_back(ids, numbers)
        raise
    subscriptions.publish(replaced)
    return replaced


def numbered(
    state: State, subscriptions: Subscriptions, ids: Any, texts: pa.Array, filled: Filled
) -> tuple[Int32s, Int32s]:
    """Make subscriptions known; return the numbers of their boxes, and those that they replace."""
    if len(texts) == 1 == len(filled.rows) and not filled.programs and not filled.conditions and type(ids) is list:
        number = subscriptions.add_one(ids[0], texts[0].as_py())
        if number is not None:
            return number, _NONE
    counts = np.bincount(filled.rows, minlength=len(texts))
    programs = np.full(len(filled.rows), -1, np.int32)
    for program in filled.programs:
        programs[program.boxes] = state.programs.add(program)
    return subscriptions.add(ids, texts, counts, programs, state.programs.conditions.add_all(filled))
