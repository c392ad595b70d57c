"""Is there a text that lies in all of several sets, of texts as they are, in another case, or reversed?

What a range of texts becomes in small letters or reversed is no range, so its codes there do not decide it. This does:
texts are built letter by letter, and all that is kept of one is how it compares with every bound so far. That is
finite, and so is the alphabet, since letters that compare alike with all letters of the bounds are as good as one.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from tocsin.language.symbolic import Derivation
from tocsin.space.listed import derive_one

MOST_STATES = 20_000
"""Beyond so many ways to compare, a text is taken to be there."""


class Between(NamedTuple):
    """The texts from ``low`` to ``high`` (None: no bound), which itself may not belong to them."""

    low: str
    high: str | None = None
    high_open: bool = False


Constraint = tuple[Derivation, tuple[Between, ...]]
"""A text, changed in case and direction, lies in one of some intervals."""


@lru_cache(maxsize=4096)
def exists(constraints: tuple[Constraint, ...]) -> bool:
    """Return whether there is a text that meets all constraints.

    >>> exists((("", (Between("a", "b"),)), ("upper", (Between("A", "A"),))))
    True
    >>> exists((("", (Between("b", "c"),)), ("upper", (Between("A", "A"),))))
    False
    >>> exists((("", (Between("ab", "ac", True),)), ("reversed", (Between("c", "d", True),))))
    True
    >>> exists((("", (Between("ab", "ab\\0"),)), ("reversed", (Between("c", "d", True),))))
    False
    """
    tracks = [_Track(derivation, bounds) for derivation, bounds in constraints]
    letters = _alphabet(frozenset(letter for track in tracks for bound in track.bounds for letter in bound))
    folds = {track.fold for track in tracks}
    images = [{fold: derive_one(letter, fold) for fold in folds} for letter in letters]  # type: ignore[arg-type]
    start = tuple(track.start() for track in tracks)
    seen, waiting = {start}, [start]
    while waiting:
        following = []
        for state in waiting:
            if all(track.accepts(each) for track, each in zip(tracks, state, strict=True)):
                return True
            for image in images:
                after = tuple(track.after(each, image[track.fold]) for track, each in zip(tracks, state, strict=True))
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        if len(seen) > MOST_STATES:
            return True
        waiting = following
    return False


State = tuple[tuple[int, ...], ...]


class _Track:
    """How a text compares with the bounds of one constraint: of each bound, the comparison with all of its ends.

    Forward, a bound has one number: how many letters agree so far, or -1 and -2 once the text is below or above it.
    Reversed, each letter comes to stand first, so that the text is compared with what follows every place of a bound.
    """

    def __init__(self, derivation: Derivation, intervals: tuple[Between, ...]) -> None:
        steps = derivation.split()
        self.reversed = "reversed" in steps
        self.fold = next((step for step in steps if step != "reversed"), "")
        self._intervals = intervals
        self.bounds = list(dict.fromkeys(each for one in intervals for each in one[:2] if each is not None))
        self._place = {bound: place for place, bound in enumerate(self.bounds)}

    def start(self) -> State:
        if not self.reversed:
            return ((0,) * len(self.bounds),)
        return tuple((*[-1] * len(bound), 0) for bound in self.bounds)

    def after(self, state: State, letters: str) -> State:
        for letter in letters:
            if self.reversed:
                state = tuple(_before(bound, each, letter) for bound, each in zip(self.bounds, state, strict=True))
            else:
                pairs = zip(self.bounds, state[0], strict=True)
                state = (tuple(_behind(bound, agreed, letter) for bound, agreed in pairs),)
        return state

    def accepts(self, state: State) -> bool:
        return any(
            self._sign(state, each.low) >= 0
            and (each.high is None or self._sign(state, each.high) < (0 if each.high_open else 1))
            for each in self._intervals
        )

    def _sign(self, state: State, bound: str) -> int:
        """Return -1, 0 or 1 for a text below, equal to or above a bound."""
        place = self._place[bound]
        if self.reversed:
            return state[place][0]
        agreed = state[0][place]
        return 1 if agreed == -2 else 0 if agreed == len(bound) else -1


def _behind(bound: str, agreed: int, letter: str) -> int:
    """Return how a text with one letter more at its end compares with a bound."""
    if agreed < 0:
        return agreed
    if agreed == len(bound):
        return -2
    return agreed + 1 if letter == bound[agreed] else -2 if letter > bound[agreed] else -1


def _before(bound: str, signs: tuple[int, ...], letter: str) -> tuple[int, ...]:
    """Return how a text with one letter more at its beginning compares with what follows each place of a bound."""
    found = [signs[place + 1] if letter == each else 1 if letter > each else -1 for place, each in enumerate(bound)]
    return (*found, 1)


@cache
def _cased() -> list[tuple[str, str, str]]:
    """Return the letters that have another case, with both; beyond the second plane of Unicode there are none."""
    letters = (chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000)
    return [
        (letter, letter.lower(), letter.upper())
        for letter in letters
        if letter.lower() != letter or letter.upper() != letter
    ]


@lru_cache(maxsize=256)
def _alphabet(given: frozenset[str]) -> list[str]:
    """Return letters of which one compares with the given ones as any other letter does, in either case too."""
    known = sorted(given)

    def place(letters: str) -> tuple[int, ...]:
        found = []
        for letter in letters:
            at = bisect_left(known, letter)
            found.append(2 * at + (at < len(known) and known[at] == letter))
        return tuple(found)

    found: dict[tuple[tuple[int, ...], ...], str] = {}
    for letter in (*known, *_between(known)):
        found.setdefault((place(letter), place(letter.lower()), place(letter.upper())), letter)
    for letter, lower, upper in _cased():
        found.setdefault((place(letter), place(lower), place(upper)), letter)
    return list(found.values())


def _between(known: list[str]) -> Iterator[str]:
    """Yield a letter without case between each two neighbours, before the first and after the last, where one is."""
    cased = {letter for letter, _, _ in _cased()}
    ends = [-1, *map(ord, known), sys.maxunicode + 1]
    for low, high in pairwise(ends):
        for code in range(low + 1, high):
            if not 0xD800 <= code < 0xE000 and chr(code) not in cased:
                yield chr(code)
                break
