"""The figures of `tocsin bench covering` beside the paper's, and the measurements that are not the paper's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.bench.alerts import SPACE, alerts, sightings
from tocsin.bench.broker_tree import simulate
from tocsin.bench.covering import TABLES
from tocsin.bench.nested import nested, points
from tocsin.covering import RelationGraph
from tocsin.index import create
from tocsin.index.segments.covering import without_runs
from tocsin.matcher import Matcher
from tocsin.matcher.relations import redundancy_of, regions_of

Found = dict[str, list[dict[str, Any]]]
Table = tuple[str, list[str], list[list[str]]]

PRUNING = (
    "Matching with and without roots first; the planner says whether it pays and what share of its boxes it spares"
)

PART = 50_000
"""Subscriptions of one bulk call."""


def mixed(count: int, singles: int = 2_000) -> list[dict[str, Any]]:
    """Subscribe so many of mixed types in bulk, then some more singly, and unsubscribe those; return rates a second."""
    matcher = Matcher(SPACE, "scan")
    rows: list[dict[str, Any]] = []

    def timed(step: str, many: int, call: Callable[[], object]) -> None:
        started = time.thread_time()
        call()
        rows.append({"step": step, "subscriptions": many, "rate": round(many / (time.thread_time() - started))})

    table = alerts(count + singles)
    timed("read and encode, beforehand", count + singles, lambda: matcher.subscribe_many(table))
    ids, boxes, of = regions_of(matcher)
    ends = np.searchsorted(of, np.arange(count + singles + 1))
    graph = RelationGraph()

    def in_bulk() -> None:
        for begin in range(0, count, PART):
            end = min(begin + PART, count)
            some = np.arange(ends[begin], ends[end])
            graph.subscribe_many(ids[begin:end], boxes.take(some), of[some] - begin)

    more = [(ids[place], boxes.take(np.arange(*ends[place : place + 2]))) for place in range(count, count + singles)]
    leaving = [ids[place] for place in np.random.default_rng(1).permutation(count)[: count // 10].tolist()]
    timed("subscribe in bulk", count, in_bulk)
    timed("subscribe singly", singles, lambda: [graph.subscribe(*one) for one in more])
    timed("unsubscribe singly", singles, lambda: [graph.unsubscribe(id) for id, _ in more])
    timed("unsubscribe in bulk", len(leaving), lambda: graph.unsubscribe_many(leaving))
    told = redundancy_of(graph)
    left = f"left: {told.different:,} different, {told.roots:,} roots"
    return [*rows, {"step": left, "subscriptions": len(graph), "rate": None}]


def pruning(count: int, events: int = 4_096) -> list[dict[str, Any]]:
    """Match events with `adaptive`, and say what its planner decided about covering: alerts of mixed types, all of them
    and those alone that no other covers, which is what roots first could gain at most; and broad wishes with narrower
    ones below them, as planned and with all boxes looked at."""
    return [*_mixed_types(count, events), *_nested(count, 5, events), *_nested(count, 8, events)]


def _nested(count: int, each: int, events: int) -> list[dict[str, Any]]:
    boxes, asked = nested(count, max(1, count // 200), each), points(events)
    index: Any = create("adaptive", background=False)
    index.insert(np.arange(count, dtype=np.int32), boxes)

    def ask() -> int:
        return len(index.overlap(asked).rows)

    planned = _timed(f"nested, {each} intervals, as planned", count, index.stats(), ask, events)
    for part in index._state.parts:
        part.segment = without_runs(part.segment)
    plain = _timed(f"nested, {each} intervals, every box", count, index.stats(), ask, events)
    return [planned, {**plain, "planner": ""}]


def _mixed_types(count: int, events: int) -> list[dict[str, Any]]:
    table, asked = alerts(count), sightings(events)
    whole, roots = Matcher(SPACE), Matcher(SPACE)
    whole.subscribe_many(table)
    graph = RelationGraph()
    ids, boxes, of = regions_of(whole)
    graph.subscribe_many(ids, boxes, of)
    first = np.array([graph.owners(root)[0] for root in graph.roots()], np.int64)
    roots.subscribe_many(table.take(pa.array(np.sort(first))))
    return [
        _timed(
            f"mixed types, {name}",
            len(matcher),
            matcher.stats()["index"],
            lambda matcher=matcher: matcher.match_batch(asked).num_rows,  # type: ignore[misc]
            events,
        )
        for name, matcher in (("all", whole), ("roots only", roots))
    ]


def _timed(
    name: str, count: int, account: Mapping[str, Any], ask: Callable[[], int], events: int, times: int = 5
) -> dict[str, Any]:
    """Ask some times and return a row: the median rate, and what the planner said."""
    pairs, spent = ask(), []
    for _ in range(times):
        started = time.thread_time()
        ask()
        spent.append(time.thread_time() - started)
    said = [segment["covering"] for segment in account["segments"]]
    told = "; ".join(f"{'yes' if one['pays'] else 'no'}, {one['spared']:.0%} of {one['boxes']:,}" for one in said)
    rate = round(events / max(float(np.median(spent)), 1e-9))
    return {"matched": name, "subscriptions": count, "pairs": pairs, "events/s": rate, "planner": told}


def brokers_compared(brokers: int, steps: int = 600, seeds: Sequence[int] = (1, 2, 3)) -> list[dict[str, Any]]:
    """Run the tree of brokers with covering and without, on the same commands."""
    rows = []
    for covering in (True, False):
        runs = [simulate(brokers, steps, seed, covering=covering, pace=None) for seed in seeds]
        names = ("subscriptions", "publications", "deliveries", "forward", "withdraw", "publish", "table", "largest")
        row: dict[str, Any] = {"covering": "yes" if covering else "no", "brokers": brokers, "runs": len(runs)}
        row |= {name: sum(run[name] for run in runs) for name in names}
        row |= {name: sum(len(run[name]) for run in runs) for name in ("lost", "needless")}
        rows.append(row)
    return rows


def parts_of(found: Found) -> list[Table]:
    """Return every table there are figures for: its title, head and cells."""
    parts: list[Table] = []
    for load, title in (("heavy", "Table I, heavy load (p = 5 %)"), ("light", "Table II, light load (p = 40 %)")):
        rows = [row for row in found.get("modes", ()) if row["load"] == load]
        if rows:
            parts.append((f"{title}: k-d tree, in thousands, and over k = 1 beside the paper", *_table(rows, load)))
    if found.get("modes"):
        head = ["load", "index", "k", "seconds", "over k = 1", "queries of unsubscribes"]
        first = {(row["load"], row["index"]): row["seconds"] for row in found["modes"] if row["k"] == 1}
        cells = [
            [
                row["load"],
                row["index"],
                str(row["k"]),
                f"{row['seconds']:.3f}",
                f"{row['seconds'] / max(first[row['load'], row['index']], 1e-9):.2f}",
                f"{row['queries_unsubscribe']:,}",
            ]
            for row in found["modes"]
        ]
        parts.append(("Figures 8 and 9: time and queries by k", head, cells))
    if found.get("comparison"):
        parts.append(_comparison(found["comparison"]))
    for name, title in (
        ("mixed", "Subscriptions of mixed types"),
        ("pruning", PRUNING),
        ("brokers", "A tree of brokers"),
    ):
        if found.get(name):
            head = list(found[name][0])
            cells = [[_cell(value) for value in row.values()] for row in found[name]]
            parts.append((title, head, cells))
    reached = targets(found)
    if reached:
        cells = [[what, wanted, got, "yes" if met else "no"] for what, wanted, got, met in reached]
        parts.append(("Targets", ["target", "wanted", "measured", "met"], cells))
    return parts


def targets(found: Found) -> list[tuple[str, str, str, bool]]:
    """Return what must hold of these figures: what, how much is wanted, what was measured, whether it is met."""
    reached: list[tuple[str, str, str, bool]] = []
    for load, index in dict.fromkeys((row["load"], row["index"]) for row in found.get("modes", ())):
        work = {
            row["k"]: row["nv_s"] + row["nv_u"] + row["pc_s"] + row["pc_u"]
            for row in found["modes"]
            if (row["load"], row["index"]) == (load, index)
        }
        best = min(work, key=lambda k: work[k])
        reached.append((f"cheapest k, {index}, {load} load", "1", str(best), best == 1))
    rows = found.get("comparison", ())
    top = max((row["dimensions"] for row in rows), default=0)
    last = max((row["commands"] for row in rows), default=0)
    by = {row["index"]: row["seconds"] for row in rows if (row["dimensions"], row["commands"]) == (top, last)}
    for index, other, least in (
        ("kd", "scan", 10),
        ("zcurve", "scan", 5),
        ("adaptive", "kd", 1),
        ("adaptive in bulk", "kd", 2),
    ):
        if index in by and other in by:
            ratio = by[other] / max(by[index], 1e-9)
            what = f"{index} over {other}, {top} dimensions, {last:,} commands"
            reached.append((what, f"{least}x", f"{ratio:.1f}x", ratio >= least))
    for row in found.get("mixed", ()):
        least = {"subscribe in bulk": 20_000, "subscribe singly": 2_000}.get(row["step"], 0)
        if least:
            rate = row["rate"]
            reached.append((f"mixed types, {row['step']}", f"{least:,}/s", f"{rate:,}/s", rate >= least))
    for row in found.get("brokers", ()):
        amiss = row["lost"] + row["needless"]
        what = f"publications lost or astray, covering: {row['covering']}"
        reached.append((what, "0", str(amiss), amiss == 0))
    return reached


def page(about: dict[str, Any], found: Found, pictures: Sequence[Path]) -> str:
    """Return all tables and pictures as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    lines = [
        "# Covering, measured\n",
        f"This page is written by `{about['command']}`; the same command writes it anew.\n",
        f"{about['date']}, revision {about['revision']}, seed {about['seed']}. {about['processor']}, {about['cores']} "
        f"cores, {about['memory_gb']} GB, {about['system']}; Python {about['python']}, {versions}. Load average when "
        f"it began: {about['load']}. Times are processor times of one thread.\n",
    ]
    lines += [f"![{picture.stem}](pictures/{picture.name})\n" for picture in pictures]
    for title, head, rows in parts_of(found):
        table = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
        lines.append("\n".join([f"## {title}\n", table[0], "|" + "---|" * len(head), *table[1:]]) + "\n")
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]], load: str) -> tuple[list[str], list[list[str]]]:
    head = ["k", "nv", "nv_s", "nv_u", "pc", "pc_s", "pc_u", "nv ratio", "paper", "pc ratio", "paper"]
    tree = [row for row in rows if row["index"] == "kd"]
    nodes, points = ([row[f"{what}_s"] + row[f"{what}_u"] for row in tree] for what in ("nv", "pc"))
    cells = []
    for row, nv, pc in zip(tree, nodes, points, strict=True):
        theirs = TABLES[load].get(row["k"])
        counts = [nv, row["nv_s"], row["nv_u"], pc, row["pc_s"], row["pc_u"]]
        cells.append(
            [
                str(row["k"]),
                *(f"{count / 1000:,.0f}" for count in counts),
                f"{nv / nodes[0]:.2f}",
                f"{theirs[0] / TABLES[load][1][0]:.2f}" if theirs else "",
                f"{pc / points[0]:.2f}",
                f"{theirs[1] / TABLES[load][1][1]:.2f}" if theirs else "",
            ]
        )
    return head, cells


def _comparison(rows: list[dict[str, Any]]) -> Table:
    head = ["dimensions", "commands", "index", "seconds", "scan over it", "k-d tree over it"]
    by = {(row["dimensions"], row["commands"], row["index"]): row["seconds"] for row in rows}
    cells = []
    for (dimensions, commands, index), seconds in sorted(by.items(), key=lambda item: item[0][:2]):
        ratios = []
        for name in ("scan", "kd"):
            other = by.get((dimensions, commands, name))
            ratios.append(f"{other / max(seconds, 1e-9):.1f}" if other is not None else "")
        cells.append([str(dimensions), f"{commands:,}", index, f"{seconds:.3f}", *ratios])
    return "Figures 10 to 12: total time (p = 15 %)", head, cells


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
