"""Equal boxes held once: an engine behind which many numbers share one box.

Whoever holds this numbers every box as if it were alone; equal ones reach the engine once, and its answers name all
that share a box. What has no equal costs nothing but a look at its digest: of large numbers of boxes only one in
`SAMPLED` is remembered, until of those a share of one in `PAYS` has an equal; from then on all that come are.

It keeps less than the protocol promises: beside a change an answer may show a part of it, and numbers must not be given
again while a reader may hold them. The matcher, for which it is made, hides what is not published and sees to both.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from tocsin.errors import BoxNumberError
from tocsin.index import create
from tocsin.index.blocks import longer
from tocsin.index.boxes import Boxes, Int32s, Moved, Pairs, Queries
from tocsin.index.protocol import Index
from tocsin.kernels.checks import check, check_length, check_within
from tocsin.kernels.shared import Chains, box_digests, follow, leave, spread

FEW = 50_000
"""So many boxes are all remembered."""

SAMPLED = 256
"""Of more, one in so many."""

GLANCE = 1_024
"""So many of those that come at once are looked at to see whether many are equal."""

PAYS = 8
"""One equal box in so many is worth remembering all."""

_LOWER = 2**64 - 1


class Shared:
    """An engine whose equal boxes are held once.

    >>> from tocsin.index import create
    >>> index = Shared(create("adaptive"))
    >>> index.insert(np.array([7, 8], np.int32), Boxes.of([{0: [(1, 5)]}, {0: [(1, 5)]}]))
    >>> index.overlap(Queries.points(np.array([[3]]))).numbers.tolist(), len(index), len(index.engine)
    ([7, 8], 2, 1)
    """

    def __init__(self, engine: Index) -> None:
        self.engine = engine
        self._seeds = np.array([secrets.randbits(63) for _ in range(2)], np.uint64)
        self._number_by: dict[int, int] = {}
        self._digest_of: dict[int, int] = {}
        self._chains: Chains | None = None
        self._followers = 0
        self._silent = 0
        self._seen = 0
        self._equal = 0
        self._saved: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """The name of the engine."""
        return self.engine.name

    def __getattr__(self, name: str) -> Any:
        if name == "engine":  # not made yet
            raise AttributeError(name)
        return getattr(self.engine, name)

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes; those equal to one held share it."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        self._refuse_shared(numbers)
        self._recall()
        found = box_digests(*boxes, self._seeds)
        if len(numbers) == 1:
            self._insert_one(numbers, boxes, *found[0].tolist())
            return
        looked, pays, equal = np.arange(len(numbers)), True, 0
        if len(self.engine) + len(numbers) > FEW:
            sample = np.flatnonzero(found[:, 0] % np.uint64(SAMPLED) == 0)
            some = found[:: 1 + len(found) // GLANCE, 0]
            pays = self._is_worth_it(found[sample, 0], some)
            looked = looked if pays else sample
        new: dict[int, int] = {}
        places: list[int] = []
        leaders: list[int] = []
        listed = numbers[looked].tolist()
        for place, number, (upper, lower) in zip(looked.tolist(), listed, found[looked].tolist(), strict=True):
            digest = upper << 64 | lower
            leader = self._number_by.get(digest)
            leader = new.get(digest) if leader is None else leader
            if leader is None:
                new[digest] = number
                continue
            equal += 1
            if pays:
                places.append(place)
                leaders.append(leader)
        alone = np.delete(np.arange(len(numbers)), places)
        self.engine.insert(numbers[alone], boxes.take(alone) if places else boxes)
        self._number_by |= new
        self._digest_of |= {number: digest for digest, number in new.items()}
        self._seen += len(looked)
        self._equal += equal
        if self._chains is not None or places:
            self._make_room(int(numbers.max(initial=0)))
        if places:
            follow(self._chains, numbers[places], np.array(leaders, np.int32))
            self._followers += len(places)

    def _insert_one(self, numbers: Int32s, boxes: Boxes, upper: int, lower: int) -> None:
        """Add one box, given its digest."""
        pays = PAYS * self._equal >= self._seen > 0 or len(self.engine) < FEW
        looked = pays or upper % SAMPLED == 0
        digest, number = upper << 64 | lower, int(numbers[0])
        known = self._number_by.get(digest) if looked else None
        leader = known if pays else None
        if leader is None:
            self.engine.insert(numbers, boxes)
        if looked and known is None:
            self._number_by[digest], self._digest_of[number] = number, digest
        self._seen += looked
        self._equal += known is not None
        if self._chains is not None or leader is not None:
            self._make_room(number)
        if leader is not None:
            follow(self._chains, numbers, np.array([leader], np.int32))
            self._followers += 1

    def remove(self, numbers: Int32s) -> Int32s:
        """Forget boxes; return the numbers that are free: not those whose box others still share, but such as were
        kept for that and are no longer needed."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        self._recall()
        chains = self._chains
        if chains is None or numbers.max(initial=0) >= len(chains.leader):
            self.engine.remove(numbers)
            self._forget(numbers)
            return numbers
        following = chains.leader[numbers] >= 0
        led = chains.first[numbers] >= 0
        plain = numbers[~following & ~led]
        if chains.silent[numbers].any() or len(np.unique(numbers)) != len(numbers):
            gone = numbers[chains.silent[numbers]][:5].tolist()
            raise BoxNumberError(f"no such box numbers: {gone or 'given twice within one call'}")
        if len(plain):
            self.engine.remove(plain)
            self._forget(plain)
        shared = numbers[following | led]
        self._silent += int(led.sum())
        self._followers -= int(following.sum())
        over = leave(chains, shared)
        if len(over):
            self.engine.remove(over)
            self._forget(over)
            chains.silent[over] = False
            self._silent -= len(over)
        return np.concatenate([plain, numbers[following], over])

    def overlap(self, queries: Queries) -> Pairs:
        """Ask the engine, and name all that share a box."""
        return self._spread(self.engine.overlap(queries))

    def moved(self, old: Queries, new: Queries) -> Moved:
        """Ask the engine, and name all that share a box."""
        moved = self.engine.moved(old, new)
        return Moved(self._spread(moved.entered), self._spread(moved.left))

    def contents(self) -> tuple[Int32s, Boxes]:
        """Return a box for every number."""
        numbers, boxes = self.engine.contents()
        if self._chains is None:
            return numbers, boxes
        rows, every = spread(self._reaching(numbers), np.arange(len(numbers), dtype=np.int32), numbers)
        order = np.argsort(every)
        return every[order], boxes.take(rows[order])

    def stats(self) -> Mapping[str, Any]:
        """Return the account of the engine, and how many boxes are shared."""
        account = dict(self.engine.stats())
        chains = sum(part.nbytes for part in self._chains) if self._chains is not None else 0
        remembered = len(self._number_by) if self._saved is None else len(self._saved[0])
        return account | {
            "boxes": len(self),
            "bytes": account["bytes"] + chains + 200 * remembered,
            "shared": {"held": len(self.engine), "sharing": self._followers, "remembered": remembered},
        }

    def __len__(self) -> int:
        return len(self.engine) + self._followers - self._silent

    def kept(self) -> Int32s:
        """Return the numbers that are gone but kept, because others share their box."""
        chains = self._chains
        return np.empty(0, np.int32) if chains is None else np.flatnonzero(chains.silent).astype(np.int32)

    def to_sharing(self) -> dict[str, Any]:
        """Return as plain arrays who shares whose box; the engine is saved by itself."""
        self._recall()
        known = {
            "seeds": self._seeds,
            "counts": np.array([self._seen, self._equal]),
            "remembered": np.fromiter(self._digest_of, np.int32, len(self._digest_of)),
            "digests": np.array(
                [(digest >> 64, digest & _LOWER) for digest in self._digest_of.values()], np.uint64
            ).reshape(-1, 2),
        }
        if self._chains is None:
            return known | dict.fromkeys(("numbers", "leaders", "silent"), np.empty(0, np.int32))
        numbers = self.engine.contents()[0]
        reaching = self._reaching(numbers)
        rows, every = spread(reaching, np.arange(len(numbers), dtype=np.int32), numbers)
        leaders = numbers[rows]
        others = every != leaders
        silent = numbers[reaching.silent[numbers]]
        return known | {"numbers": every[others], "leaders": leaders[others], "silent": silent}

    @classmethod
    def from_sharing(cls, engine: Index, arrays: Mapping[str, Any], end: int = 2**31) -> Shared:
        """Return an engine with who shares whose box, as `to_sharing` told it; box numbers are below ``end``.
        ValueError if these arrays cannot be what was told."""
        shared = cls(engine)
        if not arrays:
            return shared
        numbers, leaders, silent = (np.array(arrays[name], np.int32) for name in ("numbers", "leaders", "silent"))
        for some in (numbers, leaders, silent, arrays["remembered"]):
            check_within("numbers that share boxes", some, 0, end)
        check_length("leaders", len(leaders), len(numbers))
        check_length("digests", arrays["digests"].size, 2 * len(arrays["remembered"]))
        check(len(np.unique(numbers)) == len(numbers), "a number that shares two boxes")
        check(not np.isin(numbers, leaders).any(), "a number that shares a box and lends one")
        if len(numbers) or len(silent):
            shared._make_room(int(max(part.max(initial=0) for part in (numbers, leaders, silent))))
            follow(shared._chains, numbers, leaders)
            shared._reaching(silent).silent[silent] = True
            shared._followers, shared._silent = len(numbers), len(silent)
        if "seeds" in arrays:
            shared._seeds = np.array(arrays["seeds"], np.uint64)
            shared._seen, shared._equal = (int(count) for count in arrays["counts"])
            shared._saved = arrays["remembered"], arrays["digests"]
        return shared

    def _recall(self) -> None:
        """Remember what was saved, once something changes: opening an index to ask it needs nothing of that."""
        if self._saved is not None:
            numbers, digests = (part.tolist() for part in self._saved)
            self._saved = None
            self._digest_of = {number: high << 64 | low for number, (high, low) in zip(numbers, digests, strict=True)}
            self._number_by = {digest: number for number, digest in self._digest_of.items()}

    def _spread(self, pairs: Pairs) -> Pairs:
        if self._chains is None or not len(pairs.numbers):
            return pairs
        return Pairs(*spread(self._reaching(pairs.numbers), pairs.rows, pairs.numbers))

    def _reaching(self, numbers: Int32s) -> Chains:
        """Return chains that have a place for each of these numbers."""
        if self._chains is None or numbers.max(initial=0) >= len(self._chains.first):
            self._make_room(int(numbers.max(initial=0)))
        chains: Any = self._chains
        return chains  # type: ignore[no-any-return]

    def _make_room(self, most: int) -> None:
        """See that chains have a place for a number. Readers may hold shorter ones: theirs lead nowhere new."""
        old = self._chains
        if old is None:
            none = np.full(0, -1, np.int32)
            old = Chains(none, none, none, none, np.zeros(0, np.bool_))
        if most >= len(old.first):
            room = max(most + 1, 2 * len(old.first), 1_024)
            first, following, before, leader = (longer(part, room, -1) for part in old[:4])
            self._chains = Chains(first, following, before, leader, longer(old.silent, room, 0))

    def _is_worth_it(self, sample: Any, some: Any) -> bool:
        """Return whether equal boxes are frequent: among those remembered and those of what comes that would be, which
        finds pairs far apart; or among some of what comes, which finds few boxes given many times."""
        again = len(sample) - len(np.unique(sample))
        frequent = PAYS * (self._equal + again) >= self._seen + len(sample) > 0
        return frequent or PAYS * (len(some) - len(np.unique(some))) >= len(some)

    def _forget(self, numbers: Int32s) -> None:
        if self._digest_of:
            for number in self._digest_of.keys() & numbers.tolist():
                del self._number_by[self._digest_of.pop(number)]

    def _refuse_shared(self, numbers: Int32s) -> None:
        """Refuse numbers that share a box, which the engine does not know of."""
        chains = self._chains
        if chains is not None and len(numbers):
            here = numbers[(numbers >= 0) & (numbers < len(chains.leader))]
            taken = here[(chains.leader[here] >= 0) | chains.silent[here]]
            if len(taken):
                raise BoxNumberError(f"box numbers given twice: {taken[:5].tolist()}")


def create_shared(name: str, **options: Any) -> Index:
    """Return an empty index of the named engine whose equal boxes are held once.

    >>> create_shared("scan").stats()["shared"]
    {'held': 0, 'sharing': 0, 'remembered': 0}
    """
    index: Any = Shared(create(name, **options))
    return index  # type: ignore[no-any-return]


def kept_by(index: Index) -> Int32s:
    """Return the numbers that an index, shared or not, keeps for others though they are gone."""
    return index.kept() if isinstance(index, Shared) else np.empty(0, np.int32)


def remove_from(index: Index, numbers: Int32s) -> Int32s:
    """Remove boxes from an index, shared or not; return the numbers that are free now."""
    if isinstance(index, Shared):
        return index.remove(numbers)
    index.remove(numbers)
    return numbers
