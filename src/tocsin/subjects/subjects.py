"""The library object: publications and subscriptions that live in spaces, and what each change brings about."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from tocsin.arguments import expect, expect_text
from tocsin.errors import DuplicatePublicationError, DuplicateSubscriptionError, RegionError, SpaceError
from tocsin.kernels.compile import runs
from tocsin.matcher.pickling import NotPickled
from tocsin.operators.operator import Operator
from tocsin.space.scalars import brief
from tocsin.space.space import Space
from tocsin.subjects import batches
from tocsin.subjects.enlisting import found_by, subscribe_many
from tocsin.subjects.filters import terms_of
from tocsin.subjects.holdings import COMPLEX
from tocsin.subjects.regions import Region, named, placed
from tocsin.subjects.state import FIRST, State
from tocsin.subjects.steps import plain_publications_came, publications_changed, subscriptions_changed
from tocsin.subjects.transitions import Transitions

KEEP: Any = object()
"""Stands for what an update leaves as it is."""


class Subjects(NotPickled, State):
    """Publications and subscriptions as regions of one or more spaces; every change returns its transitions.

    ``spaces`` is a space, or several by name. ``properties`` is the space of what subscriptions declare of themselves,
    which the audience of a publication is an expression over. ``engine`` names the index of subscriptions: left out, it
    is ``bounds`` in a space where an unspecified dimension is any, else ``adaptive``. ``operators`` may be called by
    subscriptions beside those of the spaces. Changes take turns: each is one step, and its transitions are exact.

    >>> from tocsin import Number, Space
    >>> subjects = Subjects(Space({"x": Number(), "y": Number()}))
    >>> subjects.subscribe("fence", "x BETWEEN 0 AND 10 AND y BETWEEN 0 AND 10")
    Transitions(0 enter, 0 leave)
    >>> list(subjects.publish("truck", {"x": 3, "y": (9, 11)}))
    [('enter', 'truck', 'fence')]
    >>> list(subjects.update("truck", {"x": 11}))
    [('leave', 'truck', 'fence')]
    """

    _instead = "put the same publications and subscriptions into a new one"

    def __init__(
        self,
        spaces: Space | Mapping[str, Space],
        *,
        properties: Space | None = None,
        engine: str | None = None,
        operators: Iterable[Operator] = (),
        **options: Any,
    ) -> None:
        given = {"space": spaces} if isinstance(spaces, Space) else spaces
        if not isinstance(given, Mapping) or not given or not all(isinstance(each, Space) for each in given.values()):
            raise SpaceError(f"Subjects takes a tocsin.Space or several by name, not {brief(spaces)}")
        for name in given:
            expect_text(name, "the name of a space")
        expect(properties, (Space, type(None)), "properties", "a tocsin.Space or None")
        super().__init__(given, properties, engine, options, operators)

    # Publications

    def publish(
        self,
        key: Hashable,
        region: Any = None,
        *,
        regions: Mapping[str, Any] | None = None,
        space: str | None = None,
        filter: str = "all",
        audience: str | None = None,
    ) -> Transitions:
        """Insert a publication; its matches enter. A key that is there is refused."""
        with self._turn:
            if self._slot(self._publications, key) is not None:
                raise DuplicatePublicationError(f"there is a publication {key!r} already; use update or put")
            given = named(region, regions, space)
            terms = terms_of(filter, list(given))

            def step() -> Transitions:
                coded = {name: self._spaces.objects(each, {}) for name, each in given.items()}
                said = {name: each.space for name, each in given.items()}
                return self._place(key, None, coded, said, terms, filter, audience)

            return self._again(step)

    def update(
        self,
        key: Hashable,
        region: Any = None,
        *,
        regions: Mapping[str, Any] | None = None,
        space: str | None = None,
        filter: str = KEEP,
        audience: str | None = KEEP,
    ) -> Transitions:
        """Change what is given of a publication: dimensions (None: absent), regions (None: gone), filter, audience.

        ``region`` changes its one region, whatever its name; a name in ``regions`` that it has not is a region more.
        What is not given stays as it is, and so does the space of a region: naming another one is refused.

        >>> from tocsin import Number, Space
        >>> subjects = Subjects(Space({"x": Number(), "y": Number()}))
        >>> _ = subjects.subscribe("low", "x < 5 AND y < 5"), subjects.publish("p", {"x": 1, "y": 9})
        >>> list(subjects.update("p", {"y": 1}))
        [('enter', 'p', 'low')]
        """
        with self._turn:
            slot, holdings = self._known(self._publications, key), self._publications
            if regions is None and space is None and filter is KEEP and audience is KEEP and region is not None:
                moved = self._again(lambda: self._moved_plain(slot, region))
                if moved is not None:
                    return moved
            record, said = holdings.records.get(slot), self._said(slot)
            names = list(said)
            _refuse_both(region, regions)
            if region is not None and len(names) > 1:
                raise RegionError(
                    f"the publication has the regions {', '.join(names)}; name those to change in regions"
                )
            given = {names[0]: region} if region is not None else dict(regions or {})
            kept = [name for name in names if given.get(name, KEEP) is not None]
            present = {name: each for name, each in given.items() if each is not None}
            changes = named(None, present, space) if present else {}
            for name, each in changes.items():
                if name in said:
                    changes[name] = self._spaces.kept(name, each, said[name])
            wanted = list(dict.fromkeys([*kept, *changes]))
            filter = (record.filter if record else "all") if filter is KEEP else filter
            audience = (record.guard if record else None) if audience is KEEP else audience
            if not wanted:
                raise RegionError("a publication keeps at least one region; delete it to take all away")
            terms = terms_of(filter, wanted)

            def step() -> Transitions:
                coded = {name: each for name, each in self._coded(slot).items() if name in kept}
                for name, each in changes.items():
                    coded[name] = self._spaces.objects(each, coded.get(name, {}))
                spaces = {name: said[name] if name in said else changes[name].space for name in wanted}
                chosen = {name: coded[name] for name in wanted}
                return self._place(key, slot, chosen, spaces, terms, filter, audience)

            return self._again(step)

    def put(self, key: Hashable, region: Any = None, **given: Any) -> Transitions:
        """Insert a publication, or update it if it is there."""
        with self._turn:
            known = self._slot(self._publications, key) is not None
            return self.update(key, region, **given) if known else self.publish(key, region, **given)

    def delete(self, key: Hashable) -> Transitions:
        """Take a publication away; its matches leave."""
        with self._turn:
            slot = self._known(self._publications, key)
            holdings, old = self._publications, self._publications.version(slot)
            if holdings.plane[slot] != COMPLEX:
                plane = self._planes[int(holdings.plane[slot])]
                asked = plane.stored(holdings.number[slot : slot + 1])
                told, open_pairs = plain_publications_came(plane, self._subscriptions, asked, left=True)
                told = self._with_open(told, open_pairs, [old], [None])
            else:
                told = publications_changed(self._planes, self._audiences, self._subscriptions, [old], [None])
            self._drop_rows(old)
            result = self._transitions(told, np.array([slot], np.int32), True)
            holdings.release(np.array([slot]))
            holdings.names.drop([key], self._epoch)
            return result

    # Subscriptions

    def subscribe(
        self,
        id: Hashable,
        region: Any = None,
        *,
        regions: Mapping[str, Any] | None = None,
        space: str | None = None,
        filter: str = "all",
        properties: Mapping[str, Any] | None = None,
    ) -> Transitions:
        """Insert a subscription; the publications that it matches enter. An id that is there is refused.

        A region is an expression, or a dictionary of values, intervals and sets.

        >>> from tocsin import Number, Space
        >>> subjects = Subjects(Space({"x": Number(), "y": Number()}))
        >>> _ = subjects.publish("p", {"x": 1, "y": 9})
        >>> list(subjects.subscribe("box", {"x": (0, 5)}))
        [('enter', 'p', 'box')]
        """
        with self._turn:
            if self._slot(self._subscriptions, id) is not None:
                raise DuplicateSubscriptionError(f"there is a subscription {id!r} already; use change")
            given = named(region, regions, space)
            return self._again(lambda: self._enlist(id, None, given, filter, properties))

    def change(
        self,
        id: Hashable,
        region: Any = None,
        *,
        regions: Mapping[str, Any] | None = None,
        space: str | None = None,
        filter: str = KEEP,
        properties: Mapping[str, Any] | None = KEEP,
    ) -> Transitions:
        """Change what is given of a subscription: regions (None: gone; a new name: one more), filter, properties.

        A dictionary given for a region that was one changes its dimensions (None: no longer constrained); an
        expression replaces the region.
        """
        with self._turn:
            slot = self._known(self._subscriptions, id)
            record = self._subscriptions.record(slot, self._spaces.names)
            _refuse_both(region, regions)
            if region is not None and len(record.said) > 1:
                names = ", ".join(record.said)
                raise RegionError(f"the subscription has the regions {names}; name those to change in regions")
            changes = {next(iter(record.said)): region} if region is not None else dict(regions or {})
            wanted = dict(record.said)
            for name, each in changes.items():
                if each is None:
                    wanted.pop(name, None)
                    continue
                new, old = placed(each, space), wanted.get(name)
                if old is not None and isinstance(old.of, Mapping) and isinstance(new.of, Mapping):
                    new = self._spaces.merged(old, Region(new.of, new.space or old.space))
                wanted[name] = new if new.space or old is None else Region(new.of, old.space)
            filter = record.filter if filter is KEEP else filter
            properties = record.guard if properties is KEEP else properties
            given = named(None, wanted, None)
            return self._again(lambda: self._enlist(id, slot, given, filter, properties))

    def unsubscribe(self, id: Hashable) -> Transitions:
        """Take a subscription away; the publications that it matched leave."""
        with self._turn:
            slot = self._known(self._subscriptions, id)
            old = self._subscriptions.version(slot)
            plane = int(self._subscriptions.plane[slot])
            if plane == COMPLEX:
                told = subscriptions_changed(self._planes, self._audiences, self._publications, [old], [None])
            else:
                boxes, guards = self._subscriptions.number[slot : slot + 1], np.array([old.guard], np.int32)
                told = found_by(self, plane, boxes, FIRST, guards, left=True)
            self._drop_boxes(old)
            result = self._transitions(told, np.array([slot], np.int32), False)
            self._subscriptions.release(np.array([slot]))
            self._subscriptions.names.drop([id], self._epoch)
            return result

    # Many at once

    def put_many(self, publications: Any, *, key: str = "key", space: str | None = None) -> Transitions:
        """Insert or update the publications of a table (anything Arrow-shaped), row after row.

        ``key`` names the column of keys; the others are dimensions. A column that is not there stays as it is, NULL
        makes a dimension absent, structs of ``low`` and ``high`` are ranges. If a row does not fit, none is applied.

        >>> import pyarrow as pa
        >>> from tocsin import Number, Space
        >>> subjects = Subjects(Space({"x": Number()}))
        >>> _ = subjects.subscribe("low", "x < 5")
        >>> subjects.put_many(pa.table({"key": ["a", "b"], "x": [1.0, 9.0]})).to_arrow().to_pylist()
        [{'row': 0, 'publication': 'a', 'subscription': 'low', 'transition': 'enter'}]
        """
        with self._turn:
            return self._again(lambda: batches.put_many(self, publications, key, space))

    def delete_many(self, keys: Any) -> Transitions:
        """Take publications away, all or none."""
        with self._turn:
            return self._again(lambda: batches.delete_many(self, keys))

    def subscribe_many(self, subscriptions: Any, *, space: str | None = None, tell: bool = True) -> Transitions:
        """Insert every row of a table with columns ``id`` and ``expression``, all or none.

        All rows are read, indexed and answered from the index of publications together. ``tell=False`` loads what has
        been told before, as after a restart: nothing enters.

        >>> import pyarrow as pa
        >>> from tocsin import Number, Space
        >>> subjects = Subjects(Space({"x": Number()}))
        >>> _ = subjects.publish("p", {"x": 1})
        >>> found = subjects.subscribe_many(pa.table({"id": ["low", "high"], "expression": ["x < 5", "x > 5"]}))
        >>> found.to_arrow().to_pylist()
        [{'row': 0, 'publication': 'p', 'subscription': 'low', 'transition': 'enter'}]
        """
        with self._turn:
            return self._again(lambda: subscribe_many(self, subscriptions, space, tell))

    # Looking

    def matches(self) -> set[tuple[Any, Any]]:
        """Return every pair of publication and subscription that matches now, by asking anew; where operators are
        called, as it was told last.

        >>> from tocsin import Number, Space
        >>> subjects = Subjects(Space({"x": Number()}))
        >>> _ = subjects.publish("p", {"x": 1}), subjects.subscribe("s", "x = 1")
        >>> subjects.matches()
        {('p', 's')}
        """
        with self._turn:
            keys = list(self._publications.names.slot_of)
            slots = np.array([self._publications.names.slot_of[key] for key in keys], np.int32)
            now = [self._publications.version(slot) for slot in slots.tolist()]
            nothing = [None] * len(now)
            with self._truths.looking():
                who, subs, _ = publications_changed(self._planes, self._audiences, self._subscriptions, nothing, now)
            ids = self._subscriptions.names.listed(subs)
            return {(keys[each], id) for each, id in zip(who.tolist(), ids, strict=True)}

    def stats(self) -> dict[str, Any]:
        """Say what is held and what it costs."""
        with self._turn:
            return {
                "publications": len(self._publications),
                "subscriptions": len(self._subscriptions),
                "kernels": runs(),
                "spaces": {
                    name: {
                        "rows": int((plane.rows.owner >= 0).sum()),
                        "boxes": len(plane.plain) + len(plane.verified),
                        "bytes": plane.rows.nbytes + plane.interests.nbytes,
                        "objects": dict(plane.objects.stats()),
                        "interests": dict(plane.plain.stats()),
                    }
                    for name, plane in zip(self._spaces.names, self._planes, strict=True)
                },
                "operators": {
                    name: plane.conditions.stats() for name, plane in zip(self._spaces.names, self._planes, strict=True)
                },
            }

    def __len__(self) -> int:
        return len(self._publications)

    def __contains__(self, key: object) -> bool:
        return self._slot(self._publications, key) is not None


def _refuse_both(region: Any, regions: Mapping[str, Any] | None) -> None:
    if region is not None and regions is not None:
        raise RegionError("give one region, or several by name in regions, not both")
    if regions is not None and not isinstance(regions, Mapping):
        raise RegionError(f"regions are a dictionary by name, not {brief(regions)}")
