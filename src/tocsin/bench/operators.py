"""`tocsin bench operators`: the experiments of the operators paper, figures 4 to 8, and what orders cost.

What the paper leaves open is a `Reading`. Ours: each predicate has its own selectivity, drawn evenly between 0 and
twice the mean that makes 0.2 % of subscriptions match; predicates are independent and stand as they were drawn; Zipf
popularity is 1 / rank ** alpha; predicates of equal selectivity stand in a chain by popularity.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.bench.operators_readings import OURS, Bools, Drawn, Floats, Reading, events_of, placed, told
from tocsin.kernels.bench import packing
from tocsin.kernels.operators import ordering
from tocsin.operators.orders import CODES, build_graph, chain_key, new_progress, sorted_graph, sub_order

LEAST = 3
ROUNDS = 300
MILLISECOND = 1e-3
BESIDE = ("learning", "estimate", "unforeseen", "hindsight", "bound")


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

TIMED = [
    Setting(8, 2_000, 2_000, alpha=1.0),
    Setting(6, 20_000, 30_000, alpha=1.0),
    Setting(5, 80_000, 40_000, alpha=1.0),
    Setting(4, 80_000, 40_000),
]
"""Where ordering is timed beside what it saves."""


def draw(setting: Setting, seed: int) -> Drawn:
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
    return Drawn(offsets, np.ascontiguousarray(chosen[used]), setting.predicates)


def run(
    setting: Setting,
    events: int,
    seed: int = 1,
    reading: Reading = OURS,
    advance: Callable[[int], None] = lambda events: None,
) -> dict[str, Any]:
    """Return the predicates evaluated an event in each order, in hindsight, and the least that any order needs.

    ``advance`` is told of each event that is done.
    """
    drawn = placed(draw(setting, seed), reading.entries)
    rng = np.random.default_rng(seed + 1)
    given = events_of(drawn, reading, rng)
    cost, kill = np.ones(setting.predicates), np.clip(1.0 - given.selectivity, 1e-6, 1.0)
    graphs = graphs_of(drawn, told(reading.chains, given.selectivity, rng))
    codes = CODES | ({"sequential": ordering.SUB_ORDER} if reading.stops else {})
    counts: dict[str, list[float]] = {name: [] for name in (*graphs, *BESIDE)}
    learned = _Learning(setting.predicates)
    matched = []
    progress = {name: new_progress(graph) for name, graph in graphs.items()}
    for _ in range(events):
        holds = given.draw()
        for name, graph in graphs.items():
            counts[name].append(evaluated(graph, progress[name], codes[name], holds, kill, cost))
        matched.append(drawn.matched(holds))
        graph, state = graphs["adaptive"], progress["adaptive"]
        counts["learning"].append(evaluated(graph, state, ordering.ADAPTIVE, holds, learned.kill(), cost))
        learned.see(graph.task_call[state.task_done], holds)
        known = np.where(holds, 1e-12, 1.0)
        counts["hindsight"].append(evaluated(graph, state, ordering.ADAPTIVE, holds, known, cost))
        if reading.independent:
            certain, greedy = unforeseen(drawn, graph, state, holds, kill)
            counts["unforeseen"].append(certain)
            counts["estimate"].append(greedy)
        counts["bound"].append(least(drawn, holds, counts["hindsight"][-1]))
        advance(1)
    means = {name: round(float(np.mean(each)), 1) if each else None for name, each in counts.items()}
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
    }


def unforeseen(
    drawn: Drawn, graph: ordering.Graph, progress: ordering.Progress, holds: Bools, kill: Floats
) -> tuple[float, float]:
    """Return what no order without foresight can do without, on average over events of independent predicates: a
    certified lower bound, and what a greedy set cover finds.

    Whatever such an order has seen, its next evaluation costs 1 and fails with its probability, so on average it makes
    as many as the failing predicates that it meets sum up to at the price 1 / that probability each. Those must hit
    every subscription that does not match; a lower bound of what the cheapest that do cost is therefore one for it.
    """
    price = 1.0 / kill
    evaluated(graph, progress, ordering.ADAPTIVE, holds, np.where(holds, 1e-12, 1.0), price)
    done = graph.task_call[progress.task_done]
    greedy = float(price[done[~holds[done]]].sum())
    return _cover_bound(*_failing(drawn, holds), price, greedy), greedy


def least(drawn: Drawn, holds: Bools, enough: float | None = None) -> int:
    """Return how many evaluations no order can do without, for one event: all predicates of what matches, and such
    that fail for what does not (each such subscription needs one). ``enough`` is a number that some order needs."""
    offsets, failing = _failing(drawn, holds)
    all_true = np.diff(offsets) == 0
    needed = len(np.unique(drawn.members[np.repeat(all_true, np.diff(drawn.offsets))]))
    above = len(np.unique(failing)) if enough is None else enough
    return needed + math.ceil(_cover_bound(offsets, failing, np.ones(drawn.predicates), above) - 1e-6)


def _failing(drawn: Drawn, holds: Bools) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the predicates of each subscription that fail."""
    fails = ~holds[drawn.members]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(fails, dtype=np.int64)])
    return before[drawn.offsets], np.ascontiguousarray(drawn.members[fails])


