"""Asking bulk operators: all pairs of events and constants of a family in one call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators.programs import IS_FALSE, IS_NULL, IS_TRUE
from tocsin.operators.bindings import Outcome
from tocsin.operators.channels import WrongTypeError
from tocsin.operators.conditions import NEVER_MADE, Family
from tocsin.operators.events import Events
from tocsin.operators.operator import Asked
from tocsin.operators.running import MISFIT, Runner, failure_of
from tocsin.space.operands import Misfit

_EXACT = 2**53


class Answer(NamedTuple):
    """The state of each pair asked and, of an operator with an output, its value (which may be ``whole`` numbers); or
    how the whole call failed. ``misfits`` are the pairs in which a field does not fit, with the reason, or is a range,
    without one; ``asked`` those that the operator was asked about."""

    state: npt.NDArray[np.int8]
    value: npt.NDArray[np.float64]
    failure: tuple[str, str] | None = None
    whole: bool = False
    misfits: Mapping[int, str] = MappingProxyType({})
    asked: Int64s = np.zeros(0, np.int64)

    def outcome(self, at: int, has_outputs: bool) -> Outcome:
        """Return what one of the pairs came to."""
        if self.failure is not None and np.diff(np.searchsorted(self.asked, [at, at + 1]))[0]:
            return Outcome(IS_NULL, (), *self.failure)
        if self.misfits.get(at):
            return Outcome(IS_NULL, (), MISFIT, self.misfits[at])
        if not has_outputs or self.state[at] != IS_TRUE:
            return Outcome(int(self.state[at]))
        value = float(self.value[at])
        return Outcome(IS_TRUE, ((int(value) if self.whole else value,),))


def bulk_states(
    family: Family, runner: Runner, events: Events, rows: Int64s, members: Int32s, unspecified: int = IS_NULL
) -> Answer:
    """Return what a bulk operator says of each pair of an event row and a member of the family; where a field is NULL,
    it is not asked, and the state is ``unspecified``.

    Only the events that have a value for every field are shown to it. A limit holds for the call, that is for all
    pairs together.
    """
    state, value = np.full(len(rows), IS_NULL, np.int8), np.full(len(rows), np.nan)
    distinct, where = np.unique(rows, return_inverse=True)
    columns, shown, misfits = _columns(family, events, distinct)
    made = members != NEVER_MADE
    bad: dict[int, str] = {}
    if shown.all() and made.all():
        asked = np.arange(len(rows))
    else:
        asked = np.flatnonzero(shown[where] & made)
        missing = ~shown[where] & made
        bad = {at: misfits[place] for at, place in enumerate(where.tolist()) if made[at] and place in misfits}
        missing[list(bad)] = False
        state[missing] = unspecified
    if not len(asked):
        return Answer(state, value, misfits=bad)
    places = where[asked] if shown.all() else (np.cumsum(shown) - 1)[where[asked]]
    question = Asked(columns, family.prepared, places.astype(np.int64), members[asked].astype(np.int64))
    last = family.operator.retries
    whole = False
    for attempt in range(last + 1):
        try:
            value[asked], state[asked], whole = _checked(family, runner.guarded((question,)), len(asked))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever an operator raises is its failure
            if attempt == last:
                return Answer(state, value, failure_of(error), False, bad, asked)
            continue
        break
    return Answer(state, value, None, whole, bad, asked)


def _columns(
    family: Family, events: Events, rows: Int64s
) -> tuple[tuple[npt.NDArray[Any], ...], npt.NDArray[np.bool_], dict[int, str]]:
    """Return the columns of the events that are shown to an operator, which those are, and what is wrong with others:
    by their places among the rows."""
    takes_null = family.operator.takes_null
    found = [events.array(each, rows, takes_null) for each in family.fields]
    shown = np.ones(len(rows), bool)
    for _, there in found:
        shown &= there
    if shown.all():
        return tuple(column for column, _ in found), shown, {}
    misfits: dict[int, str] = {}
    for each in family.fields:
        for at, value in enumerate(events.values(each, rows)):
            if type(value) is Misfit:
                misfits.setdefault(at, value.reason)
    return tuple(column[shown[there]] for column, there in found), shown, misfits


def _checked(family: Family, given: Any, pairs: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8], bool]:
    """Return the values and states of an answer, and whether the values are whole numbers; one that is not what was
    declared is a failure."""
    try:
        result = np.asarray(given)
        if result.shape != (pairs,):
            raise WrongTypeError(f"{result.shape} results for {pairs} pairs")
        if family.operator.outputs:
            kind = family.operator.kinds[0]
            value = _numbers(result, kind)
            given_whole = result.dtype.kind in "iu" or all(type(each) in (int, type(None)) for each in result)
            whole = kind is int or (kind is None and given_whole)
            return value, np.where(np.isnan(value), IS_FALSE, IS_TRUE).astype(np.int8), whole
        if result.dtype not in (np.bool_, np.int8):
            raise WrongTypeError(f"{result.dtype} is no truth")
        state = np.where(result.astype(np.int8) < 0, IS_NULL, np.where(result > 0, IS_TRUE, IS_FALSE))
        return np.full(pairs, np.nan), state.astype(np.int8), False
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
