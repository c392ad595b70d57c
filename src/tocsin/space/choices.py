"""Single values that stand for all values of a range, as far as one box of a subscription can tell them apart.

A field that has a range and stands below an attribute is looked at on several axes: its own, and those of every
attribute above it, where it is one of several elements. Each axis by itself may take another value of the range. So
values are chosen, one of every kind that the intervals of a box tell apart, and the box is held against each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

import numpy as np

from tocsin.index.boxes import HIGHEST, LOWEST, Int64s
from tocsin.language.symbolic import AxisKey
from tocsin.space.axes import Axes, codec_of
from tocsin.space.codes import Codec, Ends, Integers, LeastApart
from tocsin.space.columns import Path
from tocsin.space.elements import Choice, Chosen
from tocsin.space.folding import Entries, between
from tocsin.space.listed import Numbered, Texts
from tocsin.space.quantities import Quantities
from tocsin.space.witnesses import Between, exists

MOST_CHOICES = 256
"""So many combinations of values are tried for one box; where there are more, it counts as holding."""


_Tested = Mapping[int, tuple[Int64s, Int64s]]
"""The lows and highs of the intervals that are tested, by axis."""


class TooManyError(Exception):
    """A box tells more combinations of values apart than are tried."""


def lineage(axes: Axes, member: Path) -> list[int]:
    """Return the axes on which a field is looked at: its own, and those of the attributes above it."""
    return [
        number
        for number, key in enumerate(axes.keys)
        if key.derivation != "presence" and member in (key.path, *axes.space.family(key.path))
    ]


def choices(axes: Axes, tests: Entries, ranges: Mapping[Path, Ends]) -> Iterator[Chosen]:
    """Yield values for fields that have ranges: among them, for any values, some that meet the same of the intervals
    that are tested. TooManyError if they are too many."""
    found = [_choices_of(axes, tests, member, ends) for member, ends in ranges.items()]
    if prod(len(each) for each in found) > MOST_CHOICES:
        raise TooManyError
    for chosen in product(*found):
        yield dict(zip(ranges, chosen, strict=True))


def _choices_of(axes: Axes, tests: Entries, member: Path, ends: Ends) -> list[Choice]:
    codec = given = codec_of(axes.space, AxisKey(member))
    if isinstance(given, Quantities):
        codec, ends = given.inner, given.numbers(ends)
    tested = {axis: (tests[1][tests[0] == axis], tests[2][tests[0] == axis]) for axis in lineage(axes, member)}
    if isinstance(codec, Texts):
        return _texts(axes, tested, codec, ends)
    if isinstance(codec, Numbered):
        return _numbered(axes, tested, codec, ends)
    return _direct(axes, tested, codec, ends, whole=type(given) is Integers)


def _texts(axes: Axes, tested: _Tested, codec: Texts, ends: Ends) -> list[Choice]:
    """Return texts by their codes: of each axis one from each part that the intervals divide it into, where there is a
    text that lies in all of these parts."""
    least, most, below = codec.bounds(ends)
    whole = Between(least.decode(), None if most is None else most.decode(), below)
    parts: dict[int, list[tuple[int, int]]] = {}
    for axis, (low, high) in tested.items():
        points = {LOWEST, *low.tolist(), *(code + 1 for code in high.tolist())}
        begins = sorted(point for point in points if LOWEST <= point <= HIGHEST)
        parts[axis] = list(zip(begins, [*(begin - 1 for begin in begins[1:]), HIGHEST], strict=True))
    if prod(len(each) for each in parts.values()) > MOST_CHOICES:
        raise TooManyError
    found = []
    for chosen in product(*parts.values()):
        placed = dict(zip(parts, chosen, strict=True))
        asked = [
            (axes.keys[axis].derivation, (between(axes, axis, *part),))
            for axis, part in placed.items()
            if part != (LOWEST, HIGHEST)
        ]
        if exists((("", (whole,)), *asked)):
            found.append(Choice({axis: begin for axis, (begin, _) in placed.items()}))
    return found


def _numbered(axes: Axes, tested: _Tested, codec: Numbered, ends: Ends) -> list[Choice]:
    """Return the ends of a range, and of each bound that is tested the value and its neighbours."""
    least, most, _ = codec.bounds(ends)
    most = codec.greatest_key if most is None else most
    keys = {least, most}
    for axis, bounds in tested.items():
        book = axes.codecs[axis].book  # type: ignore[attr-defined]
        for code in np.concatenate(bounds).tolist():
            if LOWEST < code < HIGHEST:
                key = book.key_near(code)[0]
                keys |= {key, codec._above(key) or key, codec._below(key) or key}
    return [
        Choice({axis: axes.codecs[axis].book.find_one(key) for axis in tested})  # type: ignore[attr-defined]
        for key in sorted(keys)
        if least <= key <= most
    ]


def _direct(axes: Axes, tested: _Tested, codec: Codec, ends: Ends, *, whole: bool) -> list[Choice]:
    """Return the ends of a range, and of each bound that is tested the value and its neighbours; of ``whole`` numbers,
    which atoms look at, with their values."""
    low, high = codec.span(ends)
    low, high = max(low, codec.least), min(high, codec.greatest)
    apart = {axis for axis in tested if axes.keys[axis].derivation == "least"}
    codes = {low, high}
    for axis, bounds in tested.items():
        if axis not in apart:
            codes.update(code + step for code in np.concatenate(bounds).tolist() for step in (-1, 0, 1))
    found = [
        Choice({axis: 1 if axis in apart else code for axis in tested}, code if whole else None)
        for code in sorted(codes)
        if low <= code <= high and code >= LOWEST and codec.holds(code, code)
    ]
    if type(codec) is Integers and LeastApart().span(ends)[0] <= 0:
        found.append(Choice({axis: 0 if axis in apart else LOWEST for axis in tested}, -(2**63)))
    return found
