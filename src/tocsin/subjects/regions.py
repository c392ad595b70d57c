"""Regions as they are given, and their codes in each space in which they are valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.arguments import expect_text, is_one_of
from tocsin.errors import ExpressionError, RegionError
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.space.intervals import Path, alternatives
from tocsin.space.scalars import brief
from tocsin.space.space import nearest_of
from tocsin.subjects.coding import Given
from tocsin.subjects.conditions import CONDITIONAL
from tocsin.subjects.filters import MOST_REGIONS
from tocsin.subjects.plane import Plane

REGION = "region"
"""The name of the region of what has only one and does not name it."""

Coded = dict[int, tuple[Int64s, Int64s]]
"""The rows of an object region, low and high int64[rows, axes], in each plane where it is valid."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region: values, intervals and sets by dimension, or (of a subscription) an expression.

    ``space`` names the space it lies in. Left out, it lies in every space that has one of its dimensions; an
    expression, in every space that has all of them.

    >>> Region({"x": (1, 5)}, space="map")
    Region(of={'x': (1, 5)}, space='map')
    """

    of: Any
    space: str | None = None

    def __post_init__(self) -> None:
        if self.space is not None and not isinstance(self.space, str):
            expect_text(self.space, "space", "the name of a space")


class Spaces:
    """The planes by name."""

    def __init__(self, planes: Mapping[str, Plane]) -> None:
        self.names = list(planes)
        self.planes = list(planes.values())

    def chosen(self, space: str | None) -> list[int]:
        """Return the planes in which a region may lie."""
        if space is None:
            return list(range(len(self.planes)))
        if not is_one_of(space, self.names):
            raise RegionError(f"there is no space {brief(space)}; {nearest_of(brief(space), self.names)}")
        return [self.names.index(space)]

    def kept(self, name: str, change: Region, space: str | None) -> Region:
        """Return a change of a region in the space in which that lies; RegionError if it names another."""
        self.chosen(change.space)
        if change.space not in (None, space) and len(self.planes) > 1:
            lies = "in every space that has its dimensions" if space is None else f"in the space {space!r}"
            raise RegionError(
                f"the region {name} lies {lies}, not in {change.space!r}; take it away and give it anew to move it"
            )
        return Region(change.of, space)

    def only(self, space: str | None) -> int:
        """Return the plane of a table, which lies in one space."""
        chosen = self.chosen(space)
        if len(chosen) > 1:
            raise RegionError(f"a table needs to know its space: one of {', '.join(self.names)}")
        return chosen[0]

    def objects(self, region: Region, old: Coded) -> Coded:
        """Return the codes of a publication's region, ``old`` ones changed where values are given."""
        if not isinstance(region.of, Mapping):
            raise RegionError(f"the region of a publication is a dictionary of values, not {brief(region.of)}")
        found: Coded = {}
        unknown: set[Path] | None = None
        chosen = self.chosen(region.space)
        if len(chosen) == 1 and region.of:  # most are single values in one space: then nothing can be wrong
            low, high = old.get(chosen[0]) or _absent(self.planes[chosen[0]])
            points = self.planes[chosen[0]].coder.points(region.of) if len(low) == 1 else None
            if points is not None:
                return {chosen[0]: _with_points(low, high, points)}
        for number in chosen:
            plane = self.planes[number]
            here, others = plane.coder.sorted_out(region.of)
            unknown = others if unknown is None else unknown & others
            if number in old or here:
                low, high = old.get(number) or _absent(plane)
                low, high = _changed(plane, low, high, here)
                if plane.coder.constrained(low.T, high.T).all():
                    found[number] = low, high
        self._refuse_unknown(unknown, region.space)
        if not found:
            raise RegionError("a region constrains at least one dimension; this one constrains none")
        return found

    def interests(self, region: Region) -> dict[int, tuple[Boxes, Int32s]]:
        """Return the boxes of a subscription's region, with their programs, in each plane where it is valid."""
        if isinstance(region.of, str):
            return self._of_text(region.of, region.space)
        if not isinstance(region.of, Mapping):
            raise RegionError(f"the region of a subscription is an expression or a dictionary, not {brief(region.of)}")
        found = {}
        unknown: set[Path] | None = None
        for number in self.chosen(region.space):
            plane = self.planes[number]
            here, others = plane.coder.sorted_out(region.of)
            unknown = others if unknown is None else unknown & others
            boxes = plane.box_of(here)
            if len(boxes.axis):
                found[number] = boxes, np.full(len(boxes), -1, np.int32)
        self._refuse_unknown(unknown, region.space)
        if not found:
            raise RegionError("a region constrains at least one dimension; this one constrains none")
        return found

    def merged(self, old: Region, new: Region) -> Region:
        """Return a region given by values with those of another written over it, dimension by dimension."""
        found: dict[str, Any] = {}
        for region in (old, new):
            unknown: set[Path] | None = None
            told: dict[str, Any] = {}
            for number in self.chosen(new.space):
                coder = self.planes[number].coder
                given, others = coder.sorted_out(region.of)
                unknown = others if unknown is None else unknown & others
                told |= {".".join(path): value for path, value in given.items()}
                for name in coder.others_of(given, found):  # the same dimension under another of its names
                    del found[name]
            self._refuse_unknown(unknown, new.space)
            found |= told
        return Region(found, new.space)

    def _of_text(self, text: str, space: str | None) -> dict[int, tuple[Boxes, Int32s]]:
        found, refused = {}, None
        for number in self.chosen(space):
            try:
                _, boxes, programs, problems = self.planes[number].boxes_of_text(pa.array([text], pa.string()))
            except UnicodeEncodeError:
                raise ExpressionError(f"the expression is not valid text: {text!r}") from None
            if problems:
                refused = refused or problems[0]
            elif len(boxes) and not ((np.diff(boxes.offsets) > 0) | (programs >= CONDITIONAL)).all():
                raise RegionError(f"a region constrains at least one dimension; {text!r} holds of everything")
            else:
                found[number] = boxes, programs
        if not found and refused is not None:
            raise refused
        return found

    def _refuse_unknown(self, unknown: set[Path] | None, space: str | None) -> None:
        for path in sorted(unknown or ()):
            raise self.planes[self.chosen(space)[0]].coder.unknown(path)


