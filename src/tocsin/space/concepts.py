"""The codec of concepts: a value is the code of its concept, ``is_a`` the interval, or intervals, of what is below.

A text that is no concept, where such are allowed, has a negative code of its own if a subscription names it; all others
share one code. So a plain text meets equality with itself and nothing else.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.kernels.checks import check_length
from tocsin.language.arrays import number_array, numbers_of
from tocsin.language.literals import Literals
from tocsin.space.codes import Codec, Codes, Cuts, Ends, ValueProblem, codes_of_all, distinct_texts
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.numbering import Elsewhere, Numbering, extended, marks, numbered
from tocsin.space.scalars import brief
from tocsin.space.types import Concept
from tocsin.space.words import Words

OTHER = LOWEST
"""The code of every text that is no concept and that no subscription names."""


class Known(NamedTuple):
    """A hierarchy with its numbers. Replaced as a whole, never changed."""

    hierarchy: Hierarchy
    numbering: Numbering
    elsewhere: Elsewhere
    words: Words

    @classmethod
    def of(cls, hierarchy: Hierarchy, numbering: Numbering | None = None) -> Known:
        """Return a hierarchy with these numbers, or with fresh ones."""
        numbering = numbered(hierarchy) if numbering is None else numbering
        return cls(hierarchy, numbering, Elsewhere.of(hierarchy, numbering), words_of(hierarchy))

    def grown(self, hierarchy: Hierarchy) -> Known:
        """Return the grown hierarchy with numbers for what is new; BookFullError if there is no room for it."""
        old = self.hierarchy
        numbering = extended(self.numbering, hierarchy)
        fresh = {name: row for row, name in enumerate(hierarchy.names[len(old) :], len(old))}
        fresh |= {word: row for word, row in hierarchy.synonyms.items() if word not in old.synonyms}
        plain = all(len(above) == 1 for above in hierarchy.parents[len(old) :])
        if plain and hierarchy.parents[: len(old)] == old.parents:
            ends = np.full(len(hierarchy) - len(old), self.elsewhere.offsets[-1])
            elsewhere = self.elsewhere._replace(offsets=np.concatenate([self.elsewhere.offsets, ends]))
        else:
            elsewhere = Elsewhere.of(hierarchy, numbering)
        return Known(hierarchy, numbering, elsewhere, self.words.with_words(fresh))


class ConceptCodes(Codec):
    """Codes of the concepts of one dimension. One writer at a time; readers need no lock.

    Sets of subscriptions are made with what is ``known``; events are read with what was `show`n last, so that a change
    of the hierarchy can reach the stored subscriptions before the events.
    """

    kinds = frozenset({"string"})
    expects = "a concept of its tree"
    wider = True  # a code that no concept has today may be that of one tomorrow

    def __init__(self, kind: Concept, known: Known | None = None) -> None:
        self.kind = kind
        self._known = known
        self._seen = known
        self.texts: dict[str, int] = {}

    @property
    def known(self) -> Known:
        """What sets are made with."""
        if self._known is None:
            self._known = self._seen = _known_of(self.kind.tree)
        return self._known

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        encoded = distinct_texts(values)
        if not len(encoded.dictionary):
            return np.full(len(values), NULL)
        seen = self._seen or self.known
        rows = seen.words.find(encoded.dictionary)
        found = seen.numbering.code[rows]
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            texts = encoded.dictionary.take(number_array(unknown)).to_pylist()
            if self.kind.unknown_values == "error":
                first = pc.index(encoded.indices, int(unknown[0])).as_py()  # words are numbered as they first occur
                raise ValueProblem(self._no_concept(texts[0]), first)
            found[unknown] = [self.texts.get(text, OTHER) for text in texts]
        return codes_of_all(found, encoded.indices)

    def code(self, value: Any) -> int:  # noqa: D102
        if not isinstance(value, str):
            raise ValueProblem(f"{brief(value)} is not text")
        seen = self._seen or self.known
        row = seen.hierarchy.row(value)
        if row is not None:
            return int(seen.numbering.code[row])
        if self.kind.unknown_values == "error":
            raise ValueProblem(self._no_concept(value))
        return self.texts.get(value, OTHER)

    def place(self, value: Any) -> int:
        """Return the code of a value that is kept: a text that is no concept has one of its own from then on."""
        code = self.code(value)
        return self.texts.setdefault(value, -2 * (len(self.texts) + 1)) if code == OTHER else code

    def holds(self, low: int, high: int) -> bool:
        """Return whether a concept, or a text where such are values, has a code from ``low`` to ``high``."""
        return not self.doubtful(np.array([low]), np.array([high]))[0]

    def doubtful(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:
        """Return which intervals of codes hold neither a concept nor a text that is a value."""
        codes = self.known.numbering.code[:-1]
        if self.kind.unknown_values != "error":
            codes = np.concatenate([codes, np.array([OTHER, *self.texts.values()], np.int64)])
        codes = np.sort(codes)
        return np.searchsorted(codes, low) >= np.searchsorted(codes, high, "right")

    def has_room(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:
        """Return which intervals of codes hold a value, or may come to hold one when the hierarchy grows: growth is
        always below what there is."""
        known = self.known
        roots = known.hierarchy.roots
        first, last = known.numbering.code[roots], known.numbering.last[roots]
        inside = (low[:, None] <= last) & (high[:, None] >= first)
        room: npt.NDArray[np.bool_] = np.logical_or.reduce(inside, axis=1)
        elsewhere = np.flatnonzero(~room)
        if len(elsewhere):
            room[elsewhere] = ~self.doubtful(low[elsewhere], high[elsewhere])
        return room

    def span(self, ends: Ends, *, keep: bool = False) -> tuple[int, int]:
        """Refuse a range."""
        raise ValueProblem("concepts have no order, so there is no range of them")

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        which, rows, codes = self._terms(constants)
        found = np.where(rows >= 0, self.known.numbering.code[rows], codes)[which]
        return Cuts(found, found, np.zeros(len(found), bool))

    def below(self, constants: Literals) -> tuple[list[Codes], list[Codes]]:
        """Return the intervals of what is at or below each constant, place by place: lows and highs, crossed where a
        constant has fewer."""
        which, rows, codes = self._terms(constants)
        known = self.known
        low = np.where(rows >= 0, known.numbering.code[rows], codes)
        high = np.where(rows >= 0, known.numbering.last[rows], codes)
        lows, highs = known.elsewhere.intervals(np.where(rows >= 0, rows, len(known.hierarchy)), known.numbering)
        return [each[which] for each in (low, *lows)], [each[which] for each in (high, *highs)]

    def widths(self, constants: Literals) -> npt.NDArray[np.int64]:
        """Return how many intervals `below` has for each constant."""
        which, rows, _ = self._terms(constants)
        offsets = self.known.elsewhere.offsets
        safe = np.maximum(rows, 0)
        found: npt.NDArray[np.int64] = np.where(rows >= 0, offsets[safe + 1] - offsets[safe], 0)[which] + 1
        return found

    def refusal(self, term: str) -> str | None:
        """Return why a term may not stand in a subscription, None if it may."""
        if self.kind.unknown_terms == "text" or term in self.kind.tree:
            return None
        return self._no_concept(term)

    def shown(self) -> None:
        """Let events be read with what is known."""
        self._seen = self._known

    def learn(self, kind: Concept, known: Known) -> None:
        """Make sets with another hierarchy from now on; the texts that it has come to know are no longer plain."""
        self.kind, self._seen, self._known = kind, self._seen or self.known, known

    def hide(self, hierarchy: Hierarchy, words: Words) -> None:
        """Let events be read with the words of the hierarchy before, until it is `shown`."""
        self._seen = self.known._replace(hierarchy=hierarchy, words=words)

    def renumbered(self, kind: Concept | None = None) -> tuple[ConceptCodes, Codes, Codes]:
        """Return the codec with room spread anew, of a grown hierarchy if one is given; and all marks before and
        after."""
        known = self.known
        made = ConceptCodes(kind or self.kind, _known_of((kind or self.kind).tree))
        made.texts = dict(self.texts)
        old, new = marks(known.numbering, len(known.hierarchy)), marks(made.known.numbering, len(known.hierarchy))
        order = np.argsort(old, kind="stable")
        return made, old[order], new[order]

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the numbers as plain arrays."""
        texts = json.dumps(sorted(self.texts.items(), key=lambda each: -each[1])).encode()
        return {**self.known.numbering._asdict(), "texts": np.frombuffer(texts, np.uint8)}

    def load(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take the numbers that `to_arrays` wrote; ValueError if these arrays cannot be what it wrote."""
        numbering = Numbering(*(np.asarray(arrays[name], np.int64) for name in Numbering._fields))
        for numbers in numbering:
            check_length("numbers of concepts", len(numbers), len(self.kind.tree) + 1)
        self._known = self._seen = Known.of(self.kind.tree, numbering)
        self.texts = dict(json.loads(np.asarray(arrays["texts"], np.uint8).tobytes()))

    def _terms(self, constants: Literals) -> tuple[npt.NDArray[np.int64], Codes, Codes]:
        """Return which distinct term each constant is; of each term its row, or -1 and its code as a plain text."""
        encoded = constants.texts.dictionary_encode()
        terms = encoded.dictionary.to_pylist()
        hierarchy = self.known.hierarchy
        rows, codes = np.empty(len(terms), np.int64), np.zeros(len(terms), np.int64)
        for at, term in enumerate(terms):
            row = hierarchy.row(term)
            rows[at] = -1 if row is None else row
            if row is None:
                if self.kind.unknown_terms == "error":
                    raise ValueProblem(self._no_concept(term), pc.index(encoded.indices, at).as_py())
                codes[at] = self.texts.setdefault(term, -2 * (len(self.texts) + 1))  # none is ever forgotten
        return numbers_of(encoded.indices).astype(np.int64), rows, codes

    def _no_concept(self, word: str) -> str:
        return f"{brief(word)} is no concept of the tree; {self.kind.tree.nearest(word)}"


def words_of(hierarchy: Hierarchy) -> Words:
    """Return the names and synonyms of a hierarchy with their rows."""
    return Words({**hierarchy.synonyms, **hierarchy.rows})


def crossed(low: Codes, high: Codes) -> tuple[Codes, Codes]:
    """Return intervals whose empty ones, wherever ends cross, are written as sets write them."""
    empty = low > high
    return np.where(empty, HIGHEST, low), np.where(empty, NULL, high)


def _known_of(hierarchy: Hierarchy) -> Known:
    """Return a hierarchy with fresh numbers, made once for it."""
    held = getattr(hierarchy, "_known", None)
    if held is None:
        held = Known.of(hierarchy)
        hierarchy._known = held  # type: ignore[attr-defined]
    return held
