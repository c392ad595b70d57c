"""Who is there: publications and subscriptions by slot, the plain ones as arrays and the others as records.

A plain subscription that came in a table has its text and no record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s
from tocsin.kernels.subjects import Members
from tocsin.operators.growing import Growing
from tocsin.subjects.filters import Terms
from tocsin.subjects.regions import REGION, Region
from tocsin.subjects.relation import ONE_REGION, Side, Version, starts_of
from tocsin.subjects.transitions import Names

COMPLEX = -2
"""In ``plane``: not a plain one, look into the records."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was said of a publication or a subscription, and what it is.

    ``said`` has the regions by name, as given; ``filter`` and ``guard`` as given; ``version`` what they come to.
    """

    said: dict[str, Any]
    filter: str
    guard: Any
    version: Version


class Holdings:
    """Publications, or subscriptions. A *plain* one has one member in one plane that says
    all, and a filter over one region; a publication with an audience is not."""

    def __init__(self, planes: int, *, published: bool) -> None:
        self.names = Names(published=published)
        self.records: dict[int, Record] = {}
        self._texts: dict[int, str] = {}
        self._planes = planes
        self._plane, self._number, self._guard = Growing(np.int32), Growing(np.int32), Growing(np.int32)
        self.intricate = 0

    def __len__(self) -> int:
        return len(self.names)

    @property
    def plane(self) -> Int32s:
        """The plane of each slot that is plain, else COMPLEX."""
        return self._plane.array

    @property
    def number(self) -> Int32s:
        """The one member of each slot that is plain."""
        return self._number.array

    def hold_plain(
        self,
        slots: npt.NDArray[Any],
        plane: int,
        numbers: Int32s,
        guards: Int32s | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        """Let slots be plain, with these members, and the texts that were said of them where there are any."""
        if self.records or self._texts:
            self.release(slots)
        self._plane.put(slots, np.full(len(slots), plane, np.int32))
        self._number.put(slots, numbers)
        self._guard.put(slots, np.full(len(slots), -1, np.int32) if guards is None else guards)
        self._texts.update(zip(slots.tolist(), texts, strict=False))

    def hold(self, slot: int, record: Record, *, plain: bool) -> None:
        """Let a slot be what a record says; ``plain`` if its boxes or rows say all of it."""
        self.release(np.array([slot]))
        version = record.version
        parts = [(plane, *members) for plane, members in version.members.items() if len(members[0])]
        self.records[slot] = record
        self._guard.put(np.array([slot]), np.array([version.guard], np.int32))
        alone = len(parts) == 1 and len(parts[0][1]) == 1 and parts[0][2][0] == 1
        if plain and version.terms == ONE_REGION and alone:
            self._plane.put(np.array([slot]), np.array([parts[0][0]], np.int32))
            self._number.put(np.array([slot]), parts[0][1])
        else:
            self._plane.put(np.array([slot]), np.array([COMPLEX], np.int32))
            self._number.put(np.array([slot]), np.array([-1], np.int32))
            self.intricate += 1

    def release(self, slots: npt.NDArray[Any]) -> None:
        """Forget what slots are."""
        known = slots[slots < len(self._plane)]
        self.intricate -= int((self._plane.array[known] == COMPLEX).sum())
        self._plane.put(known, np.full(len(known), -1, np.int32))
        if self.records or self._texts:
            for slot in slots.tolist():
                self.records.pop(slot, None)
                self._texts.pop(slot, None)

    def record(self, slot: int, spaces: Sequence[str]) -> Record:
        """Return what was said of a subscription; the names are those of the planes."""
        if slot in self.records:
            return self.records[slot]
        region = Region(self._texts[slot], spaces[int(self.plane[slot])])
        return Record({REGION: region}, "all", None, self.version(slot))

    def version(self, slot: int) -> Version:
        """Return what a slot is."""
        if slot in self.records:
            return self.records[slot].version
        plane, number = int(self.plane[slot]), self.number[slot : slot + 1]
        guard = int(self._guard.array[slot])
        return Version({plane: (number.copy(), np.ones(1, np.int64))}, ONE_REGION, guard)

    def side(self, slots: npt.NDArray[Any]) -> Side:
        """Return some of them side by side."""
        planes, numbers = self.plane[slots], self.number[slots]
        odd = np.flatnonzero(planes == COMPLEX)
        versions = [self.records[slot].version for slot in slots[odd].tolist()]
        faces = []
        for plane in range(self._planes):
            plain = planes == plane
            if not len(odd):
                first = starts_of(plain)
                faces.append(Members(first, numbers[plain], np.ones(first[-1], np.int64)))
                continue
            counts, parts = plain.astype(np.int64), [version.members.get(plane) for version in versions]
            counts[odd] = [len(part[0]) if part else 0 for part in parts]
            first = starts_of(counts)
            members, bits = np.empty(first[-1], np.int32), np.ones(first[-1], np.int64)
            members[first[:-1][plain]] = numbers[plain]
            for place, part in zip(first[odd].tolist(), parts, strict=True):
                if part:
                    members[place : place + len(part[0])], bits[place : place + len(part[0])] = part
            faces.append(Members(first, members, bits))
        known: dict[Terms, int] = {ONE_REGION: 0}
        filters, guard = np.zeros(len(slots), np.int32), self._guard.array[slots]
        filters[odd] = [known.setdefault(version.terms, len(known)) for version in versions]
        return Side(faces, list(known), filters, guard)