def named(region: Any, regions: Mapping[str, Any] | None, space: str | None) -> dict[str, Region]:
    """Return regions by name, from one that has no name or from several that have."""
    if (region is None) == (regions is None):
        raise RegionError("give one region, or several by name in regions")
    if regions is not None and not isinstance(regions, Mapping):
        raise RegionError(f"regions are a dictionary by name, not {regions!r}")
    found = {REGION: region} if regions is None else dict(regions)
    if not found:
        raise RegionError("at least one region is needed")
    if len(found) > MOST_REGIONS:
        raise RegionError(f"{len(found)} regions are more than the limit of {MOST_REGIONS}")
    for name in found:
        if not isinstance(name, str) or not name.isidentifier():
            raise RegionError(f"the name of a region is a word such as 'home', not {name!r}")
    return {name: placed(each, space) for name, each in found.items()}


def placed(given: Any, space: str | None) -> Region:
    """Return what is given of a region as one: in its own space, or in the one given beside it."""
    region = given if isinstance(given, Region) else Region(given)
    if region.space is not None and space not in (None, region.space):
        raise RegionError(f"a region is given in the space {region.space!r} and, beside it, in {space!r}")
    return region if region.space is not None else Region(region.of, space)


def combined(parts: Iterator[tuple[int, int, Int32s]]) -> dict[int, tuple[Int32s, Int64s]]:
    """Return the members of each plane with their bits, from (plane, bit, numbers)."""
    found: dict[int, list[tuple[int, Int32s]]] = {}
    for plane, bit, numbers in parts:
        found.setdefault(plane, []).append((bit, numbers))
    return {
        plane: (
            np.concatenate([numbers for _, numbers in some]).astype(np.int32),
            np.concatenate([np.full(len(numbers), 1 << bit, np.int64) for bit, numbers in some]),
        )
        for plane, some in found.items()
    }


def _absent(plane: Plane) -> tuple[Int64s, Int64s]:
    shape = 1, len(plane.axes)
    return np.full(shape, plane.coder.absent[0], np.int64), np.full(shape, plane.coder.absent[1], np.int64)


def _with_points(low: Int64s, high: Int64s, points: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Return rows with these codes on these axes."""
    low, high = low.copy(), high.copy()
    low[:, points[0]] = high[:, points[0]] = points[1]
    return low, high


def _changed(plane: Plane, low: Int64s, high: Int64s, given: Given) -> tuple[Int64s, Int64s]:
    """Return rows with some values changed; sets make a row of each combination."""
    coder = plane.coder
    if len(low) > 1:  # combinations of sets that are given anew are gone
        axes = [axis for path in coder.named(given) for axis, _ in coder.places[path]]
        low, high = low.copy(), high.copy()
        low[:, axes], high[:, axes] = coder.absent
        low, high = _distinct(low, high)
    lows, highs = [], []
    for one in alternatives(given, frozenset(), len(low)):
        new_low, new_high = low.copy(), high.copy()
        coder.put(new_low.T, new_high.T, one)
        coder.compute(new_low.T, new_high.T)
        lows.append(new_low)
        highs.append(new_high)
    if len(lows) == 1 and len(low) == 1:
        return lows[0], highs[0]
    return _distinct(np.concatenate(lows), np.concatenate(highs))


def _distinct(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """Return each row once."""
    both = np.unique(np.concatenate([low, high], axis=1), axis=0)
    return np.ascontiguousarray(both[:, : low.shape[1]]), np.ascontiguousarray(both[:, low.shape[1] :])
