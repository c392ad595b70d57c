"""Making the calls of one batch of events: each at most once a row, what a NULL stands in not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.errors import OperatorFailedError
from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators.programs import IS_NULL, IS_TRUE
from tocsin.operators.bindings import ANY_OUTCOME, UNKNOWN_OUTCOME, Outcome
from tocsin.operators.bulk import Answer, bulk_states
from tocsin.operators.conditions import Conditions, Family
from tocsin.operators.events import Events
from tocsin.operators.learning import Learned
from tocsin.operators.operator import Operator
from tocsin.operators.running import Runner, clock


class _Single(NamedTuple):
    """What calls of one scalar family for one row have in common: the values of its fields, None if one is NULL."""

    family: Family
    runner: Runner
    values: list[Any] | None
    spent: list[float]  # calls made and their seconds, not yet noted


class Calls:
    """The calls made for one batch, with their outcomes, and the errors of events that come of them."""

    def __init__(
        self,
        conditions: Conditions,
        events: Events,
        learned: Learned,
        runner: Callable[[Operator], Runner],
        any_unspecified: bool,
    ) -> None:
        self._conditions, self._events = conditions, events
        self._learned, self._runner = learned, runner
        self.missing = ANY_OUTCOME if any_unspecified else UNKNOWN_OUTCOME
        self._outcomes: dict[tuple[int, int], Outcome] = {}
        self._singles: dict[tuple[int, int], _Single] = {}
        self.errors: dict[int, OperatorFailedError] = {}
        self._answers: dict[int, list[tuple[Int64s, Answer]]] = {}

    def ask(self, family: int, keys: Int64s) -> Answer:
        """Ask a bulk operator about calls for rows, the keys ``row << 32 | call`` in order; remember the answer."""
        found = self._conditions.families[family]
        members = self._conditions.call_member.array[keys & 0xFFFFFFFF]
        runner = self._runner(found.operator)
        answer = bulk_states(found, runner, self._events, keys >> 32, members, self.missing.state)
        self._answers.setdefault(family, []).append((keys, answer))
        return answer

    def _asked(self, family: int, key: int) -> tuple[Answer, int] | None:
        """Return the answer that has a call for a row, and where in it; None if that was not asked."""
        for keys, answer in self._answers.get(family, ()):
            at = int(np.searchsorted(keys, key))
            if at < len(keys) and keys[at] == key:
                return answer, at
        return None

    def run(self, calls: Int32s, rows: list[int]) -> list[Outcome]:
        """Run calls for rows: those of one operator together, and of a vector operator those of one call."""
        numbers = calls.tolist()
        found: list[Outcome] = [UNKNOWN_OUTCOME] * len(rows)
        groups: dict[tuple[int, int], list[int]] = {}
        for at, call in enumerate(numbers):
            family = int(self._conditions.call_family.array[call])
            vector = self._conditions.families[family].operator.form == "vector"
            groups.setdefault((family, call if vector else -1), []).append(at)
        for (family, _), places in groups.items():
            outcomes = self._group(family, [numbers[at] for at in places], [rows[at] for at in places])
            for at, outcome in zip(places, outcomes, strict=True):
                found[at] = outcome
        return found

    def one(self, call: int, row: int) -> Outcome:
        """Return the outcome of one call; what it cost is noted by `settle`."""
        key = row, call
        known = self._outcomes.get(key)
        if known is not None:
            return known
        family = int(self._conditions.call_family.array[call])
        single = self._singles.get((row, family))
        if single is None:
            if self._conditions.families[family].operator.form != "scalar":
                return self._group(family, [call], [row])[0]
            single = self._singles[row, family] = self._single(family, row)
        if single.values is None:
            outcome = self.missing
        else:
            arguments = _arguments(single.family, single.values, self._constants(single.family, call))
            begun = clock()
            outcome = single.runner.one(arguments)
            single.spent[1] += clock() - begun
            single.spent[0] += 1.0
            if outcome.failure is not None:
                self.note_failure(single.family.operator, np.array([row]), outcome, 1)
        self._outcomes[key] = outcome
        return outcome

    def settle(self) -> None:
        """Note what the calls made one by one have cost."""
        for single in self._singles.values():
            if single.spent[0]:
                self._learned.ran(single.family.operator, int(single.spent[0]), single.spent[1])
        self._singles.clear()

    def _single(self, number: int, row: int) -> _Single:
        family = self._conditions.families[number]
        values = [self._events.values(path, np.array([row]))[0] for path in family.paths]
        null = not family.operator.takes_null and any(value is None for value in values)
        runner = self._runner(family.operator)
        runner.prepare()
        return _Single(family, runner, None if null else values, [0.0, 0.0])

    def _group(self, family: int, calls: list[int], rows: list[int]) -> list[Outcome]:
        """Run calls of one family; what a NULL stands in is not run."""
        found = self._conditions.families[family]
        operator = found.operator
        if operator.form == "bulk":
            return [self._bulk_one(family, call, row) for call, row in zip(calls, rows, strict=True)]
        columns = [self._events.values(path, np.array(rows)) for path in found.paths]
        outcomes: list[Outcome] = [self.missing] * len(rows)
        given = [
            at for at in range(len(rows)) if operator.takes_null or all(column[at] is not None for column in columns)
        ]
        runner = self._runner(operator)
        runner.prepare()
        begun = clock()
        if operator.form == "vector" and given:
            constants = self._constants(found, calls[0])
            arguments = _vector_arguments(found, [[column[at] for at in given] for column in columns], constants)
            results = runner.vector(arguments, (), len(given))
        else:
            values = ([column[at] for column in columns] for at in given)
            constant = (self._constants(found, calls[at]) for at in given)
            results = runner.many([_arguments(found, *both) for both in zip(values, constant, strict=True)])
        self._learned.ran(operator, len(given), clock() - begun)
        for at, outcome in zip(given, results, strict=True):
            outcomes[at] = outcome
            if outcome.failure is not None:
                self.note_failure(operator, np.array([rows[at]]), outcome, 1)
        for call, row, outcome in zip(calls, rows, outcomes, strict=True):
            self._outcomes[row, call] = outcome
        return outcomes

    def _bulk_one(self, family: int, call: int, row: int) -> Outcome:
        """Return the outcome of one bulk call, for a join."""
        operator = self._conditions.families[family].operator
        key = row << 32 | call
        answer, at = self._asked(family, key) or (self._ask_one(family, key), 0)
        if answer.failure is not None and at in answer.asked:
            outcome = Outcome(IS_NULL, (), *answer.failure)
        else:
            bound = operator.outputs and answer.state[at] == IS_TRUE
            outcome = Outcome(int(answer.state[at]), ((float(answer.value[at]),),) if bound else ())
        self._outcomes[row, call] = outcome
        return outcome

    def _ask_one(self, family: int, key: int) -> Answer:
        operator = self._conditions.families[family].operator
        begun = clock()
        answer = self.ask(family, np.array([key]))
        self._learned.ran(operator, 1, clock() - begun)
        if answer.failure is not None:
            self.note_failure(operator, np.array([key >> 32]), Outcome(IS_NULL, (), *answer.failure), 1)
        return answer

    def _constants(self, family: Family, call: int) -> Any:
        return family.prepared.values[int(self._conditions.call_member.array[call])]

    def note_failure(self, operator: Operator, rows: npt.NDArray[Any], outcome: Outcome, times: int) -> None:
        """Count a failure, and make it the error of these rows if the operator says so."""
        for _ in range(times):
            self._learned.failed(operator, str(outcome.failure), outcome.message)
        if operator.on_failure == "error":
            for row in rows.tolist():
                told = f"{outcome.failure}: {outcome.message}".rstrip(": ")
                error = OperatorFailedError(f"row {row}, operator {operator.name}: {told}")
                error.row = row  # type: ignore[attr-defined]
                self.errors.setdefault(row, error)


def _arguments(family: Family, values: list[Any], constants: Any) -> tuple[Any, ...]:
    """Return the arguments of a function in the order of its parameters."""
    reads = len(family.operator.reads)
    if family.operator.prepare is not None:
        return (*values, constants)
    fixed = constants if isinstance(constants, tuple) else (constants,)
    if len(values) == reads:
        return (*values, *fixed)
    given, rest = iter(values[reads:]), iter(fixed)
    return (*values[:reads], *(next(given) if path is not None else next(rest, None) for path in family.inputs))


def _vector_arguments(family: Family, columns: list[list[Any]], constants: Any) -> list[Any]:
    return list(_arguments(family, columns, constants))
