"""Making the calls of one batch of events: each at most once a row, what a NULL stands in not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.errors import OperatorFailedError
from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators.programs import IS_NULL
from tocsin.operators.bindings import ANY_OUTCOME, UNKNOWN_OUTCOME, Outcome
from tocsin.operators.bulk import Answer, bulk_states
from tocsin.operators.conditions import NEVER_MADE, Conditions, Family
from tocsin.operators.events import Events
from tocsin.operators.learning import Learned
from tocsin.operators.operator import Operator
from tocsin.operators.running import MISFIT, Runner, clock
from tocsin.space.operands import Misfit


class _Single(NamedTuple):
    """What calls of one scalar family for one row have in common: the values of its fields, and what they come to
    beforehand if one is NULL or does not fit."""

    family: Family
    runner: Runner
    values: list[Any]
    beforehand: Outcome | None
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
        self.has_failed = False
        self._answers: dict[int, list[tuple[Int64s, Answer]]] = {}

    def ask(self, family: int, keys: Int64s) -> Answer:
        """Ask a bulk operator about pairs of a row and a call, ``row << 32 | call``, ascending; count what it does."""
        found = self._conditions.families[family]
        operator = found.operator
        rows = keys >> 32
        begun = clock()
        members = self._conditions.call_member.array[keys & 0xFFFFFFFF]
        answer = bulk_states(found, self._runner(operator), self._events, rows, members, self.missing.state)
        self._learned.ran(operator, len(answer.asked), clock() - begun)
        if answer.failure is not None:
            failed = np.unique(rows[answer.asked])
            self.note_failure(operator, failed, Outcome(IS_NULL, (), *answer.failure), len(answer.asked))
        for at, reason in answer.misfits.items():
            if reason:
                self.note_failure(operator, rows[at : at + 1], answer.outcome(at, False), 1)
        self._answers.setdefault(family, []).append((keys, answer))
        return answer

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
        member = int(self._conditions.call_member.array[call])
        if member == NEVER_MADE:
            outcome = UNKNOWN_OUTCOME
        elif single.beforehand is not None:
            outcome = single.beforehand
            if outcome.failure is not None:
                self.note_failure(single.family.operator, np.array([row]), outcome, 1)
        else:
            arguments = _arguments(single.family, single.values, single.family.prepared.values[member])
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
        values = [self._events.values(each, np.array([row]))[0] for each in family.fields]
        runner = self._runner(family.operator)
        runner.prepare()
        return _Single(family, runner, values, self._beforehand(family.operator, values), [0.0, 0.0])

    def _beforehand(self, operator: Operator, values: list[Any]) -> Outcome | None:
        """Return what a call with these values comes to without being made; None if it is to be made."""
        for value in values:
            if type(value) is Misfit:
                return Outcome(IS_NULL, (), MISFIT, value.reason) if value.reason else UNKNOWN_OUTCOME
        is_null = not operator.takes_null and any(value is None for value in values)
        return self.missing if is_null else None

    def _group(self, family: int, calls: list[int], rows: list[int]) -> list[Outcome]:
        """Run calls of one family; what a NULL stands in is not run."""
        found = self._conditions.families[family]
        operator = found.operator
        if operator.form == "bulk":
            return [self._bulk_one(family, call, row) for call, row in zip(calls, rows, strict=True)]
        columns = [self._events.values(each, np.array(rows)) for each in found.fields]
        members = self._conditions.call_member.array[calls].tolist()
        outcomes: list[Outcome] = []
        given: list[int] = []
        for at, values in enumerate(zip(*columns, strict=True) if columns else [()] * len(rows)):
            beforehand = UNKNOWN_OUTCOME if members[at] == NEVER_MADE else self._beforehand(operator, list(values))
            outcomes.append(beforehand or UNKNOWN_OUTCOME)
            if beforehand is None:
                given.append(at)
        runner = self._runner(operator)
        runner.prepare()
        begun = clock()
        if operator.form == "vector" and given:
            constants = self._constants(found, calls[0])
            arguments = _arguments(found, [[column[at] for at in given] for column in columns], constants)
            results = runner.vector(list(arguments), (), len(given))
        else:
            values_of = ([column[at] for column in columns] for at in given)
            constant = (self._constants(found, calls[at]) for at in given)
            results = runner.many([_arguments(found, *both) for both in zip(values_of, constant, strict=True)])
        self._learned.ran(operator, len(given), clock() - begun)
        for at, outcome in zip(given, results, strict=True):
            outcomes[at] = outcome
        for call, row, outcome in zip(calls, rows, outcomes, strict=True):
            if outcome.failure is not None:
                self.note_failure(operator, np.array([row]), outcome, 1)
            self._outcomes[row, call] = outcome
        return outcomes

    def _bulk_one(self, family: int, call: int, row: int) -> Outcome:
        """Return the outcome of one bulk call, for a join; it is asked only if it was not before."""
        operator = self._conditions.families[family].operator
        key = row << 32 | call
        for keys, known in self._answers.get(family, ()):
            at = int(np.searchsorted(keys, key))
            if at < len(keys) and keys[at] == key:
                answer = known
                break
        else:
            at, answer = 0, self.ask(family, np.array([key], np.int64))
        outcome = self._outcomes[row, call] = answer.outcome(at, bool(operator.outputs))
        return outcome

    def _constants(self, family: Family, call: int) -> Any:
        return family.prepared.values[int(self._conditions.call_member.array[call])]

    def note_failure(self, operator: Operator, rows: npt.NDArray[Any], outcome: Outcome, times: int) -> None:
        """Count a failure, and make it the error of these rows if the operator says so."""
        self.has_failed = True
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
    return (*values[:reads], *(next(given) if each is not None else next(rest, None) for each in family.inputs))
