"""`tocsin bench operators --readings`: how far the paper's printed counts are from ours under every reading of it.

Beside it a proof that needs no reading of the truths: whatever is true, a subscription is decided only by a predicate
of its own, so what is evaluated hits every subscription. `hitting_exponent` bounds the expected number of sets of a
given size that do, over the subscriptions that the paper draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tocsin.bench.operators import LEAST, PRINTED, Setting, chains_of, draw, evaluated, graph_of
from tocsin.bench.operators_readings import (
    CHAINS,
    ENTRIES,
    OURS,
    Chains,
    Drawn,
    Floats,
    Reading,
    Truths,
    as_json,
    events_of,
    every_reading,
    placed,
    told,
)
from tocsin.kernels.operators import ordering
from tocsin.operators.orders import new_progress

SETTINGS = [Setting(*key) for key in PRINTED]
"""The settings of which the paper prints counts; the first is the large one of figure 4."""

MEANT = replace(SETTINGS[0], figure=5, alpha=1.0)
"""The first of them with the popularity of figure 5."""

NEAREST = 2
"""For so many of the nearest ways to draw truths, and for ours, the large settings are counted too."""

_TRUTHLESS: tuple[Chains, ...] = ("equal", "blind")
_GROUPS = 200
_WEIGHTS = 40
_STEEPEST = 64.0

Counts = dict[Setting, dict[tuple[str, str], float]]


def steps() -> int:
    """Return how often `search` tells that it has advanced."""
    return len(list(every_reading())) * len(SETTINGS[1:]) + 2 * (NEAREST + 1)


def search(
    events: int,
    seed: int = 1,
    small: list[Setting] | None = None,
    large: list[Setting] | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> list[dict[str, Any]]:
    """Return every reading with its counts and their deviations from the printed ones, the nearest first.

    Nearness (``worst``) is the greatest deviation of `sequential` and `sub-order` in the settings of 20,000
    subscriptions. Those of 80,000 are counted for the nearest readings and for ours; the counts of figure 4 are
    compared as they stand and with those of figure 5.
    """
    ways = list(every_reading())
    counts: dict[tuple[Truths, float], Counts] = {way: {} for way in ways}
    _count(ways, SETTINGS[1:] if small is None else small, counts, events, seed, advance)
    rows = _rows(counts)
    nearest = list(dict.fromkeys((row["truths"], row["background"]) for row in rows))[:NEAREST]
    wanted = dict.fromkeys([*nearest, (OURS.truths, OURS.background)])
    _count(list(wanted), [SETTINGS[0], MEANT] if large is None else large, counts, events, seed, advance)
    return _rows(counts)


def _count(
    ways: list[tuple[Truths, float]],
    settings: list[Setting],
    counts: dict[tuple[Truths, float], Counts],
    events: int,
    seed: int,
    advance: Callable[[int], None],
) -> None:
    """Count in these settings for these ways to draw truths; what does not depend on truths is built once."""
    for setting in settings:
        drawn, rng = draw(setting, seed), np.random.default_rng(seed)
        nothing = np.zeros(setting.predicates)
        chains = {name: chains_of(drawn, told(name, nothing, rng)) for name in _TRUTHLESS}
        for way in ways:
            counts[way][setting] = _counts(drawn, chains, Reading(*way), events, seed)
            advance(1)


def _rows(counts: dict[tuple[Truths, float], Counts]) -> list[dict[str, Any]]:
    rows = [
        _row(Reading(*way, entries, stops, chains), held)
        for way, held in counts.items()
        for entries in ENTRIES
        for stops in (False, True)
        for chains in CHAINS
    ]
    return sorted(rows, key=lambda row: float(row["worst"]))


def _counts(
    drawn: Drawn, chains: dict[Chains, ordering.Graph], reading: Reading, events: int, seed: int
) -> dict[tuple[str, str], float]:
    """Return the predicates evaluated an event: by order and entries, of `sub-order` by chains."""
    rng = np.random.default_rng(seed + 1)
    given = events_of(drawn, reading, rng)
    happened = [given.draw() for _ in range(events)]
    cost, kill = np.ones(drawn.predicates), 1.0 - given.selectivity
    found: dict[tuple[str, str], float] = {("matched", ""): float(np.mean([drawn.matched(each) for each in happened]))}

    def mean(graph: ordering.Graph, code: int) -> float:
        progress = new_progress(graph)
        return float(np.mean([evaluated(graph, progress, code, holds, kill, cost) for holds in happened]))

    for entries in ENTRIES:
        graph = graph_of(placed(drawn, entries), np.arange(len(drawn.offsets) - 1))
        found["naive", entries] = mean(graph, ordering.NAIVE)
        found["whole", entries] = mean(graph, ordering.SEQUENTIAL)
        found["stops", entries] = mean(graph, ordering.SUB_ORDER)
    for name, graph in ({"known": chains_of(drawn, given.selectivity)} | chains).items():
        found["sub-order", name] = mean(graph, ordering.SUB_ORDER)
    return found


def _row(reading: Reading, counts: dict[Setting, dict[tuple[str, str], float]]) -> dict[str, Any]:
    """Return a reading with its counts, and their deviations as parts of what is printed."""
    shown: dict[str, Any] = {}
    away: dict[str, dict[str, float]] = {}
    for setting, held in counts.items():
        ours = {
            "naive": held["naive", reading.entries],
            "sequential": held["stops" if reading.stops else "whole", reading.entries],
            "sub-order": held["sub-order", reading.chains],
        }
        name = _name(setting)
        printed = PRINTED.get(_key(setting), PRINTED.get(_key(replace(setting, figure=4, alpha=None)), {}))
        shown[name] = {order: round(count, 1) for order, count in ours.items()} | {
            "matched": round(held["matched", ""], 6)
        }
        away[name] = {order: round(ours[order] / count - 1, 3) for order, count in printed.items()}
    worst = {
        name: max((abs(off) for order, off in each.items() if order != "naive"), default=0.0)
        for name, each in away.items()
    }
    return {
        **as_json(reading),
        "counts": shown,
        "deviations": away,
        "worst": max((off for name, off in worst.items() if name not in _LARGE), default=0.0),
        "worst_of_all": max((off for name, off in worst.items() if name != _name(SETTINGS[0])), default=0.0),
    }


def _key(setting: Setting) -> tuple[int, int, int, int, float | None]:
    return setting.figure, setting.subscriptions, setting.predicates, setting.longest, setting.alpha


def _name(setting: Setting) -> str:
    return f"figure {setting.figure}, longest {setting.longest}"


_LARGE = (_name(SETTINGS[0]), _name(MEANT))


def hitting_exponent(setting: Setting, size: int, seed: int = 1) -> float:
    """Return the logarithm of a bound on the expected number of sets of so many predicates that hit every subscription,
    for uniform popularity; a negative number x says that there is one with probability at most e ** x.

    A subscription of l predicates is hit by a set that has the part m of all weight with probability at most
    1 - (1 - m') ** l, where m' makes up for drawing without replacement. Sets of one size are counted by their weight.

    >>> hitting_exponent(Setting(4, 2_000, 1_000), 100) < 0 < hitting_exponent(Setting(4, 2_000, 1_000), 600)
    True
    """
    rng = np.random.default_rng([seed, setting.subscriptions, setting.predicates, setting.longest])
    weights = rng.random(setting.predicates)
    weights /= weights.sum()
    most = (setting.longest - 1) * float(weights.max())
    lengths = np.arange(LEAST, setting.longest + 1)
    ranked = np.sort(weights)
    heaviest = float(ranked[-size:].sum())
    groups = np.array_split(ranked, min(_GROUPS, len(ranked)))
    scaled = np.array([group[-1] for group in groups]) * len(ranked)  # rounded up: more sets count as heavy
    many = np.array([len(group) for group in groups], np.float64)
    steps = np.linspace(
        0.0, heaviest, _WEIGHTS
    )  # sets of weights between two: as many as at the lower, hit as at the upper
    hit = 1 - (np.clip(1 - steps[1:, None] / max(1 - most, 1e-9), 0, 1) ** lengths).mean(axis=1)
    sets = _entropy(scaled, many, size, steps[:-1] * len(ranked))
    return float((sets + setting.subscriptions * np.log(hit)).max() + np.log(len(steps)))


def _entropy(scaled: Floats, many: Floats, size: int, mass: Floats) -> Floats:
    """Return the logarithm of a bound on the number of sets of this size with at least each weight: the dual of the
    greatest entropy, which bounds it at any point and is convex."""
    low, high = np.zeros(len(mass)), np.full(len(mass), _STEEPEST)
    best = np.full(len(mass), np.inf)
    for _ in range(25):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        at_left, at_right = _dual(scaled, many, size, mass, left), _dual(scaled, many, size, mass, right)
        best = np.minimum(best, np.minimum(at_left, at_right))
        low, high = np.where(at_left < at_right, low, left), np.where(at_left < at_right, right, high)
    return best


def _dual(scaled: Floats, many: Floats, size: int, mass: Floats, b: Floats) -> Floats:
    low, high = np.full(len(b), -80.0), 80.0 + b * float(scaled.max())
    steep = b[:, None] * scaled
    a = (low + high) / 2
    for _ in range(30):  # the a that gives this size
        a = (low + high) / 2
        much = (1 / (1 + np.exp(np.clip(a[:, None] - steep, -700, 700)))) @ many > size
        low, high = np.where(much, a, low), np.where(much, high, a)
    found: Floats = np.logaddexp(0.0, steep - a[:, None]) @ many + a * size - b * mass
    return found


def unreachable(setting: Setting, seed: int = 1) -> int:
    """Return the greatest number of predicates that cannot decide all subscriptions of a setting with uniform
    popularity, except with a probability below e ** -100, whatever is true and in whatever order.

    >>> 0 < unreachable(Setting(4, 2_000, 1_000)) < 1_000
    True
    """
    low, high = 0, setting.predicates
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if hitting_exponent(setting, middle, seed) < -100 else (low, middle)
    return low
