"""Asking bulk operators: all pairs of events and constants of a family in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators.programs import IS_FALSE, IS_NULL, IS_TRUE
from tocsin.operators.conditions import Family
from tocsin.operators.events import Events
from tocsin.operators.isolation import TooLongError
from tocsin.operators.operator import Asked


class Answer(NamedTuple):
    """The state of each pair asked and, of an operator with an output, its value; or how the whole call failed."""

    state: npt.NDArray[np.int8]
    value: npt.NDArray[np.float64]
    failure: tuple[str, str] | None = None


def bulk_states(family: Family, events: Events, rows: Int64s, members: Int32s) -> Answer:
    """Return what a bulk operator says of each pair of an event row and a member of the family."""
    distinct, where = np.unique(rows, return_inverse=True)
    columns = tuple(events.array(path, distinct) for path in family.paths)
    null = np.zeros(len(distinct), bool)
    for column in columns:
        null |= np.isnan(column) if column.dtype != object else np.array([value is None for value in column], bool)
    state = np.full(len(rows), IS_NULL, np.int8)
    value = np.full(len(rows), np.nan)
    asked = np.flatnonzero(~null[where])
    if not len(asked):
        return Answer(state, value)
    question = Asked(columns, family.prepared, where[asked].astype(np.int64), members[asked].astype(np.int64))
    try:
        result = np.asarray(family.operator.function(question))
        if result.shape != asked.shape:
            return Answer(state, value, ("wrong type", f"{result.shape} results for {len(asked)} pairs"))
        if family.operator.outputs:
            value[asked] = result.astype(np.float64)
            state[asked] = np.where(np.isnan(value[asked]), IS_FALSE, IS_TRUE)
        elif result.dtype in (np.bool_, np.int8):
            state[asked] = np.where(result.astype(np.int8) < 0, IS_NULL, np.where(result > 0, IS_TRUE, IS_FALSE))
        else:
            return Answer(state, value, ("wrong type", f"{result.dtype} is no truth"))
    except TooLongError:
        return Answer(state, value, ("too long", ""))
    except Exception as error:  # whatever an operator raises is its failure
        return Answer(state, value, ("raised", f"{type(error).__name__}: {error}"[:500]))
    return Answer(state, value)
