"""A run of `tocsin bench spark` as targets, a page and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tocsin.bench.report import machine_line, markdown_table
from tocsin.bench.spark import SparkFigures
from tocsin.bench.spark_joins import BY_HAND, COMMON, COUNTING, NESTED, Join
from tocsin.bench.spark_sizes import Size, best_plain
from tocsin.bench.targets import Target

SHARE_OF_BARE, TIMES_A_JOIN, OPEN_MILLISECONDS, GROWTH = 0.5, 100, 200, 1.3
INK, FILL, OTHER, FAINT = "#1f2a44", "#3b6fb6", "#c1272d", "#888888"

NEEDS = {
    NESTED: ("nothing: any table of bounds", "every subscription"),
    COUNTING: ("all tests are equalities", "every test that holds by itself: 1/35 of all"),
    COMMON: ("and which columns every subscription tests", "the subscriptions of one bucket: 1/1,225 of all"),
    BY_HAND: ("and that each tests one column more, and no other test", "30 keys, 1/43,000 of all"),
}
"""What the author of a join must know of the table, and what the join does for an event of W0."""


def targets(found: SparkFigures) -> list[Target]:
    """Return what must hold with what a run measured of it."""
    at, workers = found.standard, found.workers
    size = f"{at.subscriptions:,} subscriptions"
    return [
        Target(
            f"{size}, {found.events:,} events: at least {SHARE_OF_BARE} of a bare pass through Python",
            f"{found.share_of_bare} ({at.rate:,} of {found.bare_rate:,} events/s)",
            found.share_of_bare >= SHARE_OF_BARE,
        ),
        _beside_joins(found),
        Target(
            f"a worker opens the index of {size} in less than {OPEN_MILLISECONDS} ms",
            f"{workers.open_milliseconds} ms by the clock, {workers.open_processor_milliseconds} ms on a processor",
            workers.open_milliseconds < OPEN_MILLISECONDS,
        ),
        Target(
            f"{workers.workers} workers on a host together grow by less than {GROWTH} of the index",
            f"{workers.host_share} ({workers.host_bytes / 1e6:,.0f} of {workers.index_bytes / 1e6:,.0f} MB; at most "
            f"{workers.own_bytes / 1e6:,.0f} MB are a worker's own)",
            workers.host_share < GROWTH,
        ),
    ]


def mark(target: Target) -> str:
    """Return whether a target is met, in a word.

    >>> mark(Target("fast", "slow", False))
    'no'
    """
    return {True: "yes", False: "no", None: "unknown"}[target.met]


def page(about: dict[str, Any], found: SparkFigures, held: list[Target], picture: str) -> str:
    """Return the page; the picture is named as seen from it."""
    parts = [
        "# Matching on Spark: what it costs\n",
        f"This page is written by `{about['command']}`; the same command writes it anew. All figures are of one run of "
        f"{found.seconds / 60:.0f} minutes.\n",
        machine_line(about),
        markdown_table(("target", "measured", "met?"), [(one.target, one.measured, mark(one)) for one in held]),
        f"![spark]({picture})\n",
        "## Where the time goes\n",
        _GUIDE.format(our=found.share_in_our_code, rest=round(1 - found.share_in_our_code, 3)),
        markdown_table(("from Parquet to a count", "events/s", "processors' µs an event"), _passes(found)),
        "## Beside joins in SQL\n",
        _JOINS,
        markdown_table(("join", "its author must know", "it looks at, for an event"), _needs()),
    ]
    parts += [_of_size(found, size) for size in found.sizes]
    return "\n".join([*parts, _no_plain_join(found)])


def _beside_joins(found: SparkFigures) -> Target:
    name = f"{TIMES_A_JOIN}x the best plain join in SQL, at the largest size that it finishes"
    best = best_plain(found.sizes)
    if best is None:
        return Target(name, "not in this run", None)
    size, join = best
    clock, processor = size.times(join)
    said = f"{clock:,.0f}x by the clock, {processor:,.0f}x by processors' time at {size.subscriptions:,}: {join.name}"
    return Target(name, said, clock >= TIMES_A_JOIN)


def _passes(found: SparkFigures) -> list[tuple[str, str, str]]:
    at = found.standard
    return [
        ("rows passed to Python and counted", f"{found.bare_rate:,}", f"{found.bare_processor:,}"),
        ("rows matched", f"{at.rate:,}", f"{at.processor:,}"),
        ("of that, in our code", "", f"{found.share_in_our_code * at.processor:,.2f}"),
    ]


def _needs() -> list[tuple[str, str, str]]:
    return [(name, *said) for name, said in NEEDS.items()]


def _of_size(found: SparkFigures, size: Size) -> str:
    rows: list[tuple[str, ...]] = [
        ("**matching**", f"{size.rate:,}", f"{size.processor:,}", f"{found.events:,}", "", "", "")
    ]
    rows += [_row(found, size, join) for join in size.joins]
    rows += [(name, f"not finished {why}", *[""] * 5) for name, why in size.unfinished]
    head = ("", "events/s", "processors' µs an event", "events joined", "all events, hours", "by the clock", "by them")
    said = f"Index of {size.index_bytes / 1e6:,.0f} MB, built in {size.build_seconds:,} s; {size.pairs:,} pairs."
    return f"### {size.subscriptions:,} subscriptions\n\n{said}\n\n{markdown_table(head, rows)}"


def _row(found: SparkFigures, size: Size, join: Join) -> tuple[str, ...]:
    clock, processor = size.times(join)
    hours = found.events / join.rate / 3600
    return (
        join.name,
        f"{join.rate:,}",
        f"{join.processor:,}",
        f"{join.events:,}",
        f"{hours:,.3g}",
        f"{clock:,}x",
        f"{processor:,}x",
    )


def _no_plain_join(found: SparkFigures) -> str:
    """Return why the index by hand is not counted among the joins."""
    rates = [join.rate for join in found.standard.joins if join.name == BY_HAND]
    said = _NO_PLAIN_JOIN
    if rates:
        said += (
            f"\nNo matching in Python workers could be {TIMES_A_JOIN} times as fast as that, whatever its index: with "
            f"{found.standard.subscriptions:,} subscriptions\nthe bare pass of rows, which does nothing, is "
            f"{found.bare_rate / rates[0]:.1f} times as fast.\n"
        )
    return said


_GUIDE = """\
A bare pass takes rows from Spark and gives back their number: no matching in Python workers can be faster. Times are
medians, the two passes taking turns. Of the processors' time of matching, {our} is in our code, {rest} in Spark:
Parquet, the transfer of rows to Python and back, counting.
"""

_JOINS = """\
Each is written as well as we can: keys packed into one `bigint`, so that Spark takes its fastest hash table; other
tests as columns that compiled code compares; broadcast, so that nothing is shuffled. What it costs to read and hash the
subscriptions is taken off their time, which is in their favour. A join that takes hours for all events is measured on
fewer. One that is ten times slower than the best plain join is not tried with more subscriptions.
"""

_NO_PLAIN_JOIN = """\
### Why the last is no plain join

