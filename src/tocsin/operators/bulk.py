"""Asking bulk operators: all pairs of events and constants of a family in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators.programs import IS_FALSE, IS_NULL, IS_TRUE
from tocsin.operators.channels import WrongTypeError
from tocsin.operators.conditions import Family
from tocsin.operators.events import Events
from tocsin.operators.operator import Asked
from tocsin.operators.running import Runner, failure_of

_EXACT = 2**53


class Answer(NamedTuple):
    """The state of each pair and, of an operator with an output, its value; which pairs it was asked about, where no
    field is NULL; and how the whole call failed if it did."""

    state: npt.NDArray[np.int8]
    value: npt.NDArray[np.float64]
    asked: Int64s
    failure: tuple[str, str] | None = None


def bulk_states(
    family: Family, runner: Runner, events: Events, rows: Int64s, members: Int32s, missing: int = IS_NULL
) -> Answer:
    """Return what a bulk operator says of each pair of an event row and a member of the family; where a field is NULL,
    it is not asked, and the state is ``missing``.

    A limit holds for the call, that is for all pairs together.
    """
    distinct, where = np.unique(rows, return_inverse=True)
    columns = tuple(events.array(path, distinct) for path in family.paths)
    null = np.zeros(len(distinct), bool)
    for column in columns:
        null |= np.isnan(column) if column.dtype != object else np.array([value is None for value in column], bool)
    state = np.full(len(rows), missing, np.int8)
    value = np.full(len(rows), np.nan)
    asked = np.flatnonzero(~null[where])
    state[asked] = IS_NULL
    if not len(asked):
        return Answer(state, value, asked)
    question = Asked(columns, family.prepared, where[asked].astype(np.int64), members[asked].astype(np.int64))
    last = family.operator.retries
    for attempt in range(last + 1):
        try:
            value[asked], state[asked] = _checked(family, runner.guarded((question,)), len(asked))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever an operator raises is its failure
            if attempt == last:
                return Answer(state, value, asked, failure_of(error))
            continue
        break
    return Answer(state, value, asked)


def _checked(family: Family, given: Any, pairs: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
    """Return the values and states of an answer; one that is not what was declared is a failure."""
    try:
        result = np.asarray(given)
        if result.shape != (pairs,):
            raise WrongTypeError(f"{result.shape} results for {pairs} pairs")
        if family.operator.outputs:
            value = _numbers(result, family.operator.kinds[0])
            return value, np.where(np.isnan(value), IS_FALSE, IS_TRUE).astype(np.int8)
        if result.dtype not in (np.bool_, np.int8):
            raise WrongTypeError(f"{result.dtype} is no truth")
        state = np.where(result.astype(np.int8) < 0, IS_NULL, np.where(result > 0, IS_TRUE, IS_FALSE))
        return np.full(pairs, np.nan), state.astype(np.int8)
    except (TypeError, ValueError) as error:  # a result that is no array of numbers
        raise WrongTypeError(str(error)) from None


def _numbers(result: npt.NDArray[Any], kind: type | None) -> npt.NDArray[np.float64]:
    """Return numbers as doubles, if they are numbers and doubles hold them."""
    if result.dtype.kind == "O":
        if not all(each is None or type(each) in (int, float) or isinstance(each, np.floating) for each in result):
            raise WrongTypeError("some results are no numbers")
        whole = np.array([each for each in result if type(each) is int], object)
    elif result.dtype.kind not in "iuf":
        raise WrongTypeError(f"{result.dtype} is no number")
    else:
        whole = result if result.dtype.kind in "iu" else np.zeros(0)
    if ((whole > _EXACT) | (whole < -_EXACT)).any():
        raise WrongTypeError("some results are beyond 2 ** 53, which doubles do not hold")
    value: npt.NDArray[np.float64] = result.astype(np.float64)
    if kind is int and (value[~np.isnan(value)] % 1.0 != 0.0).any():
        raise WrongTypeError("some results are no whole numbers")
    return value
