"""What was last told of pairs whose subscription calls operators.

An operator need not say the same twice, and may fail. So the truth of such a pair is kept when it is told, and a pair
enters or leaves by what was told of it, not by what operators would say now of how it was. A failed call that leaves a
pair open changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int64s
from tocsin.subjects.conditions import CONDITIONAL
from tocsin.subjects.holdings import Holdings
from tocsin.subjects.plane import Plane
from tocsin.subjects.relation import Audiences, Version, related, side_of

Versions = Sequence[Version | None]
Booleans = npt.NDArray[np.bool_]


class Truths:
    """The pairs told to match, publication slot above subscription slot, of subscriptions that call operators."""

    def __init__(self, planes: list[Plane], audiences: Audiences) -> None:
        self._planes, self._audiences = planes, audiences
        self._told: set[int] = set()
        self._looking = False

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Ask no operators meanwhile: what was told holds."""
        self._looking = True
        try:
            yield
        finally:
            self._looking = False

    def conditional(self, old: Versions, new: Versions, pairs: Int64s, *, published: bool) -> Booleans:
        """Return which pairs, position above slot, are of subscriptions that call operators, before or after."""
        if published:
            owners = [plane.conditional_owners for plane in self._planes if plane.conditional_owners]
            if not owners:
                return np.zeros(len(pairs), bool)
            slots = (pairs & 0xFFFFFFFF).tolist()
            return np.array([any(slot in some for some in owners) for slot in slots], bool)
        flags = [self.calls(before) or self.calls(after) for before, after in zip(old, new, strict=True)]
        found: Booleans = np.array(flags, bool)[pairs >> 32]
        return found

    def before_and_after(
        self, others: Holdings, old: Versions, new: Versions, pairs: Int64s, *, published: bool
    ) -> tuple[Booleans, Booleans]:
        """Return which pairs of such subscriptions matched as it was told, and which do now; that is kept."""
        position, slots = pairs >> 32, pairs & 0xFFFFFFFF
        changed = np.array([self._slot(*both, published) for both in zip(old, new, strict=True)], np.int64)[position]
        keys = (changed << 32 | slots if published else slots << 32 | changed).tolist()
        told = np.array([key in self._told for key in keys], bool)
        if self._looking:
            return np.zeros(len(pairs), bool), told
        before = told
        if not published:  # what called no operators before has been told by its boxes
            plain = np.array([each is not None and not self.calls(each) for each in old], bool)[position]
            if plain.any():
                before = np.where(plain, self._asked(others, old, pairs, published), told)
        after = self._after(others, new, pairs, before, published)
        kept = np.ones(len(pairs), bool) if published else np.array([self.calls(each) for each in new])[position]
        for key, holds in zip(keys, (after & kept).tolist(), strict=True):
            (self._told.add if holds else self._told.discard)(key)
        return before, after

    def _after(self, others: Holdings, new: Versions, pairs: Int64s, before: Booleans, published: bool) -> Booleans:
        for plane in self._planes:
            plane.conditions.begin()
        least = self._asked(others, new, pairs, published)
        if not any(plane.conditions.has_open for plane in self._planes):
            return least
        for plane in self._planes:
            plane.conditions.counts_open = True
        most = self._asked(others, new, pairs, published)
        for plane in self._planes:
            plane.conditions.begin()
        return np.where(least == most, least, before)

    def _asked(self, others: Holdings, versions: Versions, pairs: Int64s, published: bool) -> Booleans:
        """Return which pairs match with these versions of the changed ones."""
        distinct, which = np.unique((pairs & 0xFFFFFFFF).astype(np.int32), return_inverse=True)
        changed, other = side_of(versions, len(self._planes)), others.side(distinct)
        there = np.array([each is not None for each in versions], bool)[pairs >> 32]
        sides = (changed, other, pairs >> 32, which) if published else (other, changed, which, pairs >> 32)
        found: Booleans = related(self._planes, self._audiences, *sides) & there
        return found

    def calls(self, version: Version | None) -> bool:
        """Return whether a version of a subscription calls operators."""
        return version is not None and any(
            (self._planes[plane].interests.program[boxes] >= CONDITIONAL).any()
            for plane, (boxes, _) in version.members.items()
        )

    def _slot(self, old: Version | None, new: Version | None, published: bool) -> int:
        """Return whose versions these are."""
        for version in (new, old):
            for plane, (numbers, _) in (version.members if version else {}).items():
                if len(numbers):
                    held = self._planes[plane]
                    return int((held.rows if published else held.interests).owner[numbers[0]])
        return -1