The other three state the condition, and Spark chooses how to find the pairs. The last is itself a way of finding them,
the one that our planner chooses for this table: a key is made of two columns and a third by arithmetic, each
subscription is stored under one such key, and each event is multiplied by 30 to be looked up under all of its own. It
is right only because every subscription of W0 consists of equalities, two of them on the same columns, and at least one
more: a subscription with a range or an `IN` in place of that one, an `OR`, or a column less has no key, and its pairs
are lost.
"""


def draw_spark(file: Path, found: SparkFigures) -> None:
    """Draw matching beside the bare pass, and beside joins by the number of subscriptions."""
    import matplotlib

    matplotlib.use("agg")  # no window: this runs where there is no display
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), width_ratios=(1, 2), constrained_layout=True)
    left.bar(["bare pass", "matching"], [found.bare_rate, found.standard.rate], color=[FAINT, FILL])
    left.axhline(SHARE_OF_BARE * found.bare_rate, color=OTHER, linestyle="--", linewidth=1, label="target")
    left.set_title(f"events a second, {found.standard.subscriptions:,} subscriptions", color=INK)
    left.yaxis.set_major_formatter(lambda value, place: f"{value:,.0f}")
    left.legend(fontsize=8, loc="lower right")
    right.plot(
        [s.subscriptions for s in found.sizes], [s.rate for s in found.sizes], "o-", color=FILL, label="matching"
    )
    for name, colour in zip(NEEDS, ("#f0a202", "#7a5195", OTHER, FAINT), strict=True):
        points = [(s.subscriptions, join.rate) for s in found.sizes for join in s.joins if join.name == name]
        if points:
            right.plot(*zip(*points, strict=True), "o--" if name == BY_HAND else "o-", color=colour, label=name)
    best = best_plain(found.sizes)
    if best is not None:
        size, join = best
        x = size.subscriptions
        right.annotate("", (x, join.rate), (x, size.rate), arrowprops={"arrowstyle": "<->", "color": INK})
        right.annotate(
            f"{size.times(join)[0]:,.0f}x ", (x, (size.rate * join.rate) ** 0.5), ha="right", va="center", color=INK
        )
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("subscriptions")
    right.set_title("events a second", color=INK)
    right.legend(fontsize=8, loc="center left")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=80)
    plt.close(figure)
