"""Runs of `tocsin bench subjects` and `tocsin bench fleet` as pages, with what must hold and whether it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.bench.report import machine_line, markdown_table
from tocsin.bench.subjects import line_of
from tocsin.bench.targets import Target

MOST = 100_000
"""The targets are of so many publications and subscriptions."""

SEVERAL = 3.0
"""So many times better is several times."""

ENOUGH = 10_000
"""Matches of an update that tell what one costs beside what an update costs at all."""

_GUIDE = """\
50 dimensions of whole numbers in a space that reads an unspecified dimension as any; publications have 20 constraints
(insert) or 25 (updates), subscriptions 2. Single calls go through the Python interface, their results as Arrow tables
included: the median, elapsed (ms) and of the thread (thread ms). In batches the same is of one row; encoded answers
are dictionary columns. The paper plots figure 14 for updates: here they make ranges, wider and wider, of 25 values,
so that an update has from no match to tens of thousands; of several turns the least disturbed counts.
"""

_FLEET_GUIDE = """\
Trucks on a square map, each with a kind and a cargo; fences are rectangles with a kind and a bound of the cargo.
Batches of positions are applied through `put_many` on one core, their transitions as Arrow tables included. All that
entered less all that left is compared with what a matcher finds at the final positions.
"""

Row = dict[str, Any]


def targets(measured: Sequence[Row], matches: Sequence[Row]) -> list[Target]:
    """Return every target of figures 11 to 14 with what a run measured of it.

    >>> targets([], [])[0]
    Target(target='insert, 100,000 x 100,000: under 1 ms', measured='not in this run', met=None)
    """
    by = {(one["operation"], one["publications"], one["subscriptions"]): one for one in measured}

    def ms(operation: str, subscriptions: int = MOST, name: str = "ms") -> float | None:
        found = by.get((operation, MOST, subscriptions))
        return None if found is None else float(found[name])

    held = []
    for operation, most in (("insert", 1.0), ("incremental update", 0.3)):
        singly, thread = ms(operation), ms(operation, name="thread_ms")
        target = f"{operation}, {MOST:,} x {MOST:,}: under {most:g} ms"
        held.append(
            _held(target, singly, f"{singly} ms ({thread} of the thread)", singly is not None and singly < most)
        )
    for operation in ("insert", "incremental update"):
        singly, batch, encoded = (
            ms(operation + how, name="thread_ms") for how in ("", " in batches", " in batches, encoded")
        )
        better = _ratio(singly, batch)
        said = f"{better}x" + (f", encoded {_ratio(singly, encoded)}x" if encoded else "")
        target = f"{operation} in batches: several times better ({SEVERAL:g}x)"
        held.append(_held(target, better, said, better is not None and better >= SEVERAL))
    growth = _ratio(ms("insert", name="thread_ms"), ms("insert", 10, "thread_ms"))
    target = "insert with 10,000 times the subscriptions: far from 10,000 times as long (paper: 4.5x)"
    held.append(_held(target, growth, f"{growth}x", growth is not None and growth < 10))
    ratios = [
        _ratio(ms(f"random update{how}", name="thread_ms"), ms(f"incremental update{how}", name="thread_ms"))
        for how in ("", " in batches")
    ]
    cheaper = None if None in ratios else min(each for each in ratios if each is not None)
    target = "incremental updates: much cheaper than random ones"
    held.append(_held(target, cheaper, f"{ratios[0]}x singly, {ratios[1]}x in batches", (cheaper or 0) >= 1.5))
    fixed, slope, explained = line_of(matches) if matches else (0.0, 0.0, 0.0)
    line = f"{fixed:.2f} ms and {slope * 1e6:.0f} ns a match explain {explained:.1%}"
    enough = max((one["matches"] for one in matches), default=0) >= ENOUGH or None
    held.append(_held("time linear in matches (figure 14)", enough, line, explained > 0.95))
    return held


def fleet_targets(runs: Sequence[Row]) -> list[Target]:
    """Return every target of the fleet with what two runs, the second of ten times as many trucks, measured of it.

    >>> one = {"trucks": 10, "fences": 5, "update_rate_of_processor": 300_000, "update_rate": 290_000, "exact": True}
    >>> [held.met for held in fleet_targets([one, one | {"trucks": 100, "update_rate_of_processor": 250_000}])]
    [True, True, True]
    """
    few, many = runs
    rate, exact = many["update_rate_of_processor"], few["exact"] and many["exact"]
    share = rate / few["update_rate_of_processor"]
    size = f"{many['trucks']:,} trucks, {many['fences']:,} fences"
    said = f"{rate:,} updates/s of processor time, {many['update_rate']:,} elapsed"
    return [
        Target(f"{size}: 200,000 updates/s on one core", said, rate >= 200_000),
        Target("exact transitions", "all" if exact else "not all", exact),
        Target(
            "cost follows the updates, not the trucks", f"{share:.2f} of the rate with a tenth of them", share >= 0.5
        ),
    ]


def page(about: Row, measured: Sequence[Row], matches: Sequence[Row], held: Sequence[Target]) -> str:
    """Return the page of figures 11 to 14."""
    names = ("operation", "publications", "subscriptions", "ms", "thread_ms", "transitions", "paper_ms")
    rows = [[_shown(one.get(name)) for name in names] for one in measured]
    heads = ("width", "matches", "thread_ms")
    return "\n".join(
        [
            "# Subjects: what a change costs\n",
            *_opening(about, _GUIDE, held),
            "![figures 11 to 14](pictures/subjects.png)\n",
            "## Figures 11 to 13\n",
            markdown_table([name.replace("_", " ") for name in names], rows),
            "## Figure 14\n",
            markdown_table(
                [name.replace("_", " ") for name in heads], [[_shown(one[name]) for name in heads] for one in matches]
            ),
        ]
    )


def fleet_page(about: Row, runs: Sequence[Row], held: Sequence[Target]) -> str:
    """Return the page of a fleet."""
    heads = ["", *(f"{run['trucks']:,} trucks" for run in runs)]
    rows = [[name.replace("_", " "), *(_shown(run[name]) for run in runs)] for name in runs[0] if name != "trucks"]
    return "\n".join(["# A fleet among fences\n", *_opening(about, _FLEET_GUIDE, held), markdown_table(heads, rows)])


def _opening(about: Row, guide: str, held: Sequence[Target]) -> list[str]:
    marks = {True: "yes", False: "**no**", None: ""}
    return [
        f"This page is written by `{about['command']}`; the same command writes it anew.\n",
        machine_line(about),
        guide,
        markdown_table(("target", "measured", "met?"), [(one.target, one.measured, marks[one.met]) for one in held]),
    ]


def _held(target: str, found: object, measured: str, met: bool) -> Target:
    return Target(target, "not in this run", None) if found is None else Target(target, measured, met)


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else round(one / other, 1)


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
