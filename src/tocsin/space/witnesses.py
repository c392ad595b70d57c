"""Is there a text that lies in all of several sets, of texts as they are, in another case, or reversed?

What a range of texts becomes in small letters or reversed is no range, so its codes there do not decide it. This does:
texts are built letter by letter, and all that is kept of one is how it compares with every bound so far. That is
finite, and so is the alphabet, since letters that compare alike with all letters of the bounds are as good as one.

The small form of one letter depends on its neighbours: a capital sigma that ends a word becomes ς, any other σ. Where
bounds have these letters, it is guessed which, and kept what must follow for the guess to be right.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Hashable, Iterator
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
    given = {letter for track in tracks for bound in track.bounds for letter in bound}
    sigmas = any(track.fold == "lower" for track in tracks) and not given.isdisjoint(_SIGMAS)
    letters = _alphabet(frozenset(given | _SIGMAS if sigmas else given), sigmas)
    folds = {track.fold for track in tracks}
    images = [_Image(letter, folds, sigmas) for letter in letters]
    if sigmas:
        images.append(_Image("Σ", folds, True, final=True))
    start: tuple[tuple[State, ...], Context] = tuple(track.start() for track in tracks), (False, None)
    seen, waiting = {start}, [start]
    while waiting:
        following = []
        for state, context in waiting:
            if not context[1] and all(track.accepts(each) for track, each in zip(tracks, state, strict=True)):
                return True
            for image in images:
                now = image.context(context) if sigmas else context
                if now is None:
                    continue
                of = image.of
                after = tuple(track.after(each, of[track.fold]) for track, each in zip(tracks, state, strict=True)), now
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        if len(seen) > MOST_STATES:
            return True
        waiting = following
    return False


State = tuple[tuple[int, ...], ...]

Context = tuple[bool, bool | None]
"""Whether a letter with case comes before, and whether one must follow (None: either may)."""

_SIGMAS = frozenset("Σσς")


class _Image:
    """A letter in every case that is asked for; of a capital sigma, as it is in the middle of a word or at its end."""

    def __init__(self, letter: str, folds: set[str], sigmas: bool, *, final: bool = False) -> None:
        self.of = {fold: derive_one(letter, fold) for fold in folds}  # type: ignore[arg-type]
        self._final, self._sigma = final, sigmas and letter == "Σ"
        self._sort = _sort(letter) if sigmas else ""
        if final:
            self.of["lower"] = "ς"

    def context(self, before: Context) -> Context | None:
        """Return the context after this letter; None if it may not come in that context."""
        cased, wanted = before
        if self._sort == "ignored":
            return before
        if wanted is not None and wanted != (self._sort == "cased"):
            return None
        if self._sigma and (cased or self._final):
            return (True, not self._final) if cased else None
        return self._sort == "cased", None


def _sort(letter: str) -> str:
    """Return what a letter is to a capital sigma behind it: it has case, is passed over, or ends the word."""
    if f"{letter}Σ".lower().endswith("ς"):
        return "cased"
    return "ignored" if f"A{letter}Σ".lower().endswith("ς") else "other"


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
def _cased() -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the letters that have another case: their codes with those of the small and the capital form, int64[3,
    letters], and apart from them those of which one of these is several letters. Beyond the second plane of Unicode
    there are none."""
    letters = (chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000)
    found = [each for each in letters if each.lower() != each or each.upper() != each]
    short = [each for each in found if len(each.lower()) == len(each.upper()) == 1]
    codes = [[ord(each), ord(each.lower()), ord(each.upper())] for each in short]
    return np.array(codes, np.int64).T, [each for each in found if len(each.lower()) > 1 or len(each.upper()) > 1]


@cache
def _ignored() -> list[int]:
    """Return the letters without case that a capital sigma passes over."""
    letters = (code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    return [code for code in letters if _sort(chr(code)) == "ignored" and chr(code).lower() == chr(code).upper()]


@lru_cache(maxsize=256)
def _alphabet(given: frozenset[str], sigmas: bool) -> list[str]:
    """Return letters of which one compares with the given ones as any other letter does, in either case too; with
    ``sigmas``, it is also the same to a capital sigma."""
    known = sorted(map(ord, given))
    codes, longer = _cased()
    places = 2 * np.searchsorted(known, codes) + np.isin(codes, known)
    _, firsts = np.unique(places.T @ np.array([1, 2**20, 2**40]), return_index=True)
    alike = [chr(code) for code in codes[0, firsts].tolist()]

    def place(letters: str) -> tuple[int, ...]:
        pairs = ((code, bisect_left(known, code)) for code in map(ord, letters))
        return tuple(2 * at + (at < len(known) and known[at] == code) for code, at in pairs)

    found: dict[tuple[Hashable, ...], str] = {}
    for letter in (*sorted(given), *_between(known, sigmas), *alike, *longer):
        sort = _sort(letter) if sigmas else ""
        found.setdefault((place(letter), place(letter.lower()), place(letter.upper()), sort), letter)
    return list(found.values())


def _between(known: list[int], sigmas: bool) -> Iterator[str]:
    """Yield a letter without case between each two neighbours, before the first and after the last, where one is; with
    ``sigmas``, also one that a capital sigma passes over."""
    for low, high in pairwise([-1, *known, sys.maxunicode + 1]):
        codes = (code for code in range(low + 1, high) if not 0xD800 <= code < 0xE000)
        plain = (letter for letter in map(chr, codes) if letter.lower() == letter == letter.upper())
        yield from islice((letter for letter in plain if not sigmas or _sort(letter) == "other"), 1)
        if sigmas and (at := bisect_left(_ignored(), low + 1)) < len(_ignored()) and _ignored()[at] < high:
            yield chr(_ignored()[at])
