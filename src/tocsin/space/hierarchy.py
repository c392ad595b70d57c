"""Hierarchies of names: concepts below concepts, attributes below attributes; trees, or several parents a name.

A hierarchy never changes; growing one gives another in which every name keeps its row. Names are unique; a *synonym* is
another word for a name, and no word has two meanings.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.arguments import expect, expect_several, expect_text, expect_words
from tocsin.errors import ArgumentTypeError, TreeError
from tocsin.space.scalars import brief

Rows = npt.NDArray[np.int64]

NO_ROW = -1

_FEW, _BESIDE = 300, 8
_MOST_ADVICE = 500
_LONGEST = 200


class Hierarchy:
    """Names with their parents: ``parents[row]`` are the rows of the parents of ``names[row]``, none for a root.

    The first parent of a name is the one below which it is numbered; the others are its further parents.

    >>> goods = Hierarchy.of({"computer": [], "portable": ["computer"], "laptop": ["portable"]}, {"notebook": "laptop"})
    >>> goods.path("notebook", "computer"), goods.root("laptop"), goods.is_a("computer", "laptop")
    (['laptop', 'portable', 'computer'], 'computer', False)
    """

    def __init__(self, names: Sequence[str], parents: Sequence[Sequence[int]], synonyms: Mapping[str, int]) -> None:
        try:
            self.names = tuple(names)
            self.parents = tuple(tuple(each) for each in parents)
            self.synonyms = dict(synonyms)
        except (TypeError, ValueError):
            raise ArgumentTypeError(
                "a hierarchy has names, a list of rows of parents for each, and a mapping of synonyms to rows; "
                "Hierarchy.of({'laptop': ['computer'], 'computer': []}) makes one from names alone"
            ) from None
        for name in self.names:
            check_word(name)
        rows = (row for each in (*self.parents, self.synonyms.values()) for row in each)
        if not all(isinstance(row, (int, np.integer)) and 0 <= row < len(self.names) for row in rows):
            raise TreeError("parents and synonyms of a hierarchy are rows of its names, counted from 0")
        self.rows = {name: row for row, name in enumerate(self.names)}
        if len(self.rows) != len(self.names) or len(self.parents) != len(self.names):
            raise TreeError("a hierarchy names each concept once, and has parents for each")

    @classmethod
    def of(cls, parents: Mapping[str, Iterable[str]], synonyms: Mapping[str, str] | None = None) -> Hierarchy:
        """Return the hierarchy in which each name has these parents; TreeError for an unknown parent, a cycle or a
        clash."""
        _expect_parents(parents)
        names = list(parents)
        rows = {name: row for row, name in enumerate(names)}
        for name in names:
            check_word(name)
        found = [tuple(dict.fromkeys(_parent_row(rows, name, each) for each in parents[name])) for name in names]
        made = cls(names, found, {})
        made.order  # noqa: B018 - finds a cycle
        return made if synonyms is None else made.with_synonyms(synonyms)

    def with_synonyms(self, synonyms: Mapping[str, str]) -> Hierarchy:
        """Return the hierarchy with further words for its names; TreeError if one is taken, or its name unknown.

        >>> Hierarchy.of({"US": []}).with_synonyms({"USA": "US"}).row("USA")
        0
        """
        expect_words(synonyms, "synonyms", "a mapping of words to the names that they mean")
        words = dict(self.synonyms)
        for word, name in synonyms.items():
            check_word(word)
            row = self.row(name)
            if row is None:
                raise TreeError(f"the synonym {word!r} is for {name!r}, which is not there; {self.nearest(name)}")
            known = self.rows.get(word, words.get(word))
            if known is not None and known != row:
                kind = "a name of its own" if word in self.rows else f"a synonym of {self.names[known]!r} already"
                raise TreeError(f"the synonym {word!r} of {name!r} is {kind}; a word has one meaning")
            if word not in self.rows:
                words[word] = row
        made = Hierarchy.__new__(Hierarchy)  # not through __init__, which looks at every name again
        made.names, made.parents, made.synonyms, made.rows = self.names, self.parents, words, self.rows
        return made

    def grown(self, parents: Mapping[str, Iterable[str]], synonyms: Mapping[str, str] | None = None) -> Hierarchy:
        """Return the hierarchy with new names, and further parents for names that are there.

        >>> goods = Hierarchy.of({"computer": [], "laptop": ["computer"]})
        >>> goods.grown({"ultrabook": ["laptop"]}).path("ultrabook", "computer")
        ['ultrabook', 'laptop', 'computer']
        """
        _expect_parents(parents)
        names, rows = list(self.names), dict(self.rows)
        added: list[str] = []
        for name in parents:
            check_word(name)
            if name in self.synonyms:
                raise TreeError(f"{name!r} is a synonym of {self.names[self.synonyms[name]]!r}; a word has one meaning")
            if name not in rows:
                rows[name] = len(names)
                names.append(name)
                added.append(name)
        every = self.synonyms | rows
        found = list(self.parents) + [()] * len(added)
        for name, above in parents.items():
            row = rows[name]
            new = [_parent_row(every, name, each) for each in above]
            if row < len(self.names) and not self.parents[row] and new:
                raise TreeError(f"{name!r} is a root and stays one: no tree can be hung below another")
            found[row] = tuple(dict.fromkeys([*found[row], *new]))
            if not found[row] and row >= len(self.names):
                raise TreeError(f"{name!r} is below nothing; name its parent")
        made = Hierarchy.__new__(Hierarchy)  # not through __init__, which looks at every name again
        made.names, made.parents, made.synonyms, made.rows = tuple(names), tuple(found), self.synonyms, rows
        if any(rows[name] in made.above(above) for name in parents for above in made.parents[rows[name]]):
            made.order  # noqa: B018 - names the cycle
        return made if synonyms is None else made.with_synonyms(synonyms)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, word: object) -> bool:
        return word in self.rows or word in self.synonyms

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Hierarchy) or self.synonyms != other.synonyms:
            return False
        return self.names == other.names and self.parents == other.parents

    def __hash__(self) -> int:
        return hash((len(self.names), self.names[:8]))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.names[:4])) + (", ..." if len(self.names) > 4 else "")
        return f"Hierarchy({len(self.names)} names: {shown})"

    def row(self, word: str) -> int | None:
        """Return the row of a name or synonym, None if it is unknown."""
        if not isinstance(word, str):  # asked for every value of an event: no further call for a text
            expect_text(word, "word")
        found = self.rows.get(word)
        return self.synonyms.get(word) if found is None else found

    def nearest(self, word: str) -> str:
        """Return advice that names the words nearest to an unknown one; after hundreds of such words, without a search.

        >>> Hierarchy.of({"computer": [], "laptop": ["computer"]}).nearest("labtop")
        'did you mean laptop?'
        """
        expect_text(word, "word")
        known = self._advice.get(word)
        if known is None:
            words = self._alike(word) if len(self._advice) < _MOST_ADVICE and len(word) <= _LONGEST else []
            folded = [each for each in words if each.casefold() == word.casefold()]
            close = difflib.get_close_matches(word, words, n=3, cutoff=0.6)
            close = list(dict.fromkeys([*folded, *close]))[:3]
            shown = [*self.names[:5], *([] if len(self.names) <= 5 else ["..."])]
            known = f"did you mean {' or '.join(close)}?" if close else f"there is {', '.join(shown)}"
            if len(self._advice) < _MOST_ADVICE and len(word) <= _LONGEST:
                self._advice[word] = known
        return known

    @cached_property
    def _advice(self) -> dict[str, str]:
        """What was said of unknown words, which come in numbers."""
        return {}

    @cached_property
    def _spellings(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """All words without regard to case, by their beginnings and by their ends."""
        words = [*self.names, *self.synonyms]
        return sorted((word.casefold(), word) for word in words), sorted(
            (word.casefold()[::-1], word) for word in words
        )

    def _alike(self, word: str) -> list[str]:
        """Return the words to compare an unknown one with: all of few; of many, those that begin or end alike."""
        if len(self.names) + len(self.synonyms) <= _FEW:
            return [*self.names, *self.synonyms]
        found: dict[str, None] = {}
        for spelled, words in zip((word.casefold(), word.casefold()[::-1]), self._spellings, strict=True):
            at = bisect_left(words, (spelled, ""))
            found |= {each: None for _, each in words[max(0, at - _BESIDE) : at + _BESIDE]}
        return list(found)

    @cached_property
    def order(self) -> Rows:
        """The rows, parents before children; TreeError names a cycle."""
        waiting = np.array([len(above) for above in self.parents], np.int64)
        children = self.all_children
        ready = [row for row in range(len(waiting)) if not waiting[row]]
        for row in ready:  # grows while it is walked
            for child in children.get(row, ()):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(ready) < len(self.names):
            raise TreeError(f"the names are below one another in a circle: {self._cycle(waiting)}")
        return np.array(ready, np.int64)

    def _cycle(self, waiting: Rows) -> str:
        """Return one of the circles among the rows that still wait for a parent."""
        row = int(np.flatnonzero(waiting > 0)[0])
        walked: dict[int, None] = {}
        while row not in walked:
            walked[row] = None
            row = next(above for above in self.parents[row] if waiting[above] > 0)
        circle = list(walked)
        circle = [*circle[circle.index(row) :], row]
        return " → ".join(self.names[each] for each in circle)

    @cached_property
    def all_children(self) -> dict[int, list[int]]:
        """The rows below each row by one step, through whichever parent."""
        found: dict[int, list[int]] = {}
        for row, above in enumerate(self.parents):
            for parent in above:
                found.setdefault(parent, []).append(row)
        return found

    @cached_property
    def first_parent(self) -> Rows:
        """The row of the parent below which each is numbered; NO_ROW for a root."""
        return np.array([above[0] if above else NO_ROW for above in self.parents], np.int64)

    @cached_property
    def roots(self) -> Rows:
        """The rows of names that are below nothing."""
        return np.flatnonzero(self.first_parent == NO_ROW)

    @property
    def is_tree(self) -> bool:
        """Whether no name has two parents."""
        return all(len(above) <= 1 for above in self.parents)

    def _check_row(self, row: int) -> None:
        if not isinstance(row, (int, np.integer)) or not 0 <= row < len(self.names):
            raise TreeError(f"a row is a number from 0 to {len(self.names) - 1:,}, not {brief(row)}")

    def above(self, row: int) -> dict[int, int]:
        """Return every row at or above a row, with the row one step below it on a shortest way; its own is NO_ROW."""
        self._check_row(row)
        found = {row: NO_ROW}
        ready = [row]
        for each in ready:
            for parent in self.parents[each]:
                if parent not in found:
                    found[parent] = each
                    ready.append(parent)
        return found

    def below(self, row: int) -> set[int]:
        """Return every row at or below a row."""
        self._check_row(row)
        found = {row}
        ready = [row]
        for each in ready:
            for child in self.all_children.get(each, ()):
                if child not in found:
                    found.add(child)
                    ready.append(child)
        return found

    def is_a(self, word: str, concept: str) -> bool:
        """Return whether a word names a concept at or below another; an unknown word is below none."""
        row, target = self.row(word), self.row(concept)
        return row is not None and target is not None and target in self.above(row)

    def path(self, word: str, concept: str) -> list[str]:
        """Return the names on a shortest way from a word up to a concept, both included; none if it is not above."""
        row, target = self.row(word), self.row(concept)
        if row is None or target is None:
            return []
        steps = self.above(row)
        if target not in steps:
            return []
        way = [target]
        while steps[way[-1]] != NO_ROW:
            way.append(steps[way[-1]])
        return [self.names[each] for each in reversed(way)]

    def root(self, word: str) -> str:
        """Return the root above a word, by first parents; of a root, itself."""
        row = self.row(word)
        if row is None:
            raise TreeError(f"there is no {word!r}; {self.nearest(word)}")
        while self.first_parent[row] != NO_ROW:
            row = int(self.first_parent[row])
        return self.names[row]

    def to_json(self) -> dict[str, Any]:
        """Return the hierarchy as JSON values."""
        found: dict[str, Any] = {"names": list(self.names), "parents": [list(each) for each in self.parents]}
        return found | ({"synonyms": self.synonyms} if self.synonyms else {})

    @classmethod
    def from_json(cls, data: Any) -> Hierarchy:
        """Return the hierarchy that `to_json` wrote."""
        try:
            names, parents, synonyms = data["names"], data["parents"], data.get("synonyms", {})
            rows = [*(row for above in parents for row in above), *synonyms.values()]
            if len(parents) != len(names) or not all(type(row) is int and 0 <= row < len(names) for row in rows):
                raise TreeError("this is not a hierarchy as it is saved: parents and synonyms are rows of its names")
            made = cls(names, parents, synonyms)
            made.order  # noqa: B018 - finds a cycle
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise TreeError(f"this is not a hierarchy as it is saved: {error!r}") from None
        return made


def _expect_parents(parents: object) -> None:
    """Refuse what does not say of each name which names are its parents."""
    expected = "a mapping of each name to a list of its parents, such as {'computer': [], 'laptop': ['computer']}"
    expect(parents, Mapping, "parents", expected)
    for name, above in parents.items():  # type: ignore[attr-defined]
        check_word(name)
        expect_several(above, f"parents of {brief(name)}", "a list of names")


def check_word(word: object) -> None:
    """Refuse what cannot be a name: no text, empty text."""
    if not isinstance(word, str) or not word.strip():
        raise TreeError(f"the name of a concept is text, not {brief(word)}")


def _parent_row(rows: Mapping[str, int], name: str, parent: str) -> int:
    row = rows.get(parent)
    if row is None:
        close = difflib.get_close_matches(str(parent), list(rows), n=3, cutoff=0.6)
        advice = f"; did you mean {' or '.join(close)}?" if close else ""
        raise TreeError(f"{name!r} is below {parent!r}, which is not there{advice}")
    return row
