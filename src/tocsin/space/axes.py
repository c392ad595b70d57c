"""The axes in use: numbered as subscriptions come to need them, each with the codec of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.index.boxes import LOWEST, NULL
from tocsin.language.symbolic import AxisKey as AxisKey
from tocsin.space.books import BOTTOM, TOP
from tocsin.space.codes import Booleans, Codec, Codes, Cuts, Decimals, Doubles, Integers, LeastApart
from tocsin.space.concepts import ConceptCodes
from tocsin.space.listed import Addresses, Listed, LongDecimals, Texts
from tocsin.space.quantities import quantities_of
from tocsin.space.space import Space
from tocsin.space.times import Days, Moments
from tocsin.space.types import Address, Boolean, Concept, Number, Text, Time

_DIRECT_DIGITS = 18


class Presence(Codec):
    """Whether a repeated field is there at all; it is compared with nothing."""

    kinds = frozenset()
    expects = "a list"
    greatest = LOWEST

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        return np.where(np.array(values.is_null()), NULL, LOWEST)

    def code(self, value: Any) -> int:  # noqa: D102
        return LOWEST

    def cut(self, constants: Any) -> Cuts:  # noqa: D102
        raise TypeError(constants)


class Axes:
    """The axes of one matcher. Numbers are never reused; an axis once there stays.

    >>> from tocsin.space.types import Text
    >>> axes = Axes(Space({"name": Text()}))
    >>> axes.number(AxisKey(("name",))), axes.number(AxisKey(("name",), "reversed")), len(axes)
    (0, 1, 2)
    """

    def __init__(self, space: Space, operators: Mapping[str, Any] | None = None) -> None:
        self.space = space
        self.operators = operators if operators is not None else space.operators
        self.keys: list[AxisKey] = []
        self.codecs: list[Codec] = []
        self._numbers: dict[AxisKey, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def number(self, key: AxisKey) -> int:
        """Return the number of an axis, creating it if it is new."""
        found = self._numbers.get(key)
        if found is None:
            self.codecs.append(codec_of(self.space, key))
            found = self._numbers[key] = len(self.keys)
            self.keys.append(key)  # last: readers count axes by their keys
        return found

    def find(self, key: AxisKey) -> int | None:
        """Return the number of an axis, None if it is not there."""
        return self._numbers.get(key)

    def listed(self) -> Iterator[tuple[int, Listed]]:
        """Yield the axes whose codes are in a book."""
        return ((number, codec) for number, codec in enumerate(self.codecs) if isinstance(codec, Listed))

    def concepts(self) -> Iterator[tuple[int, ConceptCodes]]:
        """Yield the axes whose codes are those of concepts."""
        return ((number, codec) for number, codec in enumerate(self.codecs) if isinstance(codec, ConceptCodes))

    def relabelled(self, used: dict[int, Codes], space: Space) -> tuple[Axes, dict[int, tuple[Codes, Codes]]]:
        """Return the same axes with books that hold only the codes used and concepts numbered anew, those of a space
        whose trees may have grown; and for each of those axes its old and new labels."""
        axes = Axes(space, self.operators)
        for key in self.keys:
            axes.number(key)
        changes = {}
        for number, codec in self.listed():
            book, old, new = codec.book.relabelled(used.get(number, np.empty(0, np.int64)))
            axes.codecs[number].book = book  # type: ignore[attr-defined]
            changes[number] = old, new
        for number, concepts in self.concepts():
            kind = space.scalar(self.keys[number].path)
            axes.codecs[number], old, new = concepts.renumbered(kind if isinstance(kind, Concept) else None)
            changes[number] = old, new
        return axes, changes

    def is_repeated(self, number: int) -> bool:
        """Return whether events may have several values on this axis."""
        key = self.keys[number]
        return key.path in self.space.repeated and key.derivation != "presence"


def recoded(codes: Codes, old: Codes, new: Codes) -> Codes:
    """Return codes, each a label of a book or next to one, with the labels changed; the ends of an axis stay."""
    if not len(old):
        return codes
    near = np.clip(codes, BOTTOM - 2, TOP + 2)  # labels lie between those, and differences stay within 64 bits
    after = np.clip(np.searchsorted(old, near), 0, len(old) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(near - old[after]) <= 1, after, before)
    step = near - old[nearest]
    return np.where(np.abs(step) > 1, codes, new[nearest] + step)


def codec_of(space: Space, key: AxisKey) -> Codec:
    """Return a new codec for an axis."""
    if key.derivation == "presence":
        return Presence()
    if key.derivation == "least":
        return LeastApart()
    kind = space.scalar(key.path)
    if isinstance(kind, Text):
        return Texts(key.derivation, kind.synonyms)
    if isinstance(kind, Concept):
        return ConceptCodes(kind)
    if isinstance(kind, Boolean):
        return Booleans()
    if isinstance(kind, Address):
        return Addresses()
    if isinstance(kind, Time):
        return Days(space.zone) if kind.kind == "date" else Moments(kind.kind == "timestamp", space.zone)
    if not isinstance(kind, Number):
        raise TypeError(kind)
    inner: Codec = Integers() if kind.kind == "int64" else Doubles()
    if kind.is_decimal:
        precision, scale = kind.decimal
        inner = Decimals(precision, scale) if precision <= _DIRECT_DIGITS else LongDecimals(precision, scale)
    if kind.unit is None:
        return inner
    return quantities_of(inner, kind.unit, space.units, kind.decimal[1] if kind.is_decimal else None)
