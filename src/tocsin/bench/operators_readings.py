"""What the operators paper leaves open, read in every way we could think of, and how far its printed counts are then.

Table 1 and section 5.2 of the paper fix subscriptions, predicates, lengths and popularity. Open are which predicates an
event makes true (only that 0.2 % of subscriptions match), in which order a subscription's predicates stand, whether
`sequential` goes on with a marked subscription that is decided, and which selectivities `sub-order` is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

RATIO = 0.002
"""The part of the subscriptions that an event matches on average."""

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

Truths = Literal["even", "spread", "two kinds", "rare hold", "popular hold", "anything", "chosen"]
Entries = Literal["drawn", "popular", "rare"]
Chains = Literal["known", "equal", "blind"]
ENTRIES: tuple[Entries, ...] = get_args(Entries)
CHAINS: tuple[Chains, ...] = get_args(Chains)

_EQUAL = 0.2
_STEPS = 30
_TRIALS = 24


class Drawn(NamedTuple):
    """The predicates of subscriptions, in the order in which they stand there."""

    offsets: npt.NDArray[np.int64]
    members: npt.NDArray[np.int32]
    predicates: int

    @property
    def popularity(self) -> Floats:
        """How many subscriptions have each predicate."""
        return np.bincount(self.members, minlength=self.predicates).astype(np.float64)

    def matched(self, holds: Bools) -> float:
        """Return the part of the subscriptions all of whose predicates hold."""
        return float(np.logical_and.reduceat(holds[self.members], self.offsets[:-1]).mean())


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the paper.

    ``truths``: predicates are independent and equally likely (``even``), of a likelihood drawn between 0 and twice the
    mean (``spread``), always or never true (``two kinds``), the likelier the rarer or the more popular (``rare hold``,
    ``popular hold``), of any likelihood from 0 to 1 (``anything``; far too many match); or subscriptions are
    ``chosen`` to match, which makes their predicates true, others being true with probability ``background``.
    ``entries``: a subscription's predicates stand as ``drawn``, the most ``popular`` first or the ``rare`` ones first.
    ``stops``: `sequential` leaves a marked subscription as soon as it is decided.
    ``chains``: `sub-order` is given the selectivities (``known``), or equal ones, equal predicates of a chain standing
    by popularity (``equal``) or anyhow (``blind``).
    """

    truths: Truths = "spread"
    background: float = 0.0
    entries: Entries = "drawn"
    stops: bool = False
    chains: Chains = "known"

    @property
    def independent(self) -> bool:
        """Whether no predicate tells anything about another."""
        return self.truths != "chosen"


OURS = Reading()
READINGS = {
    "spread": OURS,
    "even": Reading("even", chains="equal"),
    "fitted": Reading("chosen", 0.08, "rare", True, "equal"),
}
"""The readings that can be asked for by name: ours, the same with one selectivity, the nearest to the printed."""


class Events(NamedTuple):
    """Selectivities of predicates, and how to draw what an event makes true."""

    selectivity: Floats
    draw: Callable[[], Bools]


def events_of(drawn: Drawn, reading: Reading, rng: np.random.Generator) -> Events:
    """Return the events of a reading, such that on average 0.2 % of the subscriptions match.

    >>> drawn = Drawn(np.array([0, 2, 4]), np.array([0, 1, 1, 2], np.int32), 3)
    >>> events_of(drawn, Reading("even"), np.random.default_rng(1)).selectivity.round(3).tolist()
    [0.045, 0.045, 0.045]
    """
    if reading.truths == "chosen":
        return _chosen(drawn, reading.background, rng)
    some = rng.random(drawn.predicates)
    rank = np.argsort(np.argsort(some - drawn.popularity)) / drawn.predicates  # 0: the most popular
    shapes: dict[str, Callable[[float], Floats]] = {
        "even": lambda mean: np.full(drawn.predicates, mean),
        "spread": lambda mean: np.minimum(2 * mean * some, 1.0),
        "two kinds": lambda mean: np.where(some < mean, 1.0, 0.0),
        "rare hold": lambda mean: rank ** (1 / max(mean, 1e-9) - 1),
        "popular hold": lambda mean: (1 - rank) ** (1 / max(mean, 1e-9) - 1),
        "anything": lambda mean: some,
    }
    shape = shapes[reading.truths]
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        with np.errstate(divide="ignore"):
            likely = np.exp(np.add.reduceat(np.log(shape(middle))[drawn.members], drawn.offsets[:-1]))
        low, high = (middle, high) if likely.mean() < RATIO else (low, middle)
    selectivity = shape(low)
    return Events(selectivity, lambda: rng.random(drawn.predicates) < selectivity)


def _chosen(drawn: Drawn, background: float, rng: np.random.Generator) -> Events:
    """Return events whose predicates hold because some subscriptions were chosen to match."""
    subscriptions = len(drawn.offsets) - 1
    lengths = np.diff(drawn.offsets)

    def one(part: float) -> Bools:
        holds = rng.random(drawn.predicates) < background
        holds[drawn.members[np.repeat(rng.random(subscriptions) < part, lengths)]] = True
        return holds

    low, high = 0.0, RATIO  # others match by chance, so fewer are chosen
    for _ in range(8):
        middle = (low + high) / 2
        few = np.mean([drawn.matched(one(middle)) for _ in range(_TRIALS)]) < RATIO
        low, high = (middle, high) if few else (low, middle)
    selectivity = 1 - (1 - background) * (1 - low) ** drawn.popularity
    return Events(selectivity, lambda: one(low))


def placed(drawn: Drawn, entries: Entries) -> Drawn:
    """Return the subscriptions with their predicates in the order of a reading."""
    if entries == "drawn":
        return drawn
    popularity = drawn.popularity[drawn.members] * (-1 if entries == "popular" else 1)
    owner = np.repeat(np.arange(len(drawn.offsets) - 1), np.diff(drawn.offsets))
    return drawn._replace(members=np.ascontiguousarray(drawn.members[np.lexsort((popularity, owner))]))


def told(chains: Chains, selectivity: Floats, rng: np.random.Generator) -> Floats:
    """Return the selectivities that `sub-order` is given."""
    if chains == "known":
        return selectivity
    equal = np.full(len(selectivity), _EQUAL)
    return equal if chains == "equal" else equal * (1 + 1e-6 * rng.random(len(equal)))


def every_reading() -> Iterator[tuple[Truths, float]]:
    """Return the ways to draw truths that a search goes through; the other choices are combined with each."""
    yield from itertools.product(("even", "spread", "two kinds", "rare hold", "popular hold", "anything"), (0.0,))
    yield from itertools.product(("chosen",), (0.0, 0.05, 0.08, 0.1))


def as_json(reading: Reading) -> dict[str, Any]:
    """Return a reading as JSON values.

    >>> as_json(OURS)["truths"]
    'spread'
    """
    return asdict(reading)
