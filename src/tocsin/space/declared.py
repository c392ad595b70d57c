"""What a space must know of an operator to check and place a call of it; operators themselves live in another room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.errors import NotEnabledError, OperatorError, TypeClashError, UnknownFieldError, UnsupportedExpressionError
from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.language.tree import (
    And,
    Call,
    Constant,
    Constraint,
    Exists,
    Expression,
    Field,
    Fixed,
    Not,
    Operand,
    Or,
    Slot,
    Variable,
)
from tocsin.space.codes import Codec, Doubles, Integers, ValueProblem
from tocsin.space.space import Space, nearest_of
from tocsin.space.types import Text

Constants = tuple[Any, ...]
"""The values of the constants of one call, in order; fields and variables are None."""


class Declared(Protocol):
    """An operator as it was declared.

    ``parameters`` are the names of what a call gives it, ``outputs`` of what it binds, ``reads`` the fields that it
    reads of every event. ``bounded`` are the positions of parameters that `bounds` can bound.
    """

    name: str
    version: str
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[str, ...]
    variadic: bool
    takes_null: bool
    bounded: frozenset[int]

    def refuse(self, arguments: Constants, constants: Constants) -> str | None:
        """Return what is wrong with the arguments of a call, or None: ``arguments`` has None in place of each field,
        ``constants`` are the constants alone."""

    def bounds(self, constants: list[Constants], position: int) -> npt.NDArray[np.float64]:
        """Return, for each call, the least and the greatest value at a position that can satisfy it: [calls, 2]."""


def check_call(call: Call, space: Space, operators: Mapping[str, Any], text: str) -> Call:
    """Return the call with its operator and its fields resolved; raise what is wrong with it."""
    operator: Declared | None
    try:
        operator = operators.get(call.name)
    except OperatorError as error:  # it is offered, but cannot be had: this text is to blame for it alone
        raise NotEnabledError(str(error), text, call.place) from error
    if operator is None:
        advice = nearest_of(call.name, sorted(operators))
        raise NotEnabledError(f"there is no operator {call.name}; {advice}", text, call.place)
    inputs, given = len(operator.parameters), len(call.arguments)
    least = inputs + len(operator.outputs)
    if not operator.outputs and operator.variadic and given > inputs:
        inputs = given
    elif given not in (least, inputs if operator.outputs else least):
        wanted = ", ".join((*operator.parameters, *(f":{name}" for name in operator.outputs)))
        raise UnsupportedExpressionError(
            f"{call.name} takes {least} arguments, not {given}: {call.name}({wanted})", text, call.place
        )
    arguments: list[Field | Operand | Variable] = []
    for position, argument in enumerate(call.arguments):
        if isinstance(argument, Variable) and position < inputs:
            reason = f":{argument.name} stands where {call.name} takes a value; variables stand for what it returns"
            raise UnsupportedExpressionError(reason, text, call.place)
        if isinstance(argument, Field):
            argument = _field(argument, space, text)
            if position >= inputs:
                reason = f"{argument.name} stands where {call.name} returns something; write a variable or a constant"
                raise UnsupportedExpressionError(reason, text, call.place)
        arguments.append(argument)
    for name in operator.reads:
        if not name:
            raise TypeClashError(f"{call.name} reads a field without a name", text, call.place)
    found = Call(call.name, tuple(arguments), call.place, operator)
    if not any(isinstance(argument, Slot) for argument in arguments):
        problem = _refusal(found)
        if problem is not None:
            raise UnsupportedExpressionError(f"{call.name}: {problem}", text, call.place)
    return found


def inputs_of(call: Call) -> tuple[Any, ...]:
    """Return the arguments of a call that its operator is given; the others stand for what it returns."""
    return call.arguments[: len(call.operator.parameters)] if call.operator.outputs else call.arguments


def is_null_call(call: Call) -> bool:
    """Return whether a call has a constant NULL that its operator does not take: it is unknown, and never made."""
    return not call.operator.takes_null and any(
        isinstance(each, Constant) and each.value is None for each in inputs_of(call)
    )


def _refusal(call: Call) -> str | None:
    """Return what the operator of a call, whose slots are filled, says against its arguments, or None."""
    if is_null_call(call):
        return None
    inputs = inputs_of(call)
    constants = tuple(each.value for each in inputs if isinstance(each, Constant))
    problem: str | None = call.operator.refuse(constants_of(call)[: len(inputs)], constants)
    return problem


def refuse_ordinary(term: Expression, text: str) -> None:
    """Refuse ordinary comparisons inside a NOT that closes variables: there, only calls and constraints stand."""
    if isinstance(term, (And, Or)):
        for each in term.terms:
            refuse_ordinary(each, text)
    elif isinstance(term, (Not, Exists)):
        refuse_ordinary(term.term, text)
    elif not isinstance(term, (Call, Constraint, Fixed)):
        reason = (
            "inside a NOT around variables of its own there are operator calls and comparisons of variables only; "
            "write this outside it"
        )
        raise UnsupportedExpressionError(reason, text, term.field.place)


def constants_of(call: Call) -> Constants:
    """Return the values of the constants of a call whose slots are filled.

    >>> constants_of(Call("near", (Field(("a",)), Constant(5, "integer"), Variable("d"))))
    (None, 5, None)
    """
    return tuple(argument.value if isinstance(argument, Constant) else None for argument in call.arguments)


def implied_codes(calls: list[Call], position: int, codec: Codec) -> npt.NDArray[np.int64]:
    """Return the least and greatest code at a position of each call: int64[2, calls], an empty one as HIGHEST, NULL.

    ValueProblem names the first call whose bounds cannot be had.
    """
    bounds = _bounds(calls, position)
    codes = np.empty((2, len(calls)), np.int64)
    if isinstance(codec, Doubles):
        codes[0], codes[1] = (codec.codes(pa.array(np.ascontiguousarray(side))) for side in bounds.T)
    elif isinstance(codec, Integers):  # an integer of more than 53 bits may be rounded on its way to the operator
        low, high = np.nextafter(bounds[:, 0], -np.inf), np.nextafter(bounds[:, 1], np.inf)
        codes[0] = np.clip(np.ceil(low), -(2.0**62), 2.0**62)
        codes[1] = np.clip(np.floor(high), -(2.0**62), 2.0**62)
        codes[0][low < -(2.0**62)], codes[1][high > 2.0**62] = LOWEST, HIGHEST
    else:
        codes[0], codes[1] = LOWEST, HIGHEST
    empty = bounds[:, 0] > bounds[:, 1]
    codes[0][empty], codes[1][empty] = HIGHEST, NULL
    return codes


def _bounds(calls: list[Call], position: int) -> npt.NDArray[np.float64]:
    """Return the bounds of calls; one that is no number, or of a call that is never made, is no bound."""
    operator: Declared = calls[0].operator
    bounds = np.tile(np.array([-np.inf, np.inf]), (len(calls), 1))
    made = [at for at, call in enumerate(calls) if not is_null_call(call)]
    constants = [constants_of(calls[at]) for at in made]
    try:
        found = operator.bounds(constants, position) if made else bounds[:0]
    except OperatorError as error:
        for at, each in zip(made, constants, strict=True):
            try:
                operator.bounds([each], position)
            except OperatorError as alone:
                raise ValueProblem(str(alone), at) from alone
        raise ValueProblem(str(error)) from error
    bounds[made] = np.where(np.isnan(found), bounds[made], found)
    return bounds


def refuse_constants(call: Call, row: int) -> None:
    """Raise what an operator says against the constants of a filled call."""
    if call.operator is not None:
        problem = _refusal(call)
        if problem is not None:
            raise ValueProblem(f"{call.name}: {problem}", row)


def _field(field: Field, space: Space, text: str) -> Field:
    path = space.find(field.path)
    if path is None:
        raise UnknownFieldError(f"there is no field {field.name!r}; {space.nearest(field.name)}", text, field.place)
    kind = space.scalar(path)
    if field.transform and not isinstance(kind, Text):
        reason = f"{field.transform} takes text, and {field.name} is {kind.type}"
        raise TypeClashError(reason, text, field.place)
    return Field(path, field.transform, field.place)
