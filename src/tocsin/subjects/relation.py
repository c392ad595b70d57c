"""The matching relation: given publications and subscriptions, which of some pairs match.

A pair matches when the filter of the publication holds of its regions that some region of the subscription overlaps,
the filter of the subscription of its own likewise, and the publication's audience takes the subscription's properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.kernels.subjects import Members, filters_hold
from tocsin.subjects.filters import Terms
from tocsin.subjects.plane import Plane

if TYPE_CHECKING:
    from tocsin.subjects.truths import Truths

ONE_REGION: Terms = ((1, 0),)
"""The filter of what has one region."""

_ONE_FILTER = np.array([0, 1]), np.array([1]), np.array([0])
_NO_NUMBERS, _NO_BITS = np.empty(0, np.int32), np.empty(0, np.int64)


class Version(NamedTuple):
    """What a publication or a subscription is at a moment: in each plane the numbers of its rows or boxes and the bits
    of their regions; its filter; its audience, or the row of its properties (-1: none)."""

    members: dict[int, tuple[Int32s, Int64s]]
    terms: Terms
    guard: int


class Side(NamedTuple):
    """Several publications, or several subscriptions."""

    faces: list[Members]
    terms: list[Terms]
    filter: Int32s
    guard: Int32s


def starts_of(counts: npt.NDArray[np.integer] | Sequence[int]) -> Int64s:
    """Return where each begins of some of these lengths that lie one after another, and where the last ends."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def side_of(versions: Sequence[Version | None], planes: int) -> Side:
    """Return versions side by side; of what is not there, nothing matches."""
    faces = []
    for plane in range(planes):
        parts = [() if each is None else each.members.get(plane, ()) for each in versions]
        some = [part for part in parts if part]
        first = starts_of([len(part[0]) if part else 0 for part in parts])
        if len(some) == 1:
            faces.append(Members(first, *some[0]))
        elif some:
            numbers, bits = (np.concatenate(each) for each in zip(*some, strict=True))
            faces.append(Members(first, numbers, bits))
        else:
            faces.append(Members(first, _NO_NUMBERS, _NO_BITS))
    known: dict[Terms, int] = {ONE_REGION: 0}
    filters = [0 if each is None else known.setdefault(each.terms, len(known)) for each in versions]
    guard = [-1 if each is None else each.guard for each in versions]
    return Side(faces, list(known), np.array(filters, np.int32), np.array(guard, np.int32))


def related(
    planes: Sequence[Plane], audiences: Audiences, pubs: Side, subs: Side, pub: Int64s, sub: Int64s
) -> npt.NDArray[np.bool_]:
    """Return which pairs, positions in the two sides, match."""
    matched = np.zeros((2, len(pub)), np.int64)
    for plane, ours, theirs in zip(planes, pubs.faces, subs.faces, strict=True):
        if len(ours.numbers) and len(theirs.numbers):
            plane.match(ours, theirs, (pub, sub), matched)
    found = np.ones(len(pub), bool)
    filters_hold(_flat(pubs.terms), pubs.filter, pub, matched[0], found)
    filters_hold(_flat(subs.terms), subs.filter, sub, matched[1], found)
    if (pubs.guard >= 0).any():
        found &= audiences.accept(pubs.guard[pub], subs.guard[sub], found)
    return found


def _flat(filters: list[Terms]) -> tuple[Int64s, Int64s, Int64s]:
    """Return filters as arrays: where the terms of each begin, what must and what must not be matched."""
    if len(filters) == 1:
        return _ONE_FILTER  # the first is always that of one region
    terms = np.array([term for each in filters for term in each], np.int64).reshape(-1, 2)
    return starts_of([len(each) for each in filters]), terms[:, 0].copy(), terms[:, 1].copy()


class Audiences:
    """The audiences of publications: expressions over the properties that subscriptions declare.

    An audience is a region of the publication in a plane of its own, where the properties of a subscription are the
    row. Equal texts are one audience.
    """

    def __init__(self, plane: Plane | None) -> None:
        self.plane = plane
        self.truths: Truths | None = None
        self._numbers: dict[str, int] = {}
        self._boxes: list[Int32s] = []

    def number(self, text: str, boxes: tuple[Int32s, Int64s] | None) -> int:
        """Return the number of an audience, whose boxes are stored if it is new."""
        if boxes is not None and text not in self._numbers:
            self._numbers[text] = len(self._boxes)
            self._boxes.append(boxes[0])
        return self._numbers.get(text, -1)

    def accept(self, audience: Int32s, row: Int32s, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return of which wanted pairs the audience takes the row of properties."""
        found = np.ones(len(audience), bool)
        asked = np.flatnonzero(wanted & (audience >= 0))
        for number in np.unique(audience[asked]).tolist():
            assert self.plane is not None  # there is no audience without properties
            here = asked[audience[asked] == number]
            boxes = self._boxes[number]
            met = self.plane.meet(np.repeat(boxes, len(here)), np.tile(row[here], len(boxes)).astype(np.int32))
            found[here] = met.reshape(len(boxes), len(here)).any(axis=0) if len(boxes) else False
        return found
