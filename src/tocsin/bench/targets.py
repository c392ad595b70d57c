"""What must hold, and whether it does: the targets of the engines, each held against one run's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tocsin.bench.engines import Measurement
from tocsin.bench.plan import BY_HAND

OURS = "adaptive"


@dataclass(frozen=True)
class Target:
    """A target, what was measured, and whether it is met; ``met`` is None where the run says nothing about it."""

    target: str
    measured: str
    met: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def targets(measurements: Sequence[Measurement], extras: dict[str, Any]) -> list[Target]:
    """Return every target with what a run measured of it.

    >>> targets([], {})[0]
    Target(target='W0 at 1,000,000: 0.5 of the kernel by hand', measured='not in this run', met=None)
    """
    by = {(m.workload, m.size, m.engine): m for m in measurements if m.was_run}
    found = [
        _ratio(by, workload, size, BY_HAND, least, f"{least} of the kernel by hand")
        for workload, size, least in (
            ("W0", 1_000_000, 0.5),
            ("W0", 6_000_000, 0.5),
            ("W1", 1_000_000, 0.4),
            ("W2", 1_000_000, 0.4),
            ("R", 1_000_000, 0.9),
        )
    ]
    found += [
        _ratio(by, workload, 1_000_000, "propagation-prefetch", 20, "20x propagation with prefetch")
        for workload in ("W1", "W2")
    ]
    found += [_best_of_ours(by), *_sublinear(by), *_two_cores(by, extras.get("saved", []))]
    found.append(
        _one(
            by.get(("W0", 1_000_000, OURS)),
            "single match on W0 at 1,000,000: p50 at most 40 µs, p99 at most 200 µs",
            lambda m: (f"p50 {m.p50:.0f} µs, p99 {m.p99:.0f} µs", m.p50 <= 40 and m.p99 <= 200),
        )
    )
    found += _churn(extras.get("churn", []))
    found += [_memory(by, "W0", 64), _memory(by, "R", 256)]
    found += [_wide(by), _linear_in_leaves(extras.get("leaves", [])), *_saved(extras.get("saved", []))]
    found.append(_first(extras.get("first", [])))
    found.append(Target("drift: adaptive and dynamic recover", "by `tocsin bench drift`, with its picture", None))
    return found


By = dict[tuple[str, int, str], Measurement]


def _ratio(by: By, workload: str, size: int, other: str, least: float, said: str) -> Target:
    name = f"{workload} at {size:,}: {said}"
    ours, theirs = by.get((workload, size, OURS)), by.get((workload, size, other))
    if ours is None or theirs is None:
        return _unknown(name)
    assert ours.events is not None and theirs.events is not None  # both were run
    ratio = ours.events / theirs.events
    return Target(name, f"{ratio:.2f} ({ours.events:,.0f} of {theirs.events:,.0f} events/s)", ratio >= least)


def _best_of_ours(by: By) -> Target:
    name = "any workload: within 10 % of the best of our engines"
    shares: dict[tuple[str, int], tuple[float, str]] = {}
    for workload, size, engine in by:
        if engine == OURS:
            rivals = {
                m.engine: m.events or 0.0
                for m in by.values()
                if (m.workload, m.size, m.kind) == (workload, size, "engine")
            }
            best = max(rivals, key=rivals.__getitem__)
            if len(rivals) > 1:
                shares[workload, size] = rivals[OURS] / rivals[best], best
    if not shares:
        return _unknown(name)
    behind = [
        f"{workload} at {size:,}: {share:.2f} of {best}"
        for (workload, size), (share, best) in shares.items()
        if share < 0.9
    ]
    return Target(name, "; ".join(behind) or f"best or within 10 % in all {len(shares)} cells", not behind)


def _sublinear(by: By) -> list[Target]:
    """Return the target as it is judged strictly, for every workload, and as it is worded: where matches grow less than
    subscriptions do."""
    strict = "cost grows sublinearly with subscriptions wherever matches do"
    worded = "the same, of workloads whose matches grow less than their subscriptions"
    said: list[str] = []
    worded_said: list[str] = []
    fine = worded_fine = True
    for workload in dict.fromkeys(workload for workload, _, _ in by):
        sizes = sorted(size for other, size, engine in by if (other, engine) == (workload, OURS))
        if len(sizes) < 2:
            continue
        small, large = by[workload, sizes[0], OURS], by[workload, sizes[-1], OURS]
        assert small.events is not None and large.events is not None  # both were run
        growth, cost = sizes[-1] / sizes[0], small.events / large.events
        matches = (large.pairs_an_event or 0) / max(small.pairs_an_event or 0, 1e-9)
        linear = matches > 0.9 * growth and (large.pairs_an_event or 0) > 1
        cell = f"{workload}: cost x{cost:.1f} for x{growth:.0f}"
        said.append(f"{cell}{' (matches grow as much)' if linear else ''}")
        fine &= cost < growth
        if not linear:
            worded_said.append(cell)
            worded_fine &= cost < growth
    return [
        Target(name, "; ".join(cells), met) if cells else _unknown(name)
        for name, cells, met in ((strict, said, fine), (worded, worded_said, worded_fine))
    ]


def _two_cores(by: By, saved: list[dict[str, Any]]) -> list[Target]:
    found = []
    for workload in ("W0", "R"):
        name = f"two cores: 1.7x one core on {workload}"
        sizes = [size for other, size, engine in by if (other, engine) == (workload, OURS)]
        ours = by.get((workload, max(sizes, default=0), OURS))
        ratios = (
            {f"two callers at {ours.size:,}": ours.two_threads / ours.events}
            if ours and ours.events and ours.two_threads
            else {}
        )
        ratios |= {f"threads=2 at {one['size']:,}": one["speedup"] for one in saved if one["workload"] == workload}
        said = "; ".join(f"{ratio:.2f} ({how})" for how, ratio in ratios.items())
        found.append(Target(name, said, max(ratios.values()) >= 1.7) if ratios else _unknown(name))
    return found


def _churn(runs: list[dict[str, Any]]) -> list[Target]:
    name = "churn: 50,000 inserts and removals a second; 70 % of the speed kept, no call beyond 50 ms"
    if not runs:
        return [_unknown(name)]
    return [
        Target(
            f"{name} ({'expressions' if run['by_expressions'] else 'boxes'}, {run['workload']} at {run['size']:,})",
            f"{run['kept']:.0%} kept at {run['inserted']:,.0f}/s each ({run['kept_by_processor']:.0%} by processor "
            f"time); changes need {run['changing']:.2f} cores, merges {run['merging']:.2f}; longest change while a "
            f"merge ran {run['longest_change_beside']:.0f} ms (in all {run['longest_change']:.0f}), longest wait for "
            f"its lock {run['longest_wait']:.1f} ms; longest match while one ran {run['longest_match_beside']:.0f} ms "
            f"(in all {run['longest_match']:.0f}, median {run['median_match']:.0f}); a single subscribe "
            f"{run['subscribe_us']:.0f} µs",
            run["kept"] >= 0.7
            and run["inserted"] >= 0.95 * run["wanted"]
            and max(run["longest_change"], run["longest_match"] - run["median_match"]) <= 50,
        )
        for run in runs
    ]


def _memory(by: By, workload: str, most: int) -> Target:
    sizes = [size for name, size, engine in by if (name, engine) == (workload, OURS)]
    return _one(
        by.get((workload, max(sizes, default=0), OURS)),
        f"memory on {workload}: at most {most} bytes a subscription",
        lambda m: (
            f"{m.bytes_each:.0f} bytes ({m.index_bytes_each:.0f} in the index) at {m.size:,}",
            m.bytes_each <= most,
        ),
    )


def _wide(by: By) -> Target:
    name = "wide boolean: 10x the scan"
    sizes = [size for workload, size, engine in by if (workload, engine) == ("boolean", OURS)]
    return _ratio(by, "boolean", max(sizes, default=0), "scan", 10, "10x the scan") if sizes else _unknown(name)


def _linear_in_leaves(runs: list[dict[str, Any]]) -> Target:
    name = "wide boolean: memory linear in leaves"
    if len(runs) < 2:
        return _unknown(name)
    said = ", ".join(f"{run['bytes_a_leaf']:.0f} bytes a leaf at {run['leaves']}" for run in runs)
    return Target(name, said, runs[-1]["bytes_a_leaf"] <= 1.25 * runs[0]["bytes_a_leaf"])


def _saved(runs: list[dict[str, Any]]) -> list[Target]:
    name = "a saved index of 6,000,000: under one second to the first match"
    largest = max(runs, key=lambda run: run["size"], default=None)
    if largest is None:
        return [_unknown(name)]
    said = f"{largest['first_match_s']:.3f} s at {largest['size']:,}"
    met = largest["first_match_s"] < 1 if largest["size"] >= 6_000_000 or largest["first_match_s"] >= 1 else None
    return [Target(name, said, met)]


def _first(runs: list[dict[str, Any]]) -> Target:
    name = "first match of a process, kernels on disk: under half a second, import and subscribing included"
    if not runs:
        return _unknown(name)
    run = runs[0]
    said = (
        f"{run['all_s']:.2f} s (import {run['import_s']:.2f}, the match {run['match_s']:.3f}; CPU {run['cpu_s']:.2f})"
    )
    return Target(name, said, run["all_s"] < 0.5)


def _one(found: Measurement | None, name: str, judge: Callable[[Any], tuple[str, bool]]) -> Target:
    return Target(name, *judge(found)) if found is not None else _unknown(name)


def _unknown(name: str) -> Target:
    return Target(name, "not in this run", None)
