"""What may be declared of an operator: settings of the right types that go together, names that mean nothing else."""

from __future__ import annotations

import functools
import inspect
import keyword
import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from tocsin.arguments import brief, expect, expect_flag, expect_text, expect_texts, is_one_of
from tocsin.errors import ArgumentTypeError, ExpressionError, OperatorError
from tocsin.language.formulas import FUNCTIONS
from tocsin.language.parser import parse
from tocsin.language.tree import Call

if TYPE_CHECKING:
    from tocsin.operators.operator import Operator

MOST_RETRIES = 1_000
MOST_REMEMBERED = 10_000_000
LONGEST = 1e6
"""The most seconds of a limit."""

_RESERVED = frozenset(FUNCTIONS) | {"is_a", "in_network", "quantity", "isnull", "isnotnull", "regexp"}
_CHOICES = {
    "form": ("scalar", "vector", "bulk"),
    "on_failure": ("false", "error"),
    "isolate": ("none", "process", "fresh"),
}


@functools.cache
def is_free(name: str) -> bool:
    """Return whether a call of this name, with however many arguments, means nothing else in the language.

    >>> is_free("word_count"), is_free("is_a"), is_free("in_network"), is_free("year")
    (True, False, False, False)
    """
    if name in _RESERVED:
        return False
    for arguments in ("", "a", "a, 'b'", "a, 'b', 'c'"):
        try:
            found = parse(f"{name}({arguments})")
        except ExpressionError:
            return False
        if not isinstance(found, Call) or found.name != name:
            return False
    return True


def check_declared(made: Operator, typed: bool) -> None:
    """Refuse settings that are not what they should be, or do not go together."""
    if not isinstance(made.name, str) or not made.name.isidentifier():
        raise OperatorError(f"an operator is called by a name such as word_count, not {made.name!r}")
    if not is_free(made.name):
        raise OperatorError(f"SQL has a function or a word {made.name}; call the operator something else: name='...'")
    _check_settings(made)
    _check_names(made)
    _check_forms(made)
    if typed and not all(isinstance(kind, type) for kind in made.kinds):
        raise OperatorError(f"{made.name}: outputs are given as a mapping of names to types, such as {{'n': int}}")


def called_of(function: object, name: object) -> str:
    """Return the name that an operator is called by: its own, or its function's."""
    if not callable(function):
        raise ArgumentTypeError(f"an operator is a function, not {brief(function)}")
    expect_text(name, "name", "the name that an operator is called by, such as word_count", optional=True)
    found = name or getattr(function, "__name__", None)
    if found is None:
        raise OperatorError(f"{brief(function)} has no name of its own; call the operator something: name='...'")
    return str(found).lower()


def check_given(
    called: str,
    reads: object,
    outputs: object,
    parameters: object,
    bounded: object,
    form: object,
    variadic: object,
    version: object,
) -> None:
    """Refuse settings that are of wrong types."""
    expect_texts(reads, f"{called}: reads", "a list of names of fields")
    if isinstance(outputs, str) or not isinstance(outputs, (Sequence, Mapping)):
        raise OperatorError(
            f"{called}: outputs is a list of names, or a mapping of names to types, not {brief(outputs)}"
        )
    if parameters is not None:
        expect_texts(parameters, f"{called}: parameters")
    expect(bounded, (Sequence, Set), f"{called}: bounded", "a list of places of parameters, from 0 on")
    for place in bounded:  # type: ignore[attr-defined]
        expect(place, int, f"{called}: each of bounded", "the place of a parameter, from 0 on")
    expect_text(form, f"{called}: form", "'scalar', 'vector' or 'bulk'")
    expect_flag(variadic, f"{called}: variadic")
    expect(version, (str, int), f"{called}: version", "text such as '1'")


