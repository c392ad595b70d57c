"""Spaces by finite witnesses: every cell of every dimension has a value that stands for it.

From all constants and bounds of a history a dimension gets values that decide every comparison: each of them, what
lies directly below and above, the ends of the domain, and NULL. The region of a publication is the witnesses inside
it; a subscription matches if some combination of them makes its expression TRUE.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.models.kind import Kind
from tests.models.kinds import Concepts, Days, Hosts, Moments, Tree, Truth, Words, cased, folded, network, unfolded
from tests.models.logic import Expression, Truth3, any3, fits, holds, leaves, pattern_free
from tests.models.numbers import Double, Long, Whole
from tocsin import Derived, Interval, Space

MISSING = "missing"
FREE = "free"
COMBINATIONS = 1_024


class Refused(Exception):  # noqa: N818
    """What the documentation says is refused."""


class Undocumented(Exception):  # noqa: N818
    """What the documentation does not decide: a history that comes to it ends there."""


def kind_of(spec: list[Any], zone: str) -> Kind:
    """Return a type from its description in a history."""
    match spec:
        case ["int64"]:
            return Whole()
        case ["double"]:
            return Double()
        case ["decimal", digits, scale]:
            return Long(digits, scale)
        case ["text", synonyms]:
            return Words(synonyms)
        case ["boolean"]:
            return Truth()
        case ["date"]:
            return Days(zone)
        case ["timestamp"]:
            return Moments(True, zone)
        case ["timestamp_ntz"]:
            return Moments(False, zone)
        case ["address"]:
            return Hosts()
        case ["concept", parents, synonyms, texts]:
            return Concepts(Tree(parents, synonyms), texts)
    raise TypeError(spec)


FORMULAS: dict[str, Any] = {
    "{} + 1": lambda value: value + 1,
    "2 * {}": lambda value: 2 * value,
    "lower({})": lambda value: value.lower(),
    "length({})": len,
    "concat({}, 'x')": lambda value: value + "x",
    "year({})": lambda value: value.year,
}


class SpaceModel:
    """One space: its dimensions, and which of them count as values of a field."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.any = spec["unspecified"] == "any"
        self.zone = spec.get("timezone", "UTC")
        self.kinds: dict[str, Kind] = {}
        self.derived: dict[str, tuple[str, str]] = {}
        self.below: dict[str, list[str]] = spec.get("attributes") or {}
        self.aliases: dict[str, str] = spec.get("synonyms") or {}
        for name, each in spec["dimensions"].items():
            if each[0] == "derived":
                self.derived[name] = (each[1], each[2])
                self.kinds[name] = kind_of(each[3], self.zone)
            else:
                self.kinds[name] = kind_of(each, self.zone)
        for name, children in self.below.items():
            self.kinds.setdefault(name, self.kinds[children[0]])
        self.dimensions = [name for name in self.kinds if name not in self.derived]
        self.witnesses: dict[str, list[Any]] = {}

    def declare(self) -> Space:
        kinds: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            if name in self.below:
                continue
            if name in self.derived:
                formula, base = self.derived[name]
                kinds[name] = Derived(formula.format(base), kind.declare())
            else:
                kinds[name] = kind.declare()
        return Space(
            kinds,
            unspecified="any" if self.any else "null",
            timezone=self.zone,
            attributes=self.below or None,
            synonyms=self.aliases or None,
        )

    def known(self, field: str) -> str | None:
        """Return the dimension that a name means."""
        name = self.aliases.get(field, field)
        return name if name in self.kinds else None

    def family(self, field: str) -> list[str]:
        """Return the dimensions that count as values of a field: itself and those below it."""
        return [field, *(name for child in self.below.get(field, ()) for name in self.family(child))]

    def sources(self, field: str) -> list[tuple[str, Any]]:
        """Return the dimensions that decide a field, and what makes its value of theirs."""
        if field in self.derived:
            formula, base = self.derived[field]
            return [(base, FORMULAS[formula])]
        return [(name, None) for name in self.family(field)]

    def settle(self, mentioned: dict[str, list[tuple[str, Any]]]) -> None:
        """Make the witnesses of every dimension from what a history mentions of it."""
        for name, kind in self.kinds.items():
            found: list[Any] = [*kind.ends()]
            if isinstance(kind, Words):
                found = thinned(kind, [*found, *texts(kind, mentioned.get(name, []))], mentioned.get(name, []))
            else:
                for sort, each in mentioned.get(name, []):
                    if sort == "network":
                        found += [near for end in network(each) for near in kind.near(end)]
                    else:
                        found += kind.near(each)
            unique = {(repr(type(each)), repr(each)): each for each in found}
            self.witnesses[name] = list(unique.values())


