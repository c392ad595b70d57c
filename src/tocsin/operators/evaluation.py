"""Deciding candidate pairs by operators: bulk ones first, then the others in order, then the joins of what they bound.

For each event the calls that its candidates want are the tasks; one is chosen, run, its result entered, and so on until
every candidate is decided. The rows of a batch go in step: each round runs the calls that all rows have
chosen, those of one call together.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.errors import OperatorFailedError
from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.operators import ordering
from tocsin.kernels.operators.programs import IS_FALSE, IS_NULL, IS_TRUE
from tocsin.language.tree import Call
from tocsin.language.variables import parts_of
from tocsin.operators.bindings import ANY_OUTCOME, Known, Outcome, holds, three_valued
from tocsin.operators.bulk import Answer
from tocsin.operators.calling import Calls
from tocsin.operators.conditions import Condition, Conditions, signs_hold
from tocsin.operators.events import Events
from tocsin.operators.joins import TOO_MANY, TooManyBindingsError
from tocsin.operators.learning import Learned
from tocsin.operators.operator import Operator
from tocsin.operators.orders import CODES, build_graph, chain_key, new_progress, sorted_graph, sub_order
from tocsin.operators.running import Runner

_MOST_ENTRIES = 4_000_000
_FEW = 8


class Decided(NamedTuple):
    """Which pairs are accepted, and why events failed whose operators make that an error of the event."""

    accepted: npt.NDArray[np.bool_]
    errors: dict[int, OperatorFailedError]


class Evaluator:
    """Evaluates the conditions of one matcher, and learns while it does."""

    def __init__(self, order: str, any_unspecified: bool = False) -> None:
        self.order = order
        self.learned = Learned()
        self._any = any_unspecified
        self._runners: dict[Operator, Runner] = {}
        self._ranks: tuple[Conditions | None, int, Int64s] = (None, 0, np.zeros(0, np.int64))

    def decide(self, conditions: Conditions, events: Events, rows: Int32s, numbers: Int32s) -> Decided:
        """Return which pairs of event row and condition hold; pairs are sorted by row."""
        batch = _Batch(self, conditions, events, self._any)
        return Decided(self._accepted(batch, conditions, rows, numbers), batch.errors)

    def truths(self, conditions: Conditions, events: Events, numbers: Int32s) -> list[bool | None]:
        """Return of each condition whether the only event satisfies it; None where it might but for a failed call."""
        batch = _Batch(self, conditions, events, self._any)
        rows = np.zeros(len(numbers), np.int32)
        found: list[bool | None] = list(self._accepted(batch, conditions, rows, numbers).tolist())
        for at in np.flatnonzero(~np.array(found, bool)).tolist() if batch.has_failed else ():
            with suppress(TooManyBindingsError):
                found[at] = None
                found[at] = three_valued(conditions.sources[int(numbers[at])], batch.known(0))
        return found

    def _accepted(self, batch: _Batch, conditions: Conditions, rows: Int32s, numbers: Int32s) -> npt.NDArray[np.bool_]:
        accepted = batch.bulk(rows, numbers)
        alive = np.flatnonzero(accepted)
        sizes = np.diff(conditions.offsets.array)[numbers[alive]]
        ends = np.cumsum(sizes)
        start = 0
        while start < len(alive):
            reach = int(np.searchsorted(ends, (ends[start - 1] if start else 0) + _MOST_ENTRIES, "right"))
            stop = max(reach, start + 1)
            while stop < len(alive) and rows[alive[stop]] == rows[alive[stop - 1]]:
                stop += 1
            part = alive[start:stop]
            accepted[part] = batch.ordered(rows[part], numbers[part])
            start = stop
        return batch.joined(rows, numbers, accepted)

    def known(self, conditions: Conditions, events: Events, row: int) -> Known:
        """Return what is known of an event; calls are made when they are asked for."""
        return _Batch(self, conditions, events, self._any).known(row)

    def runner(self, operator: Operator) -> Runner:
        """Return what runs an operator."""
        found = self._runners.get(operator)
        if found is None:
            found = self._runners.setdefault(operator, Runner(operator))
        return found

    def rank(self, conditions: Conditions) -> Int64s:
        """Return the place of each condition in `sub-order`, computed anew when a tenth more have come."""
        ranked, held, rank = self._ranks
        count = len(conditions)
        if ranked is not conditions or count > held + held // 10:
            probability = self.learned.selectivity(conditions)
            cost = self.learned.costs(conditions)[conditions.literal_call.array]
            scaled = cost / (cost.mean() or 1.0) if len(cost) else cost
            offsets = conditions.offsets.array[: count + 1]
            rank = sub_order(offsets, conditions.members.array[: offsets[-1]], probability, scaled)
            self._ranks = conditions, count, rank
        return rank


class _Walk(NamedTuple):
    """A graph that is walked: how far, in which order, what holds, and what is known beforehand."""

    graph: ordering.Graph
    progress: ordering.Progress
    code: int
    holding: npt.NDArray[np.bool_]
    kill: npt.NDArray[np.float64]
    cost: npt.NDArray[np.float64]

    def following(self, row: int, task: int) -> int:
        """Enter what holds of a row's task, unless that is NOTHING; return the task that comes next."""
        return int(ordering.step(self.graph, self.progress, self.code, row, task, self.holding, self.kill, self.cost))


