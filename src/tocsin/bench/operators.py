"""`tocsin bench operators`: the experiments of the operators paper, figures 4 to 8, and what orders cost.

What the paper leaves open, and what is assumed here: each predicate has its own selectivity, drawn evenly between 0 and
twice the mean that makes 0.2 % of subscriptions match (or, with ``equal``, that mean); predicates are independent;
Zipf popularity is 1 / rank ** alpha; predicates of equal selectivity stand in a chain by popularity.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.operators import ordering
from tocsin.operators.orders import CODES, build_graph, chain_key, new_progress, sorted_graph, sub_order

RATIO = 0.002
LEAST = 3
ROUNDS = 30

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of a figure."""

    figure: int
    subscriptions: int
    predicates: int
    longest: int = 5
    alpha: float | None = None  # None: uniform popularity

    @property
    def popularity(self) -> str:
        """The popularity in words."""
        return "uniform" if self.alpha is None else f"Zipf {self.alpha:g}"


PRINTED: dict[tuple[int, int, int, int, float | None], dict[str, int]] = {
    (4, 80_000, 40_000, 5, None): {"sequential": 7761, "sub-order": 7037},
    (6, 20_000, 30_000, 5, 1.0): {"naive": 16251, "sequential": 3267, "sub-order": 1977},
    (7, 20_000, 5_000, 5, 1.0): {"sequential": 1593},
    (7, 20_000, 5_000, 11, 1.0): {"sequential": 1784},
}
"""The counts that the paper prints in words."""

FIGURES = [
    *(Setting(4, count, 40_000) for count in (2_000, 10_000, 20_000, 40_000, 80_000)),
    *(Setting(5, count, 40_000, alpha=1.0) for count in (2_000, 10_000, 20_000, 40_000, 80_000)),
    *(Setting(6, 20_000, count, alpha=1.0) for count in (2_000, 5_000, 10_000, 20_000, 30_000)),
    *(Setting(7, 20_000, 5_000, longest, 1.0) for longest in (5, 7, 9, 11)),
    *(Setting(8, 20_000, 5_000, alpha=alpha) for alpha in (None, 0.8, 1.0, 1.2)),
]


class Drawn(NamedTuple):
    """A workload: the predicates of subscriptions, and the selectivity of each."""

    offsets: npt.NDArray[np.int64]
    members: npt.NDArray[np.int32]
    selectivity: Floats


def draw(setting: Setting, seed: int, equal: bool = False) -> Drawn:
    """Draw a workload.

    >>> drawn = draw(Setting(4, 100, 50), 1)
    >>> int(np.diff(drawn.offsets).min()) >= 3
    True
    """
    rng = np.random.default_rng([seed, setting.subscriptions, setting.predicates, setting.longest])
    ranks = np.arange(1, setting.predicates + 1)
    weights = rng.random(setting.predicates) if setting.alpha is None else ranks**-setting.alpha
    bounds = np.cumsum(weights) / weights.sum()
    lengths = rng.integers(LEAST, setting.longest + 1, setting.subscriptions)
    chosen = np.searchsorted(bounds, rng.random((setting.subscriptions, setting.longest))).astype(np.int32)
    while True:
        order = np.argsort(chosen, axis=1, kind="stable")
        ranked = np.take_along_axis(chosen, order, 1)
        again = np.zeros(chosen.shape, bool)
        np.put_along_axis(again[:, :], order[:, 1:], ranked[:, 1:] == ranked[:, :-1], 1)
        if not again.any():
            break
        chosen[again] = np.searchsorted(bounds, rng.random(int(again.sum())))
    used = np.arange(setting.longest)[None, :] < lengths[:, None]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    mean = mean_selectivity(setting.longest)
    spread = np.full(setting.predicates, mean) if equal else rng.random(setting.predicates) * 2 * mean
    return Drawn(offsets, np.ascontiguousarray(chosen[used]), spread)