def texts(kind: Words, mentioned: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the texts that decide comparisons, folded ones too, and patterns."""
    plain: set[str] = set()
    tails: set[str] = {""}
    for sort, each in mentioned:
        if sort in ("value", "constant"):
            plain |= {each, *(kind.synonyms[each] for each in [each] if each in kind.synonyms)}
        elif sort in ("lower", "upper"):
            plain |= set(cases(each))
        elif sort == "pattern":
            for shape in shapes(each):
                plain |= {shape, *cases(shape)}
                tails |= {shape, *cases(shape)}
            start = beginning(each)
            plain |= {start, start[:-1] + chr(ord(start[-1]) + 1)} if start else set()
    near = {value for each in plain for value in kind.near(each)} | set(kind.ends())
    near |= {value + tail for value in list(near) for tail in tails}
    if any(sort in ("lower", "upper", "pattern") for sort, _ in mentioned):
        letters = representatives(mentioned)
        starts = {each[:end] for each in plain for end in range(len(each) + 1)}
        near |= {start + letter for start in starts for letter in letters}
        near |= {letter + tail for letter in letters for tail in tails}
    return sorted(each for each in near if each not in kind.synonyms)


def thinned(kind: Words, found: list[str], mentioned: Iterable[tuple[str, Any]]) -> list[str]:
    """Return two of all texts that no comparison and no pattern of a history tells apart: more would say the same."""
    constants: dict[str | None, list[str]] = {None: [], "lower": [], "upper": []}
    tests = []
    for sort, each in mentioned:
        if sort == "test":
            tests.append(each)
        elif sort != "pattern":
            constants[sort if sort in constants else None].append(each)
    bounds = [(fold, sorted(set(some))) for fold, some in constants.items() if some]
    cells: dict[Any, list[str]] = {}
    for text in dict.fromkeys(found):
        places = []
        for fold, some in bounds:
            image = folded(text, fold)
            places.append((bisect_left(some, image), bisect_right(some, image)))
        cell = cells.setdefault((*places, *(fits(kind, fold, test, text) for fold, test in tests)), [])
        if len(cell) < 2:
            cell.append(text)
    return [text for cell in cells.values() for text in cell]


def representatives(mentioned: Iterable[tuple[str, Any]]) -> list[str]:
    """Return letters of which one compares with all mentioned ones as any other does, as it is and in either case."""
    known: dict[str, set[str]] = {"": set(), "lower": set(), "upper": set()}
    for sort, each in mentioned:
        if sort == "test":
            continue
        known[sort if sort in known else ""] |= set(each)
        if sort == "pattern":  # may be asked of small letters
            known["lower"] |= set(each.lower())
    ordered = {fold: sorted(letters) for fold, letters in known.items()}

    def place(letters: str, fold: str) -> tuple[tuple[int, int], ...]:
        return tuple((bisect_left(ordered[fold], one), bisect_right(ordered[fold], one)) for one in letters)

    beside = {chr(ord(letter) + 1) for letters in known.values() for letter in letters if letter < "\ud7ff"}
    found: dict[Any, str] = {}
    for letter in [*sorted(beside), *cased()]:
        alike = place(letter, ""), place(letter.lower(), "lower"), place(letter.upper(), "upper")
        found.setdefault(alike, letter)
    return list(found.values())


def tokens(pattern: str) -> list[tuple[str, bool]]:
    """Return the characters of a LIKE pattern, and whether each stands for itself."""
    found = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
            found.append((pattern[at], True))
        else:
            found.append((pattern[at], pattern[at] not in "%_"))
        at += 1
    return found


def shapes(pattern: str) -> Iterator[str]:
    """Yield texts that have the shape of a pattern, and what is left of it at its end."""
    for many in ("", "q"):
        yield "".join(each if plain else many if each == "%" else "a" for each, plain in tokens(pattern))
    last = [place for place, (_, plain) in enumerate(tokens(pattern)) if not plain]
    yield "".join(each for each, _ in tokens(pattern)[last[-1] + 1 if last else 0 :])


def beginning(pattern: str) -> str:
    """Return the text that everything of a pattern's shape begins with."""
    return "".join(each for each, _ in itertools.takewhile(lambda token: token[1], tokens(pattern)))


def cases(text: str) -> Iterator[str]:
    """Yield texts that fold to a text, or that it folds to: every letter as it is, small, capital or special."""
    special = unfolded()
    choices = []
    for letter in text[:4]:
        ways = {letter, letter.lower(), letter.upper(), *special.get(("lower", letter), [])[:2]}
        choices.append(sorted(ways | set(special.get(("upper", letter), [])[:2])))
    for letters in itertools.islice(itertools.product(*choices), 64):
        yield "".join(letters) + text[4:]
    for start, length, fold in itertools.product(range(len(text)), (1, 2, 3), ("lower", "upper")):
        for letter in special.get((fold, text[start : start + length]), ()):
            yield text[:start] + letter + text[start + length :]


def contained(kind: Kind, given: Any, value: Any) -> bool:
    """Return whether a value that is not NULL lies in a point, an interval or a set."""
    if isinstance(given, (set, frozenset, list)):
        return any(contained(kind, each, value) for each in given)
    if isinstance(given, tuple):
        given = Interval(*given)
    if not isinstance(given, Interval):
        return kind.compare(value, kind.read(given)) == 0
    if given.low is not None:
        found = kind.compare(value, kind.read(given.low))
        if found < 0 or (found == 0 and given.closed in ("right", "neither")):
            return False
    if given.high is not None:
        found = kind.compare(value, kind.read(given.high))
        if found > 0 or (found == 0 and given.closed in ("left", "neither")):
            return False
    return True


def pieces(given: Any) -> list[Any]:
    """Return the points and intervals of something given."""
    if isinstance(given, (set, frozenset, list)):
        return list(given)
    return [given]


def is_range(given: Any) -> bool:
    return isinstance(given, (tuple, Interval))


def mentions(given: Any) -> list[Any]:
    """Return the values and bounds of something given."""
    found: list[Any] = []
    for piece in pieces(given):
        if isinstance(piece, tuple):
            found += piece
        elif isinstance(piece, Interval):
            found += [piece.low, piece.high]
        else:
            found.append(piece)
    return [each for each in found if each is not None]


class Extent:
    """A region of a publication in one space: the witnesses of each dimension, and which of them a range holds."""

    def __init__(self, space: SpaceModel, values: Mapping[str, Any]) -> None:
        self.space = space
        self.values = values
        self.held: dict[str, tuple[list[int], list[int]]] = {}

    def of(self, name: str) -> tuple[list[int], list[int]]:
        """Return the witnesses given as points, and those inside ranges; NULL is the last of all."""
        if name not in self.held:
            self.held[name] = self.find(name)
        return self.held[name]

    def whole(self, name: str) -> bool:
        """Return whether a region holds every value of a dimension."""
        points, ranged = self.of(name)
        return len({*points, *ranged}) == len(self.space.witnesses[name])

    def find(self, name: str) -> tuple[list[int], list[int]]:
        kind, witnesses = self.space.kinds[name], self.space.witnesses[name]
        given = self.values.get(name)
        if given is None:
            if self.space.any:
                return [], list(range(len(witnesses)))
            return [len(witnesses)], []
        points: list[int] = []
        ranged: list[int] = []
        for piece in pieces(given):
            inside = [place for place, value in enumerate(witnesses) if contained(kind, piece, value)]
            if not inside:
                raise Refused(f"{name}: {piece} holds no value")
            one = kind.compare(witnesses[inside[0]], witnesses[inside[-1]]) == 0 and len(inside) <= 2
            (ranged if is_range(piece) and not one else points).extend(inside)
        return points, ranged


class Wish:
    """A region of a subscription in one space: what its expression says of every witness, leaf by leaf."""

    def __init__(self, space: SpaceModel, expression: Expression) -> None:
        self.space, self.expression = space, expression
        self.leaves = list(leaves(expression))
        self.places = {id(leaf): place for place, leaf in enumerate(self.leaves)}
        self.signs: dict[str, list[tuple[Any, ...]]] = {}
        self.blurred: dict[str, list[tuple[Any, ...]]] = {}
        self.formulas: dict[str, dict[str, list[tuple[int, Any]]]] = {}
        self.spans: dict[str, dict[bool, list[tuple[Any, ...]]]] = {}
        parts: dict[str, list[tuple[int, Any]]] = {}
        self.loose = False
        self.several = [False] * len(self.leaves)
        for place, leaf in enumerate(self.leaves):
            sources = space.sources(leaf[1])
            self.several[place] = len(sources) > 1
            for name, formula in sources:
                parts.setdefault(name, []).append((place, formula))
                if formula:
                    self.formulas.setdefault(name, {}).setdefault(leaf[1], []).append((place, None))
        for name, here in parts.items():
            self.signs[name], self.blurred[name] = self.judged(here, name, [*space.witnesses[name], None])
        for name, formulas in self.formulas.items():
            each = [self.judged(here, field, space.witnesses[field]) for field, here in formulas.items()]
            self.spans[name] = {
                loosely: [sum(some, ()) for some in itertools.product(*(set(one[loosely]) for one in each))]
                for loosely in (False, True)
            }

    def judged(self, here: list[tuple[int, Any]], name: str, values: list[Any]) -> Any:
        """Return what some leaves say of each value of a dimension, and what they say loosely."""
        columns = [self.column(place, formula, name, values) for place, formula in here]
        free = [not pattern_free(*self.leaves[place][2:]) for place, _ in here]
        self.loose |= any(free)
        signs = [
            tuple((place, column[at]) for (place, _), column in zip(here, columns, strict=True))
            for at in range(len(values))
        ]
        blurred = [
            tuple(
                (place, FREE if loose and truth is not MISSING else truth)
                for (place, truth), loose in zip(sign, free, strict=True)
            )
            for sign in signs
        ]
        return signs, blurred

    def column(self, place: int, formula: Any, name: str, values: list[Any]) -> list[Any]:
        """Return the truth of one leaf for every value of one dimension."""
        _, field, fold, test = self.leaves[place]
        kind = self.space.kinds[field if formula else name]
        found: list[Any] = []
        for value in values:
            if value is None and self.several[place]:
                found.append(MISSING)
                continue
            made = formula(value) if formula and value is not None else value
            if test[0] == "inside":
                found.append(made is not None and contained(kind, test[1], made))
            else:
                found.append(fits(kind, fold, test, made))
        return found

    def met(self, extent: Extent, loosely: bool = False) -> bool:
        """Return whether some combination of the witnesses of a region makes the expression TRUE.

        ``loosely``: what takes more than a beginning or an end of a text to decide may be either, inside a range.
        """
        choices = []
        for name, signs in self.signs.items():
            points, ranged = extent.of(name)
            blurred = self.blurred[name] if loosely else signs
            choices.append({signs[at] for at in points} | self.spanned(name, {blurred[at] for at in ranged}, loosely))
        for combination in itertools.product(*choices):
            truths: list[list[Any]] = [[] for _ in self.leaves]
            for sign in combination:
                for place, truth in sign:
                    truths[place].append(truth)
            if self.true(truths):
                return True
        return False

    def spanned(self, name: str, signs: set[tuple[Any, ...]], loosely: bool) -> set[tuple[Any, ...]]:
        """Return what may be said of a range: what a formula makes of it is any value of the formula's domain."""
        if name not in self.spans:
            return signs
        computed = {place for here in self.formulas[name].values() for place, _ in here}
        own = {tuple(each for each in sign if each[0] not in computed) for sign in signs}
        return {sign + span for sign in own for span in self.spans[name][loosely]}

    def true(self, truths: list[list[Any]]) -> bool:
        free = [place for place, each in enumerate(truths) if FREE in each]
        for guess in itertools.product([False, True], repeat=len(free)):
            chosen = dict(zip(free, guess, strict=True))
            settled = [
                chosen[place] if place in chosen else self.leaf(place, each) for place, each in enumerate(truths)
            ]
            if holds(self.expression, lambda leaf: settled[self.places[id(leaf)]]) is True:  # noqa: B023
                return True
        return False

    def leaf(self, place: int, truths: list[Any]) -> Truth3:
        """Return the truth of a leaf that one dimension decides, or several of which any counts."""
        if not self.several[place]:
            return truths[0]  # type: ignore[no-any-return]
        there = [truth for truth in truths if truth is not MISSING]
        if self.leaves[place][3][0] == "null":
            return not there
        return any3(there) if there else None
