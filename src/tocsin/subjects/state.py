"""The state behind `Subjects`: planes, holdings, and how a step is taken. Regions are read before anything changes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tocsin.arguments import expect_several
from tocsin.errors import ExpressionError, SubjectError, UnknownPublicationError, UnknownSubscriptionError
from tocsin.index.boxes import Int32s, Int64s, Queries
from tocsin.index.marks import Marks
from tocsin.kernels.subjects import have_sets, moved_row
from tocsin.operators.operator import Operator
from tocsin.space.books import BookFullError
from tocsin.space.intervals import is_set
from tocsin.space.scalars import brief
from tocsin.space.space import Space
from tocsin.subjects.coding import Given, NewAxisError
from tocsin.subjects.enlisting import found_by
from tocsin.subjects.filters import Terms, terms_of
from tocsin.subjects.holdings import COMPLEX, Holdings, Record
from tocsin.subjects.plane import Plane
from tocsin.subjects.regions import REGION, Coded, Region, Spaces, combined
from tocsin.subjects.relation import ONE_REGION, Audiences, Version
from tocsin.subjects.steps import (
    Told,
    Versions,
    decided,
    joined,
    plain_publications_came,
    plain_publications_moved,
    plain_subscription_moved,
    publications_changed,
    subscriptions_changed,
)
from tocsin.subjects.transitions import Transitions
from tocsin.subjects.truths import Truths

Result = TypeVar("Result")

NO_CODES: Int64s = np.empty(0, np.int64)

FIRST: Int32s = np.zeros(1, np.int32)
"""The position of the only one that changes."""


class State:
    """What is held, and the steps that change it."""

    def __init__(
        self,
        spaces: Mapping[str, Space],
        properties: Space | None,
        engine: str | None,
        options: Mapping[str, Any],
        operators: Iterable[Operator] = (),
    ) -> None:
        expect_several(operators, "operators", "a list of operators")
        given = tuple(operators)
        self._spaces = Spaces({name: Plane(space, engine, options, given) for name, space in spaces.items()})
        self._planes = self._spaces.planes
        self._publications, self._subscriptions = (
            Holdings(len(spaces), published=published) for published in (True, False)
        )
        self._audiences = Audiences(None if properties is None else Plane(properties, engine, options))
        self._audiences.truths = self._truths = Truths(self._planes, self._audiences)
        self._turn = threading.RLock()
        self._unread: weakref.WeakSet[Transitions] = weakref.WeakSet()
        self._epoch = 0

    @staticmethod
    def _slot(holdings: Holdings, id: object) -> int | None:
        try:
            if id is None or id != id:
                raise SubjectError(f"a key or an id is a value that equals itself, not {brief(id)}")
            return holdings.names.slot_of.get(id)
        except (ArithmeticError, TypeError, ValueError):  # a signaling NaN compares with nothing
            raise SubjectError(
                f"a key or an id is a hashable value such as text or a number, not {brief(id)}"
            ) from None

    def _keys(self, keys: list[Any]) -> list[Any]:
        """Return keys or ids of a table if all of them may be."""
        for row, key in enumerate(keys):
            if key is None or key != key:
                raise SubjectError(f"row {row}: the key is {'NULL' if key is None else 'NaN, which equals nothing'}")
        if keys and isinstance(keys[0], (list, dict)):
            raise SubjectError(f"row 0: a key is a hashable value such as text or a number, not {brief(keys[0])}")
        return keys

    def _known(self, holdings: Holdings, id: object) -> int:
        slot = self._slot(holdings, id)
        if slot is None:
            if holdings is self._publications:
                raise UnknownPublicationError(f"there is no publication {brief(id)}; insert it with publish or put")
            raise UnknownSubscriptionError(f"there is no subscription {brief(id)}; insert it with subscribe")
        return slot

    def _again(self, step: Callable[[], Result]) -> Result:
        """Take a step; where a book of labels is full, make room in it and begin anew: nothing has changed yet."""
        planes = [*self._planes, *([self._audiences.plane] if self._audiences.plane else [])]
        while True:
            try:
                return step()
            except NewAxisError:
                for plane in planes:
                    plane.widen()
            except BookFullError:
                for plane in planes:
                    plane.relabel()

    # Publications

    def _coded(self, slot: int) -> dict[str, Coded]:
        """Return the codes of a publication's regions."""
        version, record = self._publications.version(slot), self._publications.records.get(slot)
        found: dict[str, Coded] = {}
        for bit, name in enumerate(record.said if record else [REGION]):
            found[name] = {}
            for number, (rows, bits) in version.members.items():
                mine = rows[bits == 1 << bit]
                if len(mine):
                    stored = self._planes[number].rows
                    found[name][number] = stored.low[mine], stored.high[mine]
        return found

    def _moved_plain(self, slot: int, region: Any) -> Transitions | None:
        """Change the values of a plain publication in place; None if it is not, or becomes something else."""
        holdings = self._publications
        number = int(holdings.plane[slot])
        if number == COMPLEX or not isinstance(region, Mapping) or len(self._planes) > 1:
            return None
        plane, rows = self._planes[number], holdings.number[slot : slot + 1]
        given: Given = {}
        points = plane.coder.points(region)
        if points is None:
            points, given = (NO_CODES, NO_CODES), plane.coder.flat(region)
            if any(map(is_set, given.values())):
                return None
        stored, absent = plane.rows, plane.coder.absent
        sides, says = moved_row(stored.low, stored.high, int(rows[0]), *points, absent)
        if given:
            plane.coder.put(sides[2, :, 0], sides[3, :, 0], given)
            plane.coder.compute(sides[2], sides[3])
            says = bool(plane.coder.constrained(sides[2], sides[3]).any())
        if not says:
            return None
        told = self._moved_rows(plane, rows, plane.question(sides[0], sides[1]), plane.question(sides[2], sides[3]))
        return self._transitions(told, np.array([slot], np.int32), True)

    def _moved_rows(self, plane: Plane, rows: Int32s, old: Queries, new: Queries) -> Told:
        """Let the rows of plain publications move."""
        told, open_pairs = plain_publications_moved(plane, self._subscriptions, old, new)
        if len(open_pairs):
            told = self._with_open_rows(told, open_pairs, plane, old, new, plane.rows.owner[rows])
        plane.rows.low[rows], plane.rows.high[rows] = new.low.T, new.high.T
        plane.objects.replace(rows, plane.boxes_of_rows(rows))
        return told

    def _with_open_rows(
        self,
        told: Told,
        open_pairs: Int64s,
        plane: Plane,
        old: Queries | None,
        new: Queries | None,
        slots: Int32s,
    ) -> Told:
        """Decide open pairs of plain publications, in these slots, whose rows are stored for as long as that takes."""
        number, taken = self._planes.index(plane), []
        sides: list[Versions] = []
        involved, place = np.unique(open_pairs >> 32, return_inverse=True)
        for side in (old, new):
            if side is None:
                sides.append([None] * len(involved))
                continue
            one = np.ones(len(involved), np.int64)
            rows = plane.rows.add(side.low.T[involved], side.high.T[involved], slots[involved], one)
            taken.append(rows)
            sides.append([Version({number: (rows[i : i + 1], one[:1])}, ((1, 0),), -1) for i in range(len(rows))])
        pairs = place << 32 | open_pairs & 0xFFFFFFFF
        found = decided(self._planes, self._audiences, self._subscriptions, sides[0], sides[1], pairs)
        for rows in taken:
            plane.rows.drop(rows)
        return joined([told, (involved[found[0]], found[1], found[2])])

    def _with_open(self, told: Told, open_pairs: Int64s, old: Versions, new: Versions) -> Told:
        """Decide open pairs of publications whose rows are stored."""
        if not len(open_pairs):
            return told
        return joined([told, decided(self._planes, self._audiences, self._subscriptions, old, new, open_pairs)])

    def _said(self, slot: int) -> dict[str, str | None]:
        """Return the names of a publication's regions, and of each the space that it was given in."""
        record = self._publications.records.get(slot)
        if record is not None:
            return record.said
        return {REGION: self._spaces.names[int(self._publications.plane[slot])]}

    def _place(
        self,
        key: Hashable,
        slot: int | None,
        coded: dict[str, Coded],
        said: dict[str, str | None],
        terms: Terms,
        filter: str,
        audience: str | None,
    ) -> Transitions:
        """Store a publication as its regions say, and say what that brings about; ``said`` are their spaces."""
        guard = self._audience(audience)
        old = None if slot is None else self._publications.version(slot)
        if slot is None:
            slot = int(self._publications.names.add([key], self._unread)[0])
        parts = [
            (plane, bit, self._planes[plane].rows.add(low, high, np.full(len(low), slot), np.full(len(low), 1 << bit)))
            for bit, regions in enumerate(coded.values())
            for plane, (low, high) in regions.items()
        ]
        new = Version(combined(iter(parts)), terms, guard)
        plain = len(parts) == 1 and len(parts[0][2]) == 1 and guard < 0 and terms == ((1, 0),)
        if old is None and plain:
            plane = self._planes[parts[0][0]]
            told, open_pairs = plain_publications_came(plane, self._subscriptions, plane.stored(parts[0][2]))
            told = self._with_open(told, open_pairs, [None], [new])
        else:
            told = publications_changed(self._planes, self._audiences, self._subscriptions, [old], [new])
        if old is not None:
            self._drop_rows(old)
        for number, (rows, _) in new.members.items():
            self._planes[number].insert_rows(rows)
        in_one = len(self._planes) == 1 or said.get(REGION) is not None
        if plain and list(coded) == [REGION] and filter == "all" and in_one:
            self._publications.hold_plain(np.array([slot]), parts[0][0], parts[0][2])
        else:
            record = Record(said, filter, audience, new)
            self._publications.hold(slot, record, plain=plain)
        return self._transitions(told, np.array([slot], np.int32), True)

    def _drop_rows(self, version: Version) -> None:
        for number, (rows, _) in version.members.items():
            self._planes[number].remove_rows(rows)

    def _audience(self, text: str | None) -> int:
        """Return the number of an audience, read and stored if it is new."""
        if text is None:
            return -1
        if not isinstance(text, str):
            raise SubjectError(f"an audience is an expression over properties, not {brief(text)}")
        plane = self._audiences.plane
        if plane is None:
            raise SubjectError("an audience needs the space of the properties: Subjects(..., properties=Space({...}))")
        known = self._audiences.number(text, None)
        if known >= 0:
            return known
        try:
            _, boxes, programs, problems = plane.boxes_of_text(pa.array([text], pa.string()))
        except UnicodeEncodeError:
            raise ExpressionError(f"the audience is not valid text: {text!r}") from None
        for problem in problems.values():
            raise problem
        nobody = np.zeros(len(boxes), np.int64)
        return self._audiences.number(text, (plane.interests.add(boxes, nobody, nobody, programs), nobody))

    # Subscriptions

    def _enlist(
        self, id: Hashable, slot: int | None, said: dict[str, Region], filter: str, properties: Mapping[str, Any] | None
    ) -> Transitions:
        """Store a subscription as its regions say, and say what that brings about."""
        terms = terms_of(filter, list(said))
        read = [self._spaces.interests(region) for region in said.values()]
        declared = self._declared(properties)
        old = None if slot is None else self._subscriptions.version(slot)
        if slot is None:
            slot = int(self._subscriptions.names.add([id], self._unread)[0])
        parts, exact = [], True
        for bit, regions in enumerate(read):
            for number, (boxes, programs) in regions.items():
                owner, bits = np.full(len(boxes), slot), np.full(len(boxes), 1 << bit)
                parts.append((number, bit, self._planes[number].interests.add(boxes, owner, bits, programs)))
                exact = exact and bool((programs < 0).all())
        guard = int(self._store_declared(declared)[0])
        new = Version(combined(iter(parts)), terms, guard)
        told = self._enlisted(slot, old, new, exact)
        if old is not None:
            self._drop_boxes(old)
        for number, (numbers, _) in new.members.items():
            self._planes[number].insert_boxes(numbers)
        self._subscriptions.hold(slot, Record(said, filter, properties, new), plain=exact)
        return self._transitions(told, np.array([slot], np.int32), False)

    def _enlisted(self, slot: int, old: Version | None, new: Version, exact: bool) -> Told:
        """Return what a new version of a subscription brings about, by its way alone where that is all."""
        if old is None and exact and new.terms == ONE_REGION and len(new.members) == 1:
            ((number, (boxes, bits)),) = new.members.items()
            if len(boxes) == 1 and bits[0] == 1:
                return found_by(self, number, boxes, FIRST, np.array([new.guard], np.int32))
        if (
            old is not None
            and exact
            and not self._publications.intricate
            and self._subscriptions.plane[slot] != COMPLEX
        ):
            (number, (before, _)), *more = old.members.items()
            after = new.members.get(number)
            alone = after is not None and len(new.members) == len(after[0]) == 1 and new.terms == ONE_REGION
            if after is not None and alone and after[1][0] == 1 and not more:
                pool = self._planes[number].interests.pool
                if not have_sets(pool, np.concatenate([before, after[0]])).any():
                    return plain_subscription_moved(self._planes[number], before, after[0])
        return subscriptions_changed(self._planes, self._audiences, self._publications, [old], [new])

    def _drop_boxes(self, version: Version) -> None:
        for number, (boxes, _) in version.members.items():
            self._planes[number].remove_boxes(boxes)
        if version.guard >= 0 and self._audiences.plane is not None:
            self._audiences.plane.rows.drop(np.array([version.guard], np.int32))

    def _declared(self, properties: Mapping[str, Any] | None) -> tuple[Int64s, Int64s] | None:
        """Return the row of a subscription's properties; without any it declares nothing."""
        plane = self._audiences.plane
        if plane is None:
            if properties is not None:
                raise SubjectError("properties need their space: Subjects(..., properties=Space({...}))")
            return None
        low = np.full((1, len(plane.axes)), plane.coder.absent[0], np.int64)
        high = np.full((1, len(plane.axes)), plane.coder.absent[1], np.int64)
        if properties is not None and not isinstance(properties, Mapping):
            raise SubjectError(f"properties are a dictionary of values, not {brief(properties)}")
        given = plane.coder.flat(properties or {})
        for path, value in given.items():
            if is_set(value):
                raise SubjectError(f"property {'.'.join(path)}: a property is a value or an interval, not a set")
        plane.coder.put(low[0], high[0], given)
        plane.coder.compute(low.T, high.T)
        return low, high

    def _store_declared(self, declared: tuple[Int64s, Int64s] | None, count: int = 1) -> Int32s:
        """Return the rows of so many subscriptions that declare the same."""
        if declared is None or self._audiences.plane is None:
            return np.full(count, -1, np.int32)
        low, high = (np.repeat(side, count, axis=0) for side in declared)
        return self._audiences.plane.rows.add(low, high, np.zeros(count), np.ones(count))

    # Telling

    def _transitions(
        self, told: Told | Marks, slots: Int32s, published: bool, *, numbered: bool = False
    ) -> Transitions:
        """Return what is told of changed ones at ``slots``, publications or subscriptions; ``numbered`` if the position
        among them is told too."""
        self._epoch += 1
        names = self._publications.names, self._subscriptions.names
        result = Transitions(names if published else names[::-1], slots, told, self._epoch, numbered=numbered)
        if len(result):
            self._unread.add(result)
        return result
