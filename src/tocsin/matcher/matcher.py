"""The library object: a space, an index and the programs that verify what the index cannot decide."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.arguments import expect, expect_choice, expect_path
from tocsin.errors import (
    BadSubscriptionsError,
    DuplicateSubscriptionError,
    OperatorFailedError,
    SubscriptionError,
    UnknownSubscriptionError,
)
from tocsin.index.boxes import Int32s
from tocsin.index.shared import create_shared, kept_by, remove_from
from tocsin.matcher import json
from tocsin.matcher.admission import (
    Duplicates,
    Problem,
    Problems,
    admissible,
    check_duplicates,
    check_problems,
    only,
    single_text,
)
from tocsin.matcher.ids import checked_id
from tocsin.matcher.moves import distinct, moved_batch
from tocsin.matcher.pickling import NotPickled
from tocsin.matcher.placing import put_in_place
from tocsin.matcher.refining import Deciding, known_of, match_all, pool_of, refined, stats_of, table_of, verified
from tocsin.matcher.state import State
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.matcher.tables import batches_of, subscriptions_of
from tocsin.matcher.views import View
from tocsin.operators.choice import Order
from tocsin.operators.operator import Operator
from tocsin.operators.programs import Programs
from tocsin.operators.registry import Registry
from tocsin.space.axes import Axes
from tocsin.space.books import BookFullError
from tocsin.space.events import Encoded
from tocsin.space.filling import Filled
from tocsin.space.scalars import brief
from tocsin.space.space import Space
from tocsin.space.unknown import Unknown, known_only, refuse_unknown_fields

if TYPE_CHECKING:
    from tocsin.matcher.explain import Explanation

Missing = Literal["error", "unspecified"]

BATCH_ROWS = 65_536
"""Rows matched together at most: many share what they look at, so that W1 takes half as long an event as with 8,192."""

THREAD_ROWS = 8_192
"""So many rows or more are worth a thread of their own."""

_BATCH_CELLS = 2**22
_BATCH_PAIRS = 2**20
_TIDY_AFTER = 100_000


class Matcher(NotPickled):
    """Standing subscriptions over a space, matched exactly.

    ``engine`` names the index (see ``tocsin.index.engines``); ``options`` are that engine's own. ``threads`` says over
    how many threads `match_batch` spreads the batches of a table. ``operators`` may be called beside those of the
    space; ``order`` says in which order they are evaluated. Any number of your own threads may match while
    others subscribe and unsubscribe; an answer counts each change wholly or not at all. ``note`` is what `save` was
    given to keep with a matcher that was loaded, else None.

    >>> from tocsin import Number, Space, Text
    >>> matcher = Matcher(Space({"price": Number(), "city": Text()}))
    >>> matcher.subscribe("cheap", "price <= 400 AND city = 'NYC'")
    >>> matcher.match({"price": 350, "city": "NYC"})
    ['cheap']
    """

    note: Any
    _instead = "save it with matcher.save(path) and open that with Matcher.load(path)"

    def __init__(
        self,
        space: Space,
        engine: str = "adaptive",
        *,
        threads: int = 1,
        operators: Iterable[Operator] = (),
        order: Order = "adaptive",
        **options: Any,
    ) -> None:
        expect(space, Space, "space", "a tocsin.Space, made with Space({...}) or Space.from_arrow(schema)")
        axes = Axes(space, Registry(space.operators.values(), operators))
        self._begin(State.of(axes, Programs(), create_shared(engine, **options)), Subscriptions(), threads, order)
        self._options, self.note = options, None

    def _begin(self, state: State, subscriptions: Subscriptions, threads: int, order: Order) -> None:
        self.space, self.engine = state.axes.space, state.index.name
        self._state, self._subscriptions = state, subscriptions
        self._pool, self._threads = pool_of(threads), threads
        self._deciding, self._writing = Deciding(self.space, order), threading.RLock()
        self._removed, self._matches_a_row = 0, 0.0

    # Subscribing

    def subscribe(self, id: Hashable, expression: str, *, duplicates: Duplicates = "error") -> None:
        """Add a subscription; an id already there is refused, or replaced in one step.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe(1, "price > 10")
        >>> matcher.subscribe(1, "price > 20", duplicates="replace")
        >>> matcher[1]
        'price > 20'
        """
        check_duplicates(duplicates)
        texts = single_text(expression)
        with self._writing:
            id = checked_id(self._subscriptions, id)
            if id in self._subscriptions and duplicates == "error":
                raise DuplicateSubscriptionError(f"there is a subscription {id!r} already; pass duplicates='replace'")
            filled = self._fill(texts)
            for error in filled.problems.values():
                raise error
            self._apply([id], texts, filled)

    def subscribe_many(self, subscriptions: Any, *, duplicates: Duplicates = "error", problems: Problems = None) -> int:
        """Add every row of a table (anything Arrow-shaped, columns ``id`` and ``expression``); return how many were
        added.

        If rows are bad, BadSubscriptionsError names them all and none is added; or, when a list of ``problems`` is
        given, they are appended to it and the others are added.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe_many(pa.table({"id": ["a", "b"], "expression": ["price > 1", "price > 2"]}))
        2
        """
        check_duplicates(duplicates)
        check_problems(problems)
        ids, texts = subscriptions_of(subscriptions)
        with self._writing:
            good, refused = admissible(self._subscriptions, ids, texts, duplicates)
            filled = self._fill(texts.take(pa.array(good)) if len(good) < len(texts) else texts)
            refused += [
                Problem(int(good[row]), ids[int(good[row])].as_py(), error) for row, error in filled.problems.items()
            ]
            refused.sort(key=lambda problem: problem.row)
            if refused and problems is None:
                raise BadSubscriptionsError([tuple(problem) for problem in refused])
            if problems is not None:
                problems.extend(refused)
            fine = np.ones(len(good), bool)
            fine[list(filled.problems)] = False
            chosen = ids.take(pa.array(good[fine])) if len(good[fine]) < len(ids) else ids
            self._apply(
                chosen, texts.take(pa.array(good[fine])) if len(chosen) < len(texts) else texts, only(filled, fine)
            )
            return len(chosen)

    def subscribe_json(self, source: str | Path, *, duplicates: Duplicates = "error", problems: Problems = None) -> int:
        """Add the subscriptions of a JSON text, or of a file given as a Path: objects with ``id`` and ``expression``.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe_json('{"id": "dear", "expression": "price > 1000"}')
        1
        """
        return self.subscribe_many(json.subscriptions_of(source), duplicates=duplicates, problems=problems)

    def unsubscribe(self, id: Hashable) -> None:
        """Remove a subscription."""
        self.unsubscribe_many([id])

    def unsubscribe_many(self, ids: Any) -> None:
        """Remove subscriptions, all or none."""
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise SubscriptionError(f"unsubscribe_many takes several ids, a list or a column, not {brief(ids)}")
        with self._writing:
            listed = ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids)
            found = self._subscriptions.slots_of(listed)
            unknown = [id for id, slot in found.items() if slot is None]
            if unknown:
                raise UnknownSubscriptionError(f"there is no subscription {', '.join(map(brief, unknown[:5]))}")
            slots = np.array(list(found.values()), np.int32)
            self._subscriptions.remove(slots)
            self._bury()
            self._removed += len(slots)
            self._tidy_if_due()

    def grow(self, field: str, additions: Any, *, synonyms: Mapping[str, str] | None = None) -> None:
        """Add concepts to the tree of a field: a mapping of what is there to what comes below it, or indented text.

        Stored subscriptions count what is new from then on; they are not loaded anew, but for those that name a concept
        which thereby gets something from elsewhere in the tree below it. Every dimension that shares the tree grows.

        >>> from tocsin import Concept, Space
        >>> matcher = Matcher(Space({"target": Concept({"computer": ["laptop"]})}))
        >>> matcher.subscribe("any", "is_a(target, 'computer')")
        >>> matcher.grow("target", {"laptop": ["ultrabook"]}, synonyms={"slim laptop": "ultrabook"})
        >>> matcher.match({"target": "slim laptop"})
        ['any']
        """
        from tocsin.matcher.growth import grow

        with self._writing:
            grow(self, field, additions, synonyms if synonyms is not None else {})

    # Matching

    def match(self, event: Mapping[str, Any], *, unknown: Unknown = "ignore") -> list[Any]:
        """Return the ids of the subscriptions that an event, a dictionary, satisfies. A field that the space does not
        have is ignored, or with ``unknown="error"`` an error.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe("dear", "price > 1000")
        >>> matcher.match({"price": 5}), matcher.match({"price": 5000}), matcher.match({})
        ([], ['dear'], [])
        """
        if type(unknown) is not str or unknown != "ignore":
            refuse_unknown_fields(self.space, event, unknown)
        with self._subscriptions.reading():
            state, view = self._state, self._subscriptions.view()
            _, slots = self._matched(state, view, state.encoder.one(event))
            return self._subscriptions.ids_list(slots)

    def match_batch(
        self, events: Any, *, missing: Missing = "error", unknown: Unknown = "ignore", problems: Problems = None
    ) -> pa.Table:
        """Return the matches of a table of events: columns ``event`` (the row's number) and ``subscription`` (the id).

        Events are anything Arrow-shaped. A column that subscriptions test and the table lacks is an error, or read as
        left out (``missing="unspecified"``); one that the space does not have is ignored, or an error
        (``unknown="error"``). A value that does not fit is an error, or, when a list of ``problems`` is
        given, its row is appended to it and skipped.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe("dear", "price > 1000")
        >>> matcher.match_batch(pa.table({"price": [5.0, 5000.0]})).to_pylist()
        [{'event': 1, 'subscription': 'dear'}]
        """
        expect_choice(missing, "missing", "error", "unspecified")
        check_problems(problems)
        with self._subscriptions.reading():
            batches = known_only(self.space, batches_of(events, self._batch_rows), unknown)
            view = self._subscriptions.view()
            found = match_all(self, batches, view, missing, problems)
            return table_of(self._pool, found, self._subscriptions)

    def moved_batch(self, old: Any, new: Any, *, missing: Missing = "error") -> pa.Table:
        """Return what changes when events become others, row by row: ``event``, ``subscription``, ``transition``.

        Both are tables of as many rows, or None: then every row is new, or gone. Values may be ranges (structs of
        ``low`` and ``high``) and sets (lists). A small change costs by what lies between old and new.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe("dear", "price > 1000")
        >>> old, new = pa.table({"price": [5.0, 5000.0]}), pa.table({"price": [2000.0, 6000.0]})
        >>> matcher.moved_batch(old, new).to_pylist()
        [{'event': 0, 'subscription': 'dear', 'transition': 'enter'}]
        """
        expect_choice(missing, "missing", "error", "unspecified")
        return moved_batch(self, old, new, missing)

    def match_json(self, source: str | Path) -> list[list[Any]]:
        """Return the ids that each event of a JSON text, or of a file given as a Path, satisfies.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe("dear", "price > 1000")
        >>> matcher.match_json('[{"price": 5}, {"price": 5000}]')
        [[], ['dear']]
        """
        return [self.match(event) for event in json.events_of(source)]

    def explain(self, event: Mapping[str, Any], id: Hashable) -> Explanation:
        """Say why a subscription matches an event or not: which clause decides, its value and its bound. Of a set, the
        member that matches is explained, or else the one that misses by least.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe("cheap", "price <= 400")
        >>> print(matcher.explain({"price": 500}, "cheap"))
        cheap does not match
          ✗ price <= 400    price is 500, above 400 by 100
        """
        from tocsin.matcher.explain import explain, nearest

        checked = self._state.planner.checked(self[id])

        def explained(one: Mapping[str, Any], encoded: Encoded) -> Explanation:
            known = known_of(self._deciding, self._state, encoded)
            matches = None
            if encoded.ranged or self.space.unspecified == "any":  # clauses may hold of different values of a range
                with suppress(OperatorFailedError):  # of any subscription; then the clauses decide
                    matches = id in self.match(one)
            return explain(self.space, id, checked, one, known, matches)

        encoded = self._state.encoder.one(event)
        if encoded.fold is None:
            return explained(event, encoded)
        return nearest(explained(each, self._state.encoder.one(each)) for each in encoded.source)

    def observe(self, events: Any) -> None:
        """Show the engine a sample of events, anything Arrow-shaped, so that it plans for them before they come.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.observe(pa.table({"price": [1.0, 2.0]}))
        """
        state = self._state
        if hasattr(state.index, "observe"):
            for batch in batches_of(events, self._batch_rows):
                state.index.observe(state.encoder.batch(batch, missing="unspecified").queries)

    # Keeping

    def save(self, path: str | Path, *, note: Any = None) -> None:
        """Write everything to a directory of plain arrays, in one step: a reader finds the matcher before or after it.

        A ``note``, any JSON value, is kept with it and is the `note` of whoever loads it. FileError if the directory
        cannot be written; what was saved there before is still there then.

        >>> import tempfile
        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number()}))
        >>> matcher.subscribe("dear", "price > 1000")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     matcher.save(directory, note={"sequence": 7})
        ...     loaded = Matcher.load(directory)
        ...     loaded.match({"price": 5000}), loaded.note
        (['dear'], {'sequence': 7})
        """
        from tocsin.matcher import saved

        expect_path(path)
        with self._writing:
            self._bury(patience=5.0)
            saved.save(self._state, self._subscriptions, path, note)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        verify: bool | Literal["once"] = True,
        threads: int = 1,
        operators: Iterable[Operator] = (),
        order: Order = "adaptive",
        **options: Any,
    ) -> Matcher:
        """Open a saved matcher: its arrays are mapped, not read, so that processes on one host share them.

        Every byte is checked first, or with ``verify="once"`` only when this user first opens that save on this host,
        or with ``verify=False`` not at all; SavedIndexError names the file that is damaged or missing. The operators
        that subscriptions call must be there, in the versions that were saved. All else is as for a new one.
        """
        from tocsin.matcher import saved

        opened = saved.load(path, verify=verify, operators=operators, **options)
        matcher = cls.__new__(cls)
        state = State.of(opened.axes, opened.programs, opened.index)
        matcher._begin(state, opened.subscriptions, threads, order)
        matcher._options, matcher.note = options, opened.note
        return matcher

    # Looking

    def stats(self) -> dict[str, Any]:
        """Say what is held and what it costs; ``index`` is the engine's own account."""
        with self._writing:
            return stats_of(self._state, self._subscriptions, self._deciding)

    def never(self) -> list[Any]:
        """Return the ids of the subscriptions that can never match, because they contradict themselves.

        >>> from tocsin import Number, Space
        >>> matcher = Matcher(Space({"price": Number("int64")}))
        >>> matcher.subscribe("no", "price > 3 AND price < 4")
        >>> matcher.never()
        ['no']
        """
        with self._writing:
            return self._subscriptions.without_box()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __iter__(self) -> Iterator[Any]:
        with self._writing:
            return iter(self._subscriptions.ids())

    def __contains__(self, id: object) -> bool:
        with self._writing:
            return id in self._subscriptions

    def __getitem__(self, id: Hashable) -> str:
        with self._writing:
            if id not in self._subscriptions:
                raise UnknownSubscriptionError(f"there is no subscription {brief(id)}")
            return self._subscriptions.text(id)

    # Inside

    def _batch_rows(self, left: int) -> int:
        """Return how many of the rows left are matched together: fewer where they have many codes or many matches, or
        where other threads would have nothing to do."""
        most = min(_BATCH_CELLS // max(1, len(self._state.axes)), int(_BATCH_PAIRS / max(self._matches_a_row, 1)))
        share = max(THREAD_ROWS, -(-left // self._threads))
        return min(BATCH_ROWS, share, max(64 if most < 64 else 512, most))

    def _matched(
        self, state: State, view: View, encoded: Encoded, errors: dict[int, OperatorFailedError] | None = None
    ) -> tuple[npt.NDArray[np.integer], Int32s]:
        """Return the pairs of event row and slot, each once, sorted by row; operators' errors are noted or raised."""
        pairs = state.index.overlap(encoded.queries)
        rows, numbers = pairs.rows, pairs.numbers
        subscriptions = self._subscriptions
        shown = subscriptions.visible(view, numbers)
        if shown is not None and not shown.all():
            rows, numbers = rows[shown], numbers[shown]
        several = encoded.rows is not None
        if encoded.rows is not None:
            rows = encoded.rows[rows]
            rows, numbers = distinct(rows, numbers)
        if subscriptions.has_programs or encoded.ranged:
            any_unspecified = self.space.unspecified == "any"
            rows, numbers = verified(state, subscriptions, encoded, rows, numbers, any_unspecified)
        if subscriptions.has_conditions:
            rows, numbers = refined(self._deciding, state, subscriptions, encoded, rows, numbers, errors)
        slots = subscriptions.owners_of(numbers)
        if encoded.fold is not None:
            rows = encoded.fold[rows].astype(np.int32)
        if subscriptions.has_several or several or encoded.fold is not None:
            rows, slots = distinct(rows, slots)
        return rows, slots

    def _fill(self, texts: pa.Array) -> Filled:
        """Return the boxes of texts; where a book of labels is full, make room in it and try again."""
        while True:
            try:
                return self._state.planner.fill(texts)
            except BookFullError:
                self._make_room()

    def _apply(self, ids: Any, texts: pa.Array, filled: Filled) -> None:
        """Put filled subscriptions in place, and take out of the index what they replace."""
        replaced = put_in_place(self._state, self._subscriptions, ids, texts, filled)
        self._removed += len(replaced)
        self._bury()
        self._tidy_if_due()

    def _bury(self, patience: float = 0.0) -> None:
        """Take dead boxes out of the index once no reader is left that should see them, or patience is at an end."""
        until = time.monotonic() + patience
        self._take_out(self._subscriptions.expendable())
        while patience and self._subscriptions.dying:
            time.sleep(0.001)
            late = time.monotonic() > until
            self._take_out(self._subscriptions.view().dying if late else self._subscriptions.expendable())

    def _take_out(self, gone: Int32s) -> None:
        if len(gone):
            self._subscriptions.release(gone, remove_from(self._state.index, gone))

    def _tidy_if_due(self) -> None:
        if self._removed > max(_TIDY_AFTER, len(self)):
            self._make_room()

    def _make_room(self) -> None:
        """Spread the labels of every book anew and forget what is dead, then change over to that state."""
        self._removed = 0
        used = self._subscriptions
        self._change_over(self._state.tidied(used.program, self._options, condition_of=used.condition))

    def _change_over(self, state: State) -> None:
        """Use another state; numbers that the index of the one before kept for others are free."""
        before, self._state = self._state, state
        if state is not before:
            self._subscriptions.release(kept_by(before.index))
