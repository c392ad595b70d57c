"""Running the function of an operator: its arguments, its limit, its failures, and what its results mean."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from types import AsyncGeneratorType, CoroutineType
from typing import Any

import numpy as np

from tocsin.kernels.operators.programs import IS_FALSE, IS_NULL, IS_TRUE
from tocsin.operators.bindings import NOTHING_BOUND, UNKNOWN_OUTCOME, Outcome
from tocsin.operators.channels import TooLongError, WrongTypeError
from tocsin.operators.isolation import Loops, SuspendedError, Threads
from tocsin.operators.keys import exact_key
from tocsin.operators.operator import Operator
from tocsin.operators.processes import ElsewhereError, processes_of
from tocsin.operators.resources import loaded_of
from tocsin.operators.serving import told, whole
from tocsin.operators.values import plain, shown

RAISED = "raised"
WRONG_TYPE = "wrong type"
TOO_LONG = "too long"
SUSPENDED = "suspended"
MISFIT = "misfit"
"""A value of the event does not fit its dimension, so that the call is not made."""

MOST_AT_ONCE = 256
"""So many calls of an async operator run at the same time at most; the others wait for them, and their limit with
them."""

_SEVERAL: tuple[Any, ...] = (list, set, frozenset)
_TRUE, _FALSE = Outcome(IS_TRUE), Outcome(IS_FALSE)


class Runner:
    """Runs one operator. Results of equal arguments may be remembered over events, for this version of it only."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self._threads, self._loops = Threads(operator.name), Loops(operator.name)
        weakref.finalize(self, _end, self._threads, self._loops)
        self._processes = processes_of(operator)
        self._loaded = None if operator.resource is None else loaded_of(operator)
        self._remembered: OrderedDict[Any, Outcome] = OrderedDict()
        self._is_many = operator.remember > 0 or operator.is_async
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Do what is done once, so that it is not taken for the time of a call; whatever fails is told by the call."""
        with contextlib.suppress(Exception, SystemExit):
            if self._processes is not None:
                self._processes.prepare()
            else:
                self._resource()

    def one(self, arguments: tuple[Any, ...]) -> Outcome:
        """Return the outcome of one call."""
        return self.many([arguments])[0] if self._is_many else self._tried(arguments)

    def many(self, calls: list[tuple[Any, ...]]) -> list[Outcome]:
        """Return the outcomes of calls, those of a coroutine at the same time."""
        keys = [self._key(arguments) for arguments in calls]
        found = [self._known(key) for key in keys]
        todo = [at for at, outcome in enumerate(found) if outcome is None]
        for at, outcome in zip(todo, self._run([calls[at] for at in todo]), strict=True):
            found[at] = outcome
            self._remember(keys[at], outcome)
        return [outcome for outcome in found if outcome is not None]

    def vector(self, columns: list[list[Any]], constants: tuple[Any, ...], count: int) -> list[Outcome]:
        """Return the outcomes of one call for many events."""
        for attempt in range(self.operator.retries + 1):
            try:
                results = self.guarded((*columns, *constants))
                results = results.tolist() if isinstance(results, np.ndarray) else list(results)
                if len(results) != count:
                    raise WrongTypeError(f"{len(results)} results for {count} events")
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a user's function raises is its failure
                if attempt == self.operator.retries:
                    return [_failed(error)] * count
                continue
            return [self._outcome_of(result) for result in results]
        raise AssertionError

    def _run(self, calls: list[tuple[Any, ...]]) -> list[Outcome]:
        if not self.operator.is_async:
            return [self._tried(arguments) for arguments in calls]
        outcomes: dict[int, Outcome] = {}
        todo = list(range(len(calls)))
        for _ in range(self.operator.retries + 1):
            for at, result in zip(todo, self._gathered([calls[at] for at in todo]), strict=True):
                failed = isinstance(result, BaseException)
                outcomes[at] = _failed(result) if failed else self._outcome_of(result)
            todo = [at for at in todo if outcomes[at].failure]
        return [outcomes[at] for at in range(len(calls))]

    def _gathered(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        """Return the results of coroutines and, in their places, exceptions."""
        if not calls:
            return []
        try:
            function = partial(self.operator.function, *self._resource())
            found: list[Any] = []
            for start in range(0, len(calls), MOST_AT_ONCE):
                some = [partial(function, *arguments) for arguments in calls[start : start + MOST_AT_ONCE]]
                found += self._loops.gather(some, self.operator.limit)
            return found
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the loading of a resource, or no loop to be had
            return [error] * len(calls)

    def _tried(self, arguments: tuple[Any, ...]) -> Outcome:
        outcome = UNKNOWN_OUTCOME
        for _ in range(self.operator.retries + 1):
            try:
                outcome = self._outcome_of(self.guarded(arguments))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a user's function raises is its failure
                outcome = _failed(error)
            if outcome.failure is None:
                break
        return outcome

    def guarded(self, arguments: tuple[Any, ...]) -> Any:
        """Call the function, within its limit if it has one; raise what it raises, or `TooLongError`."""
        if self._processes is not None:
            return self._processes.call(arguments, self.operator.limit)
        arguments = (self.operator.function, *self._resource(), *arguments)
        if self.operator.limit is None:
            return whole(*arguments)
        return self._threads.call(whole, arguments, self.operator.limit)

    def _resource(self) -> tuple[Any, ...]:
        return () if self._loaded is None else (self._loaded.value,)

    def _outcome_of(self, result: Any) -> Outcome:
        """Return what a result means; one that is not what was declared is a failure."""
        try:
            return outcome_of(self.operator, result)
        except Exception as error:  # a result may raise when it is looked at
            return _failed(error if isinstance(error, WrongTypeError) else WrongTypeError(told(error)))

    def _key(self, arguments: tuple[Any, ...]) -> Any:
        """Return what results are remembered by, None if they are not."""
        if not self.operator.remember:
            return None
        try:
            return exact_key(arguments)
        except TypeError:  # arguments that cannot be looked up
            return None

    def _known(self, key: Any) -> Outcome | None:
        if key is None:
            return None
        with self._lock:
            found = self._remembered.get(key)
            if found is not None:
                self._remembered.move_to_end(key)
            return found

    def _remember(self, key: Any, outcome: Outcome) -> None:
        if key is None or outcome.failure is not None:
            return
        with self._lock:
            self._remembered[key] = outcome
            while len(self._remembered) > self.operator.remember:
                self._remembered.popitem(last=False)


def _end(threads: Threads, loops: Loops) -> None:
    """End what ran the calls of an operator, once nobody calls it through this runner any more."""
    threads.end()
    loops.end()


def outcome_of(operator: Operator, result: Any) -> Outcome:
    """Return what a result means.

    >>> from tocsin.operators.operator import operator
    >>> outcome_of(operator(lambda: 3, name="people", outputs=["n"]), [3, 4]).bindings
    ((3,), (4,))
    """
    if not operator.outputs:
        if result is None:
            return UNKNOWN_OUTCOME
        if not isinstance(result, (bool, np.bool_)):
            raise WrongTypeError(f"{shown(result)} is no truth")
        return _TRUE if result else _FALSE
    if result is None:
        return NOTHING_BOUND
    if isinstance(result, (CoroutineType, AsyncGeneratorType)):
        raise WrongTypeError(f"{shown(result)} is nothing yet; an async operator is declared by async def")
    found: Iterable[Any] = result if len(operator.outputs) == 1 and isinstance(result, np.ndarray) else [result]
    for kind in _SEVERAL:
        if isinstance(result, kind):
            found = kind.__iter__(result)  # what derives from one may have no end
    bindings = tuple(_binding(operator, each) for each in found)
    return Outcome(IS_TRUE, bindings) if bindings else NOTHING_BOUND


def _binding(operator: Operator, given: Any) -> tuple[Any, ...]:
    values = (given,) if len(operator.outputs) == 1 and not isinstance(given, tuple) else given
    if not isinstance(values, tuple) or len(values) != len(operator.outputs):
        raise WrongTypeError(f"{shown(given)} is no tuple of {', '.join(operator.outputs)}")
    found = tuple(map(plain, values))
    for name, kind, value in zip(operator.outputs, operator.kinds, found, strict=True):
        if kind is None or value is None:
            continue
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits and not (kind is float and type(value) is int):
            raise WrongTypeError(f"{name} is {shown(value)}, not {kind.__name__}")
    return found


def failure_of(error: BaseException) -> tuple[str, str]:
    """Return how a call failed and what is told of it.

    >>> failure_of(ZeroDivisionError("by zero"))
    ('raised', 'ZeroDivisionError: by zero')
    """
    for kind, name in ((TooLongError, TOO_LONG), (SuspendedError, SUSPENDED), (WrongTypeError, WRONG_TYPE)):
        if isinstance(error, kind):
            return name, str(error)[:500]
    return RAISED, (str(error) if isinstance(error, ElsewhereError) else told(error))[:500]


def _failed(error: BaseException) -> Outcome:
    return Outcome(IS_NULL, (), *failure_of(error))


def clock() -> float:
    """Return a time in seconds, for measuring costs."""
    return time.perf_counter()