def mean_selectivity(longest: int) -> float:
    """Return the selectivity with which the ratio of subscriptions matches.

    >>> round(mean_selectivity(5), 3)
    0.171
    """
    low, high = 0.0, 1.0
    lengths = np.arange(LEAST, longest + 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (middle**lengths).mean() < RATIO else (low, middle)
    return low


def run(setting: Setting, events: int, seed: int = 1, equal: bool = False) -> dict[str, Any]:
    """Return the predicates evaluated an event in each order, in hindsight, and the least that any order needs."""
    drawn = draw(setting, seed, equal)
    cost, kill = np.ones(len(drawn.selectivity)), 1.0 - drawn.selectivity
    graphs, seconds = _graphs(drawn)
    rng = np.random.default_rng(seed + 1)
    counts: dict[str, list[int]] = {name: [] for name in (*graphs, "learning", "hindsight", "bound")}
    learned = _Learning(len(cost))
    matched = []
    progress = {name: new_progress(graph) for name, graph in graphs.items()}
    for _ in range(events):
        holds = rng.random(len(cost)) < drawn.selectivity
        for name, graph in graphs.items():
            counts[name].append(_evaluated(graph, progress[name], CODES[name], holds, kill, cost))
        matched.append(float((progress["adaptive"].pair_left == 0).mean()))
        graph, state = graphs["adaptive"], progress["adaptive"]
        counts["learning"].append(_evaluated(graph, state, ordering.ADAPTIVE, holds, learned.kill(), cost))
        learned.see(graph.task_call[state.task_done], holds)
        known = np.where(holds, 1e-12, 1.0)
        counts["hindsight"].append(_evaluated(graph, state, ordering.ADAPTIVE, holds, known, cost))
        counts["bound"].append(least(drawn, holds))
    means = {name: round(float(np.mean(each)), 1) for name, each in counts.items()}
    key = (setting.figure, setting.subscriptions, setting.predicates, setting.longest, setting.alpha)
    return {
        "figure": setting.figure,
        "subscriptions": setting.subscriptions,
        "predicates": setting.predicates,
        "longest": setting.longest,
        "popularity": setting.popularity,
        "matched": round(float(np.mean(matched)), 6),
        **means,
        "printed": PRINTED.get(key, {}),
        "build_seconds": {name: round(each, 3) for name, each in seconds.items()},
    }


def least(drawn: Drawn, holds: Bools, rounds: int = ROUNDS) -> int:
    """Return how many evaluations no order can do without, for one event: all predicates of what matches, and a
    packing of what does not (each such subscription needs a predicate that fails)."""
    owner = np.repeat(np.arange(len(drawn.offsets) - 1), np.diff(drawn.offsets))
    true = holds[drawn.members]
    all_true = np.bincount(owner, weights=~true, minlength=len(drawn.offsets) - 1) == 0
    needed = len(np.unique(drawn.members[all_true[owner]]))
    owner, failing = owner[~true], drawn.members[~true]
    share = (~all_true).astype(np.float64)
    for _ in range(rounds):  # each round keeps the packing feasible and makes it larger
        load = np.bincount(failing, weights=share[owner], minlength=len(holds))
        heaviest = np.zeros(len(share))
        np.maximum.at(heaviest, owner, load[failing])
        share = np.divide(share, heaviest, out=np.zeros_like(share), where=heaviest > 0)
    return needed + int(np.floor(share.sum()))


class _Learning:
    """Selectivities learned from nothing, as the library learns them."""

    def __init__(self, count: int) -> None:
        self._tried, self._held = np.zeros(count), np.zeros(count)

    def kill(self) -> Floats:
        prior = self._held.sum() / self._tried.sum() if self._tried.any() else 0.5
        found: Floats = 1.0 - (self._held + 2.0 * prior) / (self._tried + 2.0)
        return found

    def see(self, predicates: npt.NDArray[np.int32], holds: Bools) -> None:
        self._tried[predicates] += 1.0
        self._held[predicates] += holds[predicates]


def _graphs(drawn: Drawn) -> tuple[dict[str, ordering.Graph], dict[str, float]]:
    """Return the graph of each order for one event, and the seconds it took to build."""
    count = len(drawn.offsets) - 1
    rows, calls = np.zeros(count, np.int32), np.arange(len(drawn.selectivity), dtype=np.int32)

    def graph(conditions: npt.NDArray[Any]) -> ordering.Graph:
        given = conditions.astype(np.int32)
        return build_graph(rows, given, drawn.offsets, drawn.members, calls, 1, len(calls))

    begun = time.perf_counter()
    plain = graph(np.arange(count))
    new_progress(plain)
    built = time.perf_counter() - begun
    begun = time.perf_counter()
    rank = sub_order(drawn.offsets, drawn.members, drawn.selectivity, np.ones(len(calls)))
    popularity = np.bincount(drawn.members, minlength=len(calls)).astype(np.float64)
    chains = sorted_graph(graph(np.argsort(rank)), chain_key(drawn.selectivity, popularity))
    seconds = {"sub-order": time.perf_counter() - begun, "adaptive": built}
    return {"naive": plain, "sequential": plain, "sub-order": chains, "adaptive": plain}, seconds


def _evaluated(
    graph: ordering.Graph, progress: ordering.Progress, code: int, holds: Bools, kill: Floats, cost: Floats
) -> int:
    ordering.start(graph, progress, code, kill, cost)
    return int(ordering.drive(graph, progress, code, holds, kill, cost))


def overhead(subscriptions: int = 5_000, predicates: int = 2_000, events: int = 10, seed: int = 1) -> dict[str, Any]:
    """Return what ordering costs in the library itself, beside what it saves where an operator takes a millisecond."""
    from tocsin.bench.library import evaluated_by

    drawn = draw(Setting(0, subscriptions, predicates, alpha=1.0), seed)
    rng = np.random.default_rng(seed + 1)
    holds = rng.random((events, predicates)) < drawn.selectivity
    naive, naive_seconds = evaluated_by("naive", drawn.offsets, drawn.members, holds)
    adaptive, seconds = evaluated_by("adaptive", drawn.offsets, drawn.members, holds)
    saved = (naive - adaptive) * 1e-3
    return {
        "subscriptions": subscriptions,
        "predicates": predicates,
        "naive": naive,
        "adaptive": adaptive,
        "ordering_seconds": round(seconds, 6),
        "naive_seconds": round(naive_seconds, 6),
        "saved_seconds": round(saved, 6),
        "share": round(seconds / saved, 5),
    }
