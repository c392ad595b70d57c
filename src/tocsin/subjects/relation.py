"""The matching relation: given publications and subscriptions, which of some pairs match.

A pair matches when the filter of the publication holds of its regions that some region of the subscription overlaps,
the filter of the subscription of its own likewise, and the publication's audience takes the subscription's properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s, Int64s
from tocsin.subjects.filters import Terms
from tocsin.subjects.plane import Plane

ONE_REGION: Terms = ((1, 0),)
"""The filter of what has one region."""


class Version(NamedTuple):
    """What a publication or a subscription is at a moment: in each plane the numbers of its rows or boxes and the bits
    of their regions; its filter; its audience, or the row of its properties (-1: none)."""

    members: dict[int, tuple[Int32s, Int64s]]
    terms: Terms
    guard: int


class Faces(NamedTuple):
    """The members of several in one plane: those of ``i`` are ``first[i]:first[i + 1]``."""

    first: Int64s
    numbers: Int32s
    bits: Int64s


class Side(NamedTuple):
    """Several publications, or several subscriptions."""

    faces: list[Faces]
    terms: list[Terms]
    filter: Int32s
    guard: Int32s


def side_of(versions: Sequence[Version | None], planes: int) -> Side:
    """Return versions side by side; of what is not there, nothing matches."""
    faces = []
    for plane in range(planes):
        parts = [() if each is None else each.members.get(plane, ()) for each in versions]
        counts = [len(part[0]) if part else 0 for part in parts]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        numbers = np.concatenate([np.empty(0, np.int32), *(part[0] for part in parts if part)]).astype(np.int32)
        bits = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts if part)]).astype(np.int64)
        faces.append(Faces(first, numbers, bits))
    known: dict[Terms, int] = {ONE_REGION: 0}
    filters = [0 if each is None else known.setdefault(each.terms, len(known)) for each in versions]
    guard = [-1 if each is None else each.guard for each in versions]
    return Side(faces, list(known), np.array(filters, np.int32), np.array(guard, np.int32))


def related(
    planes: Sequence[Plane],
    audiences: Audiences,
    pubs: Side,
    subs: Side,
    pub: npt.NDArray[np.integer],
    sub: npt.NDArray[np.integer],
) -> npt.NDArray[np.bool_]:
    """Return which pairs, positions in the two sides, match."""
    matched_pub, matched_sub = np.zeros(len(pub), np.int64), np.zeros(len(pub), np.int64)
    for plane, ours, theirs in zip(planes, pubs.faces, subs.faces, strict=True):
        rows, boxes = np.diff(ours.first)[pub], np.diff(theirs.first)[sub]
        count = rows * boxes
        if not count.any():
            continue
        pair = np.repeat(np.arange(len(pub)), count)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
        row = ours.first[pub[pair]] + within // boxes[pair]
        box = theirs.first[sub[pair]] + within % boxes[pair]
        met = plane.meet(theirs.numbers[box], ours.numbers[row])
        np.bitwise_or.at(matched_pub, pair[met], ours.bits[row[met]])
        np.bitwise_or.at(matched_sub, pair[met], theirs.bits[box[met]])
    found = _hold(pubs, pub, matched_pub) & _hold(subs, sub, matched_sub)
    return found & audiences.accept(pubs.guard[pub], subs.guard[sub], found)


def _hold(side: Side, who: npt.NDArray[np.integer], matched: Int64s) -> npt.NDArray[np.bool_]:
    """Return whether the filter of each holds of the regions that are matched."""
    which = side.filter[who]
    found = np.zeros(len(who), bool)
    for number in np.unique(which).tolist():
        here = np.flatnonzero(which == number)
        bits = matched[here]
        for must, never in side.terms[number]:
            found[here] |= (bits & must == must) & (bits & never == 0)
    return found


class Audiences:
    """The audiences of publications: expressions over the properties that subscriptions declare.

    An audience is a region of the publication in a plane of its own, where the properties of a subscription are the
    row. Equal texts are one audience.
    """

    def __init__(self, plane: Plane | None) -> None:
        self.plane = plane
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
