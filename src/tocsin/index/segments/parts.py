"""A segment in use by `adaptive`: its immutable arrays, and which of its boxes were removed since.

What makes segments is imported when the first is made: a process with few subscriptions matches its first event without
it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tocsin.errors import SavedIndexError
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.segments.pace import Pace
from tocsin.index.segments.statistics import QueryStatistics
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.contents import locate, strike, unpack_boxes
from tocsin.kernels.segments.layout import Segment

if TYPE_CHECKING:
    from tocsin.kernels.bounds.moves import Run

NONE_DIED: Int64s = np.empty(0, np.int64)
"""Stands for the removals of a segment that has had none."""

FOREVER = np.iinfo(np.int64).max
"""The version at which a box dies that was not removed."""


class Part:
    """A segment, with the version at which each of its positions died.

    One thread removes at a time. Readers hold a version; a removal stamped with a later one does not show to them, so
    that nothing is copied when a box is removed, but for the marks, once: they say which stamps are worth reading.
    ``struck`` collects the numbers removed while a merge reads this part. ``run`` has the bounds of its boxes in order,
    once moves have paid for that, and ``pace`` what those have cost (see `steps.py`). ``suits``: boxes that came later
    have found their places in its plan, as far as was tried. ``accepted``: what its queries cost when it was last
    planned because of that (see `reviewing.py`).
    """

    def __init__(self, segment: Segment, info: dict[str, Any], died: Int64s = NONE_DIED) -> None:
        self.info = info
        self.died = died
        self._marks = segment.marks
        self.segment = self._marked(segment)
        self.boxes = int((segment.marks < at.REPLICA).sum())
        self.in_bitmaps = int(segment.header[at.POSITIONS] - segment.header[at.TREE])
        gone = (died != FOREVER) & (segment.marks < at.REPLICA) if len(died) else np.empty(0, np.bool_)
        self.live = self.boxes - int(gone.sum())
        self.struck: list[int] | None = None
        self.run: Run | None = None
        self.pace = Pace()
        self.suits = True
        self.accepted = 0.0

    @classmethod
    def of(cls, numbers: Int32s, boxes: Boxes, statistics: QueryStatistics) -> Part:
        """Build a part of these boxes."""
        from tocsin.index.segments.building import build

        return cls(*build(numbers, boxes, statistics))

    def takes(self, more: int) -> bool:
        """Return whether so many boxes more may be taken in without planning anew."""
        return self.suits and self.live + more <= 2 * self.info.get("planned", 0)

    def with_boxes(self, numbers: Int32s, boxes: Boxes, version: int) -> tuple[Part, Int64s] | None:
        """Return a part that has these boxes too, and which of them have no place in it; None if the plan does not
        suit them."""
        from tocsin.index.segments.absorbing import absorb

        found = absorb(self.segment, self.died, version, numbers, boxes)
        if found is None:
            self.suits = False
            return None
        taken = len(numbers) - len(found[1])
        part = Part(found[0], {**self.info, "absorbed": self.info["absorbed"] + taken})
        part.accepted = self.accepted
        return part, found[1]

    def locate(self, numbers: Int32s, version: int) -> Int64s:
        """Return a place for each number that is here, -1 for the others."""
        places: Int64s = locate(self.segment, numbers, self.died, version)
        return places

    def strike(self, numbers: Int32s, places: Int64s, version: int) -> None:
        """Note that the boxes at these places are gone from this version on."""
        if not len(self.died):
            self.died = np.full(len(self.segment.marks), FOREVER)
            self.segment = self._marked(self.segment)
        strike(self.segment, places, self._marks, self.died, version)
        self.live -= len(places)
        if self.struck is not None:
            self.struck.extend(numbers.tolist())

    def contents(self, version: int) -> tuple[Int32s, Boxes]:
        """Return the boxes that are here at a version, in no particular order."""
        here = self.segment.marks < at.REPLICA
        if len(self.died):
            here &= self.died > version
        positions = np.flatnonzero(here)
        first = int(self.segment.header[at.NUMBERS])
        return self.segment.words[first + positions], Boxes(*unpack_boxes(self.segment, positions))

    def _marked(self, segment: Segment) -> Segment:
        """Return a segment where boxes have been removed with marks of its own, which say so; kernels may not write to
        these, `strike` may."""
        if not len(self.died):
            return segment
        self._marks = np.where(self.died != FOREVER, segment.marks | at.STRUCK, segment.marks)
        shown = self._marks.view()
        shown.flags.writeable = False
        return segment._replace(marks=shown)

    @property
    def highest(self) -> int:
        """The greatest box number, -1 if there is none."""
        first = int(self.segment.header[at.NUMBERS])
        return int(self.segment.words[first : first + len(self.segment.marks)].max(initial=-1))

    @property
    def nbytes(self) -> int:
        """The bytes held."""
        return sum(array.nbytes for array in self.segment) + self.died.nbytes

    def to_arrays(self, prefix: str, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is needed to open this part again: a description and named arrays."""
        arrays = {prefix + name: array for name, array in zip(Segment._fields, self.segment, strict=True)}
        if self.live < self.boxes:
            arrays[prefix + "died"] = np.where(self.died <= version, 0, FOREVER)
            arrays[prefix + "marks"] = self.segment.marks & ~np.uint8(at.STRUCK)
        return {"info": self.info}, arrays

    @classmethod
    def from_arrays(cls, prefix: str, described: dict[str, Any], arrays: dict[str, Any]) -> Part:
        """Open a part from the arrays that `to_arrays` named; they may be mapped files."""
        from tocsin.index.segments.building import frozen
        from tocsin.index.segments.soundness import check_segment

        try:
            segment = Segment(*(arrays[prefix + name] for name in Segment._fields))
            info = described["info"]
        except KeyError as missing:
            raise SavedIndexError(f"the saved index lacks {missing.args[0]!r}") from None
        kinds = [array.dtype.str for array in segment]
        if kinds != ["<i8", "<i4", "<i8", "|u1"] or len(segment.header) != at.HEADER:
            raise SavedIndexError(f"the arrays {prefix}* of the saved index are not of the kinds of a segment")
        check_segment(segment)
        died = arrays.get(prefix + "died", NONE_DIED)
        if len(died) not in (0, len(segment.marks)) or died.dtype != np.int64:
            raise SavedIndexError(f"the array {prefix}died of the saved index has not one stamp a position")
        plain: list[Any] = [np.asarray(array).view() for array in segment]
        return cls(frozen(Segment(*plain)), info, np.array(died) if len(died) else NONE_DIED)