class _Batch:
    """The work on one batch of events."""

    def __init__(self, evaluator: Evaluator, conditions: Conditions, events: Events, any_unspecified: bool) -> None:
        self._evaluator, self._conditions, self._events = evaluator, conditions, events
        self._learned = evaluator.learned
        self._calls = Calls(conditions, events, evaluator.learned, evaluator.runner, any_unspecified)

    @property
    def errors(self) -> dict[int, OperatorFailedError]:
        """Why events are errors, by row."""
        return self._calls.errors

    @property
    def has_failed(self) -> bool:
        """Whether a call has failed."""
        return self._calls.has_failed

    # Bulk operators

    def bulk(self, rows: Int32s, numbers: Int32s) -> npt.NDArray[np.bool_]:
        """Return which pairs the bulk literals leave."""
        held = self._conditions
        alive = np.ones(len(rows), bool)
        offsets = held.bulk_offsets.array
        counts = offsets[numbers + 1] - offsets[numbers]
        if not counts.any():
            return alive
        pair = np.repeat(np.arange(len(rows)), counts)
        starts = np.cumsum(counts) - counts
        literal = held.bulk_members.array[np.repeat(offsets[numbers] - starts, counts) + np.arange(len(pair))]
        call = held.literal_call.array[literal]
        family = held.call_family.array[call]
        for each in np.unique(family).tolist():
            entry = np.flatnonzero(family == each)
            entry = entry[alive[pair[entry]]]
            if len(entry):
                good = self._bulk_family(each, rows[pair[entry]].astype(np.int64), call[entry], literal[entry])
                alive[pair[entry[~good]]] = False
        return alive

    def _bulk_family(self, family: int, rows: Int64s, calls: Int32s, literals: Int32s) -> npt.NDArray[np.bool_]:
        """Return which literals of one family hold, all calls asked at once."""
        held = self._conditions
        keys, shared = np.unique(rows << 32 | calls, return_inverse=True)
        operator = held.families[family].operator
        answer = self._calls.ask(family, keys)
        self._learned.skipped(operator, 0, len(rows) - len(keys))
        states = answer.state[shared]
        wanted = held.literal_wanted.array[literals] == 1
        good = ((states == IS_TRUE) & wanted) | ((states == IS_FALSE) & ~wanted)
        if operator.outputs:
            good = self._bulk_values(answer, shared, literals, rows, good)
        good = np.asarray(good | ((states == ANY_OUTCOME.state) & ~held.literal_binds.array[literals]), bool)
        self._learned.met(held, literals.astype(np.int64), good)
        return good

    def _bulk_values(
        self, answer: Answer, shared: Int64s, literals: Int32s, rows: Int64s, good: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return which literals over values hold: comparisons with numbers all at once, others one by one."""
        held = self._conditions
        values = answer.value[shared]
        sign = held.literal_sign.array[literals]
        known = answer.state[shared] == IS_TRUE
        quick = known & (sign > 0) & ~np.isnan(values)
        good = good.copy()
        good[quick] = signs_hold(sign[quick], held.literal_bound.array[literals[quick]], values[quick])
        for at in np.flatnonzero(known & ~quick).tolist():
            if held.literals[int(literals[at])].tests:
                good[at] = self._test(int(literals[at]), int(rows[at]), answer.outcome(int(shared[at]), True))
        return good

    # Operators in order

    def ordered(self, rows: Int32s, numbers: Int32s) -> npt.NDArray[np.bool_]:
        """Return which pairs all ordered literals leave."""
        held, order = self._conditions, self._evaluator.order
        code = CODES[order]
        local_rows, first = np.unique(rows, return_index=True)
        local = np.repeat(np.arange(len(local_rows), dtype=np.int32), np.diff(np.append(first, len(rows))))
        back = np.arange(len(rows))
        if code == ordering.SUB_ORDER:
            rank = self._evaluator.rank(held)
            far = np.where(numbers < len(rank), rank[np.minimum(numbers, len(rank) - 1)], len(rank))
            back = np.lexsort((far, local))
            numbers = numbers[back]
        calls = len(held.call_leaf)
        graph = build_graph(
            local, numbers, held.offsets.array, held.members.array, held.literal_call.array, len(local_rows), calls
        )
        if not len(graph.task_call):
            return np.ones(len(rows), bool)
        probability, cost = self._learned.selectivity(held), self._learned.costs(held)
        if code == ordering.SUB_ORDER:
            popularity = np.bincount(held.members.array, minlength=len(probability)).astype(np.float64)
            graph = sorted_graph(graph, chain_key(probability, popularity))
        progress = new_progress(graph)
        kill = np.clip(1.0 - probability, 1e-6, 1.0)
        ordering.start(graph, progress, code, kill, cost)
        self._walk(graph, progress, code, local_rows, kill, cost)
        self._count(graph, progress)
        accepted = np.empty(len(rows), bool)
        accepted[back] = _all_hold(graph, progress)
        return accepted

    def _walk(
        self,
        graph: ordering.Graph,
        progress: ordering.Progress,
        code: int,
        local_rows: Int32s,
        kill: npt.NDArray[np.float64],
        cost: npt.NDArray[np.float64],
    ) -> None:
        """Run task after task until every pair is decided."""
        walk = _Walk(graph, progress, code, np.zeros(len(kill), bool), kill, cost)
        seen: list[int] = []
        held: list[bool] = []
        try:
            if len(local_rows) == 1:
                self._walk_one(walk, int(local_rows[0]), seen, held)
            else:
                self._walk_all(walk, local_rows, seen, held)
        finally:
            self._calls.settle()
        self._learned.met(self._conditions, np.array(seen, np.int64), np.array(held, bool))

    def _walk_one(self, walk: _Walk, event: int, seen: list[int], held: list[bool]) -> None:
        """Run the tasks of the only row."""
        task = walk.following(0, ordering.NOTHING)
        task_call = walk.graph.task_call
        while task != ordering.NOTHING:
            self._enter(walk, task, event, self._calls.one(int(task_call[task]), event), seen, held)
            task = walk.following(0, task)

    def _walk_all(self, walk: _Walk, local_rows: Int32s, seen: list[int], held: list[bool]) -> None:
        """Run the tasks of rows in step."""
        chosen = [(row, walk.following(row, ordering.NOTHING)) for row in range(len(local_rows))]
        while active := [(row, task) for row, task in chosen if task != ordering.NOTHING]:
            events = [int(local_rows[row]) for row, _ in active]
            outcomes = self._calls.run(walk.graph.task_call[[task for _, task in active]], events)
            chosen = []
            for (row, task), event, outcome in zip(active, events, outcomes, strict=True):
                self._enter(walk, task, event, outcome, seen, held)
                chosen.append((row, walk.following(row, task)))

    def _enter(self, walk: _Walk, task: int, event: int, outcome: Outcome, seen: list[int], held: list[bool]) -> None:
        """Note which literals of a task hold."""
        for literal in self._wanted(walk.graph, task):
            good = self._holds(literal, event, outcome)
            walk.holding[literal] = good
            if outcome.failure is None:
                seen.append(literal)
                held.append(good)

    def _wanted(self, graph: ordering.Graph, task: int) -> list[int]:
        """Return the literals of a task's call that pairs of its row have."""
        literals = self._conditions.literals_of_call[graph.task_call[task]]
        if len(literals) <= _FEW:
            return literals
        entries = graph.task_entry[graph.task_offsets[task] : graph.task_offsets[task + 1]]
        return list(np.unique(graph.entry_literal[entries]).tolist())

    # What results mean

    def _holds(self, literal: int, row: int, outcome: Outcome) -> bool:
        """Return whether a literal comes out as wanted."""
        found = self._conditions.literals[literal]
        if outcome.state == ANY_OUTCOME.state:
            return not found.binds
        if not found.tests:
            return outcome.state == (IS_TRUE if found.wanted else IS_FALSE)
        if found.sign and len(outcome.bindings) == 1 and type(outcome.bindings[0][0]) in (int, float):
            value = outcome.bindings[0][0]
            if abs(value) <= 2**53:  # exact as a double, and no NaN
                return bool(signs_hold(np.array([found.sign]), np.array([found.bound]), float(value))[0])
        return self._test(literal, row, outcome)

    def _test(self, literal: int, row: int, outcome: Outcome) -> bool:
        found = self._conditions.literals[literal]
        known = Known(lambda call: outcome, self._events.fields(row))
        if found.wanted:
            return self._within_bounds(found.tests, row, partial(holds, found.tests, known))
        return self._within_bounds(found.tests, row, lambda: three_valued(found.tests, known) is False)

    def _within_bounds(self, checks: Condition, row: int, ask: Callable[[], bool]) -> bool:
        """Return what is asked; where that takes too many combinations of bindings, the operators have failed."""
        try:
            return ask()
        except TooManyBindingsError as error:
            outcome = Outcome(IS_NULL, (), TOO_MANY, str(error))
            for operator in dict.fromkeys(call.operator for each in checks for call in parts_of(each.leaf, Call)):
                self._calls.note_failure(operator, np.array([row]), outcome, 1)
            return False

    def joined(self, rows: Int32s, numbers: Int32s, accepted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which accepted pairs also have a substitution for the variables that several calls share."""
        residues = self._conditions.residues
        for at in np.flatnonzero(accepted).tolist():
            residue = residues[int(numbers[at])]
            if residue:
                row = int(rows[at])
                accepted[at] = self._within_bounds(residue, row, partial(holds, residue, self.known(row)))
        if self.errors:
            accepted &= ~np.isin(rows, list(self.errors))
        return accepted

    def known(self, row: int) -> Known:
        """Return what is known of a row; a call not yet made is made when it is asked for."""

        def outcome(call: Call) -> Outcome:
            found = self._calls.one(self._conditions.call(call), row)
            self._calls.settle()
            return found

        return Known(outcome, self._events.fields(row))

    def _count(self, graph: ordering.Graph, progress: ordering.Progress) -> None:
        """Note what was skipped and shared."""
        family = self._conditions.call_family.array[graph.task_call]
        users = np.diff(graph.task_offsets)
        for each in np.unique(family).tolist():
            of_family = family == each
            done = progress.task_done & of_family
            skipped = int((of_family & ~done).sum())
            self._learned.skipped(self._conditions.families[each].operator, skipped, int((users[done] - 1).sum()))


def _all_hold(graph: ordering.Graph, progress: ordering.Progress) -> npt.NDArray[np.bool_]:
    """Return which pairs have no entry left and none that failed."""
    held: npt.NDArray[np.bool_] = progress.pair_left == 0
    return held