def _check_settings(made: Operator) -> None:
    for setting, choices in _CHOICES.items():
        value = getattr(made, setting)
        if not is_one_of(value, choices):
            told = " or ".join([", ".join(map(repr, choices[:-1])), repr(choices[-1])])
            raise OperatorError(f"{made.name}: {setting} is {told}, not {value!r}")
    for setting, most in (("limit", LONGEST), ("cost", math.inf)):
        value = getattr(made, setting)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < value <= most):
            upto = f", at most {most:,.0f}" if most < math.inf else ""
            raise OperatorError(f"{made.name}: {setting} is a number of seconds above 0{upto}, not {value!r}")
    for setting, most in (("retries", MOST_RETRIES), ("remember", MOST_REMEMBERED)):
        value = getattr(made, setting)
        if type(value) is not int or not 0 <= value <= most:
            raise OperatorError(f"{made.name}: {setting} is a whole number from 0 to {most:,}, not {value!r}")
    for setting in ("prepare", "check", "bounding", "resource"):
        value = getattr(made, setting)
        if value is not None and not callable(value):
            raise OperatorError(f"{made.name}: {setting} is a function, not {value!r}")
    if not isinstance(made.takes_null, bool):
        raise OperatorError(f"{made.name}: takes_null is True or False, not {made.takes_null!r}")


def _check_names(made: Operator) -> None:
    for what, names in (("outputs", made.outputs), ("parameters", made.parameters)):
        for each in names:
            if not isinstance(each, str) or not each.isidentifier() or keyword.iskeyword(each):
                raise OperatorError(f"{made.name}: {what} are names such as n or distance, not {each!r}")
        if len(set(names)) < len(names):
            raise OperatorError(f"{made.name}: each of the {what} has a name of its own, not {', '.join(names)}")
    for each in made.reads:
        if not isinstance(each, str) or not all(each.split(".")):
            raise OperatorError(f"{made.name}: reads are names of fields, such as a or a.b, not {each!r}")
    positions = range(len(made.parameters))
    if made.bounded and (made.bounding is None or not made.bounded <= frozenset(positions)):
        raise OperatorError(
            f"{made.name}: bounded are places of its {len(made.parameters)} parameters, from 0 on, and bounding says "
            f"their bounds; bounded is {sorted(made.bounded)} and bounding {'' if made.bounding else 'not '}given"
        )


def _check_forms(made: Operator) -> None:
    if made.isolate != "none" and (made.is_async or made.form == "bulk"):
        raise OperatorError(f"{made.name}: an operator in a process of its own is scalar or vector, and not async")
    if made.resource is not None and made.form == "bulk":
        raise OperatorError(f"{made.name}: an operator with a resource is scalar or vector")
    if made.is_async and made.form != "scalar":
        raise OperatorError(f"{made.name}: an async operator is scalar")
    if inspect.isasyncgenfunction(made.function):
        raise OperatorError(f"{made.name}: an async operator returns what it finds, it does not yield")
    if made.form == "bulk" and len(made.outputs) > 1:
        raise OperatorError(f"{made.name}: a bulk operator has at most one output")
    if made.form == "bulk" and not set(made.kinds) <= {int, float, None}:
        raise OperatorError(f"{made.name}: the output of a bulk operator is a number, of type int or float")


def parameters_of(
    function: Callable[..., Any], reads: Sequence[str], name: str, skip: bool
) -> tuple[tuple[str, ...], bool]:
    """Return the parameters that a call gives, and whether it may give more."""
    try:
        found = inspect.signature(function).parameters
    except ValueError:  # some functions of C say nothing of their parameters
        raise OperatorError(f"{name}: its function does not say its parameters; name them: parameters=[...]") from None
    names = [key for key, each in found.items() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    names = names[1:] if skip else names
    read = [field.replace(".", "_") for field in reads]
    if names[: len(read)] != read:
        raise OperatorError(
            f"{name} reads {', '.join(reads)}: its first parameters must be {', '.join(read)}, not {', '.join(names)}"
        )
    variadic = any(each.kind is each.VAR_POSITIONAL for each in found.values())
    return tuple(names[len(read) :]), variadic