def _cover_bound(offsets: npt.NDArray[np.int64], members: npt.NDArray[np.int32], price: Floats, above: float) -> float:
    first = packing.first_prices(offsets, members, price)
    return float(packing.lower_bound(offsets, members, price, first, above, ROUNDS))


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


def graphs_of(drawn: Drawn, selectivity: Floats) -> dict[str, ordering.Graph]:
    """Return the graph of each order for one event, `sub-order` by these selectivities."""
    plain = graph_of(drawn, np.arange(len(drawn.offsets) - 1))
    return {"naive": plain, "sequential": plain, "sub-order": chains_of(drawn, selectivity), "adaptive": plain}


@functools.cache
def _compile() -> None:
    """Have what builds orders compiled before it is timed."""
    drawn = draw(Setting(0, 20, 10), 1)
    chains_of(drawn, np.full(10, 0.5))


def graph_of(drawn: Drawn, subscriptions: npt.NDArray[Any]) -> ordering.Graph:
    """Return the graph of one event with the subscriptions in this order."""
    rows, calls = np.zeros(len(subscriptions), np.int32), np.arange(drawn.predicates, dtype=np.int32)
    given = subscriptions.astype(np.int32)
    return build_graph(rows, given, drawn.offsets, drawn.members, calls, 1, len(calls))


def chains_of(drawn: Drawn, selectivity: Floats) -> ordering.Graph:
    """Return the graph that `sub-order` walks."""
    rank = sub_order(drawn.offsets, drawn.members, selectivity, np.ones(drawn.predicates))
    return sorted_graph(graph_of(drawn, np.argsort(rank)), chain_key(selectivity, drawn.popularity))


def evaluated(
    graph: ordering.Graph, progress: ordering.Progress, code: int, holds: Bools, kill: Floats, cost: Floats
) -> int:
    """Return how many predicates are evaluated for one event."""
    ordering.start(graph, progress, code, kill, cost)
    return int(ordering.drive(graph, progress, code, holds, kill, cost))


def overhead(
    setting: Setting, events: int = 3, seed: int = 1, spin: float = MILLISECOND, timed: int = 1
) -> dict[str, Any]:
    """Return what ordering costs in the library itself beside what it saves, for calls that take ``spin`` seconds.

    ``computed`` is over all events, with calls that take next to nothing and what is saved taken from their number;
    ``timed`` over the first few, with calls that do take that time. Both in seconds an event.
    """
    from tocsin.bench.library import evaluated_by

    drawn = draw(setting, seed)
    given = events_of(drawn, OURS, np.random.default_rng(seed + 1))
    holds = np.stack([given.draw() for _ in range(events)])
    naive, slow_naive = evaluated_by("naive", drawn.offsets, drawn.members, holds, spin, timed)
    adaptive, slow_adaptive = evaluated_by("adaptive", drawn.offsets, drawn.members, holds, spin, timed)
    return {
        "subscriptions": setting.subscriptions,
        "predicates": setting.predicates,
        "popularity": setting.popularity,
        "naive": naive.made,
        "adaptive": adaptive.made,
        "computed": _share(events, adaptive.seconds - adaptive.inside, (naive.made - adaptive.made) * spin),
        "timed": _share(
            timed, slow_adaptive.seconds - slow_adaptive.inside, slow_naive.seconds - slow_adaptive.seconds
        ),
    }


def _share(events: int, ordering_seconds: float, saved: float) -> dict[str, float]:
    return {
        "events": events,
        "ordering_seconds": round(ordering_seconds, 6),
        "saved_seconds": round(saved, 6),
        "share": round(ordering_seconds / (saved or 1e-9), 5),
    }


def build_seconds(setting: Setting, seed: int = 1) -> dict[str, float]:
    """Return the seconds of a core that it takes to build an order for one event.

    >>> sorted(build_seconds(Setting(0, 20, 10)))
    ['adaptive', 'sub-order']
    """
    drawn = draw(setting, seed)
    given = events_of(drawn, OURS, np.random.default_rng(seed + 1))
    _compile()
    begun = time.thread_time()
    new_progress(graph_of(drawn, np.arange(setting.subscriptions)))
    built = time.thread_time()
    chains_of(drawn, given.selectivity)
    return {"adaptive": round(built - begun, 3), "sub-order": round(time.thread_time() - built, 3)}
