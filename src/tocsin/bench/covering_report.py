"""The figures of `tocsin bench covering` beside the paper's, and the measurements that are not the paper's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.bench.alerts import SPACE, alerts, sightings
from tocsin.bench.broker_tree import simulate
from tocsin.bench.covering import TABLES
from tocsin.covering import RelationGraph
from tocsin.matcher import Matcher
from tocsin.matcher.relations import redundancy_of, regions_of

Found = dict[str, list[dict[str, Any]]]
Table = tuple[str, list[str], list[list[str]]]

PRUNING = "What a matcher could gain at most by asking roots first"

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
    """Match events against all of so many subscriptions, and against those alone that no other covers: what a matcher
    that asks roots first could gain at most."""
    table, asked = alerts(count), sightings(events)
    whole, roots = Matcher(SPACE), Matcher(SPACE)
    whole.subscribe_many(table)
    graph = RelationGraph()
    ids, boxes, of = regions_of(whole)
    graph.subscribe_many(ids, boxes, of)
    first = np.array([graph.owners(root)[0] for root in graph.roots()], np.int64)
    roots.subscribe_many(table.take(pa.array(np.sort(first))))
    rows = []
    for name, matcher in (("all", whole), ("roots only", roots)):
        matcher.match_batch(asked)
        times = []
        for _ in range(5):
            started = time.thread_time()
            pairs = matcher.match_batch(asked).num_rows
            times.append(time.thread_time() - started)
        held = matcher.stats()["index"]["shared"]["held"]
        rate = round(events / max(float(np.median(times)), 1e-9))
        rows.append({"matched": name, "subscriptions": len(matcher), "boxes": held, "pairs": pairs, "events/s": rate})
    return rows


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
    return parts


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
