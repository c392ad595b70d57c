"""Batches, and what operators decide of the candidates that the index and the programs leave."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.arguments import expect_count
from tocsin.errors import EventError, OperatorFailedError
from tocsin.index.boxes import Int32s
from tocsin.kernels.compile import runs
from tocsin.kernels.picking import firsts
from tocsin.matcher.admission import Problem
from tocsin.matcher.pool import Pool, Task
from tocsin.matcher.ranges import open_rows, undecided
from tocsin.matcher.state import State
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.matcher.tables import Matches, matches_of, told, told_if_many
from tocsin.matcher.views import View
from tocsin.operators.choice import check_order
from tocsin.space.events import Encoded
from tocsin.space.space import Space

if TYPE_CHECKING:
    from tocsin.matcher.matcher import Matcher
    from tocsin.operators.bindings import Known
    from tocsin.operators.evaluation import Decided, Evaluator
    from tocsin.operators.events import Events


_AHEAD = 8
"""So many batches wait for a thread at most."""

_MANY = 1_024
"""Fewer pairs are all verified, whichever share a program."""


class Deciding:
    """What evaluates operators, made when it is first asked for: most matchers never need it, and it is long to
    import. OperatorError if there is no such order."""

    def __init__(self, space: Space, order: str) -> None:
        check_order(order)
        self.order = order
        self._any = space.unspecified == "any"
        self._made: Evaluator | None = None
        self._lock = threading.Lock()

    @property
    def evaluator(self) -> Evaluator:
        """The one evaluator, whichever threads ask."""
        if self._made is None:
            from tocsin.operators.evaluation import Evaluator

            with self._lock:
                self._made = self._made or Evaluator(self.order, self._any)
        return self._made

    def learned(self) -> dict[str, Any]:
        """Return what is known of operators by their names."""
        return {} if self._made is None else self._made.learned.stats()


def pool_of(threads: int) -> Pool | None:
    """Return the threads that a matcher spreads batches over; None for one."""
    expect_count(threads, "threads")
    return Pool(threads) if threads > 1 else None


def table_of(pool: Pool | None, found: list[Matches | pa.Table], subscriptions: Subscriptions) -> pa.Table:
    """Return the matches of batches as one table, made by several threads if there are."""
    if pool is None:
        return matches_of(found, subscriptions)
    each, run = max(1, -(-len(found) // pool.threads)), pool.run()
    shares = [found[start : start + each] for start in range(0, len(found), each)] or [found]
    tasks = [run.submit(partial(matches_of, share, subscriptions)) for share in shares]
    return pa.concat_tables([task.result() for task in tasks])


def match_all(
    matcher: Matcher, batches: Iterator[pa.RecordBatch], view: View, missing: str, problems: list[Problem] | None
) -> list[Matches | pa.Table]:
    """Return the matches of each batch; some batches ahead are matched by other threads. Problems are appended to those
    that are listed already, in the order of their rows."""
    start, found = 0, []
    noted: list[Problem] | None = None if problems is None else []
    waiting: deque[Task[Matches | pa.Table]] = deque()
    run = matcher._pool.run() if matcher._pool is not None else None
    for batch in batches:
        work = partial(match_arrow, matcher, batch, start, view, missing, noted)
        if run is None:
            found.append(work())
        else:
            waiting.append(run.submit(work))
            if len(waiting) > _AHEAD:
                found.append(waiting.popleft().result())
        start += batch.num_rows
    found += [task.result() for task in waiting]
    if problems is not None and noted is not None:
        problems.extend(sorted(noted, key=lambda problem: problem.row))
    return found


def match_arrow(
    matcher: Matcher, batch: pa.RecordBatch, start: int, view: View, missing: str, problems: list[Problem] | None
) -> Matches | pa.Table:
    """Match one batch, whose rows count from ``start`` on, those that do not fit left out if there is a list of
    problems."""
    state = matcher._state
    kept: npt.NDArray[Any] = np.arange(batch.num_rows)
    some = batch
    errors: dict[int, OperatorFailedError] | None = None if problems is None else {}
    while True:
        try:
            encoded = state.encoder.batch(some, missing=missing)
            rows, slots = matcher._matched(state, view, encoded, errors)
            break
        except EventError as error:  # of a field, or of an operator
            row = getattr(error, "row", None)
            if row is None:
                raise
            if problems is None or isinstance(error, OperatorFailedError):
                cause = error if isinstance(error, OperatorFailedError) else None
                raise told(error, row, start + int(kept[row])) from cause
            misfits = state.encoder.misfits(some, missing=missing)
            if not misfits:
                raise
            numbers = {row: start + int(kept[row]) for row in misfits}
            problems += [Problem(numbers[row], None, told(each, row, numbers[row])) for row, each in misfits.items()]
            kept = np.delete(kept, list(misfits))
            if not len(kept):
                return Matches(start, kept, np.empty(0, np.int32))
            some = batch.take(pa.array(kept))
    for row, failed in (errors or {}).items():
        number = start + int(kept[row])
        problems.append(Problem(number, None, told(failed, row, number)))  # type: ignore[union-attr]
    matcher._matches_a_row = len(rows) / max(batch.num_rows, 1)
    return told_if_many(Matches(start, rows if some is batch else kept[rows], slots), matcher._subscriptions)


def verified(
    state: State,
    subscriptions: Subscriptions,
    encoded: Encoded,
    rows: npt.NDArray[Any],
    numbers: Int32s,
    any_unspecified: bool,
) -> tuple[npt.NDArray[Any], Int32s]:
    """Return the pairs of event row and box number that programs leave; of several boxes that share a program, one. Of
    events with ranges, those of which a point satisfies the subscription."""
    if subscriptions.has_programs:
        rows, numbers = _verified(state, subscriptions, encoded, rows, numbers, any_unspecified)
    if not encoded.ranged and not encoded.open:
        return rows, numbers
    return _witnessed(state, subscriptions, encoded, rows, numbers)


def _verified(
    state: State,
    subscriptions: Subscriptions,
    encoded: Encoded,
    rows: npt.NDArray[Any],
    numbers: Int32s,
    any_unspecified: bool,
) -> tuple[npt.NDArray[Any], Int32s]:
    programs = subscriptions.program[numbers]
    good = programs < 0
    if encoded.open:  # a program reads single elements: such events are decided by `Ranges`
        good |= open_rows(encoded)[rows]
    unsure = np.flatnonzero(~good)
    if not len(unsure):
        return rows, numbers
    if len(unsure) >= _MANY and subscriptions.has_several and not subscriptions.has_conditions:
        unsure = firsts(unsure, rows, programs, int(programs.max()) + 1)
    good[unsure] = state.programs.accept(encoded, rows[unsure], programs[unsure], any_unspecified)
    return rows[good], numbers[good]


def _witnessed(
    state: State, subscriptions: Subscriptions, encoded: Encoded, rows: npt.NDArray[Any], numbers: Int32s
) -> tuple[npt.NDArray[Any], Int32s]:
    """Return the pairs of event row and box number where a point of the event's ranges satisfies the subscription, as
    far as operators do not decide it. Of boxes that ask the same of operators, where one is sure, the others are not
    looked at."""
    unsure = undecided(
        state.axes, encoded, rows, subscriptions.program[numbers] if subscriptions.has_programs else None
    )
    if unsure is None:
        return rows, numbers
    slots, conditions = subscriptions.owners_of(numbers), subscriptions.condition[numbers]
    _, keys = np.unique(np.stack([rows, slots, conditions]), axis=1, return_inverse=True)
    asked, places = np.unique(keys[unsure], return_index=True)
    sure = np.isin(asked, keys[~unsure])
    pairs = np.flatnonzero(unsure)[places[~sure]]
    texts: list[str | None] = []
    for slot in slots[pairs].tolist():
        try:
            texts.append(subscriptions.text_at(slot))
        except (KeyError, IndexError):  # just removed: an answer may count it or not
            texts.append(None)
    there = np.array([text is not None for text in texts], bool)
    asked = asked[~sure][there]
    known = state.programs.conditions.sources
    checks = [known[each] if each >= 0 else () for each in conditions[pairs[there]].tolist()]
    accepted = state.ranges.accept(encoded, rows[pairs[there]], [text for text in texts if text is not None], checks)
    good = ~(unsure & np.isin(keys, asked[~accepted]))
    return rows[good], numbers[good]


def refined(
    deciding: Deciding,
    state: State,
    subscriptions: Subscriptions,
    encoded: Encoded,
    rows: npt.NDArray[Any],
    numbers: Int32s,
    errors: dict[int, OperatorFailedError] | None,
) -> tuple[npt.NDArray[Any], Int32s]:
    """Return the pairs of event row and box number that operators leave. A subscription that one of its boxes has
    matched without them is not asked about."""
    wanted = subscriptions.condition[numbers]
    unsure = wanted >= 0
    if not unsure.any():
        return rows, numbers
    if subscriptions.has_several and not unsure.all():
        keys = rows.astype(np.int64) << 32 | subscriptions.owner[numbers].astype(np.int64)
        needed = ~(unsure & np.isin(keys, keys[~unsure]))
        rows, numbers, wanted, unsure = rows[needed], numbers[needed], wanted[needed], unsure[needed]
    asked = np.flatnonzero(unsure)
    from tocsin.operators.events import Events

    evaluator = deciding.evaluator
    events = Events(encoded, state.encoder.operands)
    decided = _decided(evaluator, state, events, rows[asked].astype(np.int32), wanted[asked])
    if decided.errors and errors is None:
        raise decided.errors[min(decided.errors)]
    good = np.ones(len(rows), bool)
    good[asked] = decided.accepted
    if decided.errors and errors is not None:
        errors.update(decided.errors)
        good &= ~np.isin(rows, list(decided.errors))
    return rows[good], numbers[good]


def _decided(evaluator: Evaluator, state: State, events: Events, rows: Int32s, wanted: Int32s) -> Decided:
    """Return which pairs operators leave; of an event with sets, what one of its alternatives satisfies."""
    conditions, several = state.programs.conditions, events.alternatives
    if several == 1:
        return evaluator.decide(conditions, events, rows, wanted)
    each = np.repeat(np.arange(several, dtype=np.int32), len(rows))
    decided = evaluator.decide(conditions, events, each, np.tile(wanted, several))
    errors = dict.fromkeys([0], decided.errors[min(decided.errors)]) if decided.errors else {}
    accepted = np.asarray(decided.accepted.reshape(several, -1).any(axis=0), bool)
    return decided._replace(accepted=accepted, errors=errors)


def known_of(deciding: Deciding, state: State, encoded: Encoded) -> Known:
    """Return what operators say of one event."""
    from tocsin.operators.events import Events

    return deciding.evaluator.known(state.programs.conditions, Events(encoded, state.encoder.operands), 0)


def stats_of(state: State, subscriptions: Subscriptions, deciding: Deciding) -> dict[str, Any]:
    """Return what a matcher holds and what it costs; ``index`` is the engine's own account, ``kernels`` what
    compiled loops run as."""
    axes, programs, conditions = state.axes, state.programs, state.programs.conditions
    account = dict(state.index.stats())
    return {
        "subscriptions": len(subscriptions),
        "engine": state.index.name,
        "kernels": runs(),
        "axes": [" ".join(filter(None, (".".join(key.path), key.derivation))) for key in axes.keys],
        "fields": sorted({".".join(path) for path in (*(key.path for key in axes.keys), *programs.atoms.paths)}),
        "programs": {"count": len(programs), "atoms": len(programs.atoms)},
        "operators": {
            "order": deciding.order,
            "conditions": len(conditions),
            "calls": len(conditions.call_leaf),
            "literals": len(conditions.literals),
            "fields": sorted(".".join(path) for path in conditions.paths),
            "used": deciding.learned(),
        },
        "bytes": {
            "index": int(account["bytes"]),
            "books": sum(codec.book.nbytes for _, codec in axes.listed()),
            "programs": programs.nbytes + conditions.nbytes,
            "slots": subscriptions.nbytes,
        },
        "index": account,
    }
