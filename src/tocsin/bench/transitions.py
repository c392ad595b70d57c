"""Transitions of a fleet on Spark: from Parquet files of updates to Parquet files of who entered and who left.

One stream a fleet: its trucks as they start, then batches of position updates, then one more after some fences have
moved. The same updates a batch with few and with many trucks stored shows whether the cost follows the updates. Every
transition is held against the library's.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.bench.fleet import SPACE, Fleet
from tocsin.matcher import Matcher

TARGET = 50_000
WARM_UP = 2
"""Batches of updates that are not counted: Java compiles, files of the state are read for the first time."""

MOVED_FENCES = 100

Turns = set[tuple[int, int | None, int, str]]
"""Truck, order of the cause, fence, enter or leave."""


class Batch(NamedTuple):
    """A batch of updates: how long Spark took from planning it to committing it."""

    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        """Updates a second."""
        return self.rows / self.seconds


@dataclass(frozen=True)
class FleetFigures:
    """What one fleet measured. ``rate`` is of the median batch; ``exact`` says that every transition is the library's.

    ``change_seconds`` is the batch in which stored trucks entered and left fences because fences had moved.
    """

    trucks: int
    fences: int
    rows: int
    load_seconds: float
    rate: int
    rates: tuple[int, ...]
    change_seconds: float
    transitions: int
    exact: bool
    state_bytes: int


@dataclass(frozen=True)
class TransitionFigures:
    """What one run measured: the whole fleet, and a smaller one that gets batches of the same size."""

    fleet: FleetFigures
    smaller: FleetFigures

    @property
    def share(self) -> float:
        """The rate with all trucks stored over the rate with few."""
        return round(self.fleet.rate / self.smaller.rate, 3)

    def as_rows(self) -> list[tuple[str, str, str]]:
        """Return names and values for a table."""
        both = asdict(self.fleet), asdict(self.smaller)
        return [(name.replace("_", " "), _shown(both[0][name]), _shown(both[1][name])) for name in both[0]]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        met = self.fleet.rate >= TARGET and self.fleet.exact and self.smaller.exact
        return {"fleet": asdict(self.fleet), "smaller": asdict(self.smaller), "share": self.share, "met": met}


def measure_transitions(
    session: Any,
    trucks: int = 1_000_000,
    fences: int = 100_000,
    rows: int = 200_000,
    batches: int = 8,
    buckets: int | None = None,
    seed: int = 2004,
    say: Callable[[str], None] = lambda text: None,
) -> TransitionFigures:
    """Measure a fleet, and one of a fifth of its trucks (at least as many as a batch has rows), on a session."""
    from tocsin import spark as ts

    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as folder:
        say("indexing the fences")
        # The smaller one first: it finds Java cold, which must not be counted against what is stored.
        fleets = [Fleet(count, fences, seed) for count in (max(rows, trucks // 5), trucks)]
        table = fleets[0].subscriptions()
        pq.write_table(table, f"{folder}/fences.parquet")
        space = SPACE
        ts.build_index(session.read.parquet(f"{folder}/fences.parquet"), f"{folder}/index", space=space)
        matcher = Matcher(space)
        matcher.subscribe_many(table)
        found = []
        for fleet in fleets:
            say(f"updating a fleet of {fleet.trucks:,}")
            place = Path(folder) / str(fleet.trucks)
            shutil.copytree(f"{folder}/index", place / "index")
            found.append(_measured(session, fleet, matcher, place, rows, batches, buckets))
    small, large = found
    return TransitionFigures(large, small)


def _measured(
    session: Any, fleet: Fleet, matcher: Matcher, folder: Path, rows: int, batches: int, buckets: int | None
) -> FleetFigures:
    from tocsin import spark as ts

    tables = list(fleet.batches(batches + 1, rows))
    moved = fleet.moved(MOVED_FENCES)
    (folder / "updates").mkdir()
    for number, table in enumerate(tables[:-1]):
        _write(table, folder / "updates", number)
    steps = _streamed(session, folder, buckets)
    changes = session.createDataFrame(moved.to_pylist(), "id bigint, expression string")
    ts.update_index(changes, str(folder / "index"))
    _write(tables[-1], folder / "updates", len(tables) - 1)
    steps += _streamed(session, folder, None)
    out = pq.read_table(folder / "out", columns=["truck", "at", "subscription", "transition"])
    turns = list(zip(*(out[name].to_pylist() for name in out.column_names), strict=True))
    expected = _expected(tables, matcher, moved)
    size = sum(file.stat().st_size for file in (folder / "state").rglob("*") if file.is_file())
    rates = [step.rate for step in steps[1:-1]]
    return FleetFigures(
        trucks=fleet.trucks,
        fences=fleet.fences,
        rows=rows,
        load_seconds=round(steps[0].seconds, 2),
        rate=round(statistics.median(rates[min(WARM_UP, len(rates) - 1) :])),
        rates=tuple(round(rate) for rate in rates),
        change_seconds=round(steps[-1].seconds, 2),
        transitions=len(turns),
        exact=len(turns) == len(expected) and set(turns) == expected,
        state_bytes=size,
    )


def _write(table: pa.Table, folder: Path, number: int) -> None:
    """Write a batch as one file of two row groups, one for each core, older than the files to come."""
    file = folder / f"{number:04}.parquet"
    pq.write_table(table, file, row_group_size=-(-len(table) // 2))
    os.utime(file, (1_700_000_000 + number,) * 2)


def _streamed(session: Any, folder: Path, buckets: int | None) -> list[Batch]:
    """Run the stream over the files that are new; return its batches."""
    from tocsin import spark as ts

    schema = "truck bigint, at bigint, x double, y double, kind bigint, cargo bigint"
    updates = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "updates"))
    result = ts.transitions(
        updates,
        folder / "index",
        key="truck",
        order="at",
        partial=True,
        state=folder / "state",
        buckets=buckets,
    )
    writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    steps = [json.loads(each.json) for each in query.recentProgress]
    return [Batch(step["numInputRows"], step["batchDuration"] / 1000) for step in steps if step["numInputRows"]]


def _expected(tables: list[pa.Table], matcher: Matcher, moved: pa.Table) -> Turns:
    """Return the transitions by the library: the pairs before and after every batch; the last follows moved fences.

    The matcher is left as it was.
    """
    unmoved = pa.table({"id": moved["id"], "expression": [matcher[id] for id in moved["id"].to_pylist()]})
    names = ["x", "y", "kind", "cargo"]
    now = {name: tables[0][name].to_numpy().copy() for name in names}
    found: Turns = set()
    whole = _pairs(matcher, now, np.arange(len(now["x"])))
    found |= {(truck, 0, fence, "enter") for truck, fence in whole}
    for number, table in enumerate(tables[1:]):
        if number == len(tables) - 2:
            found |= _moved(matcher, now, unmoved, moved)
        truck, at = np.array(table["truck"]), np.array(table["at"])
        order = dict(zip(truck.tolist(), at.tolist(), strict=True))
        before = _pairs(matcher, now, truck)
        for name in names:
            given = np.array(table[name].is_valid())
            now[name][truck[given]] = np.array(table[name].drop_null())
        after = _pairs(matcher, now, truck)
        found |= {(truck, order[truck], fence, "leave") for truck, fence in before - after}
        found |= {(truck, order[truck], fence, "enter") for truck, fence in after - before}
    matcher.subscribe_many(unmoved, duplicates="replace")
    return found


def _moved(matcher: Matcher, now: dict[str, Any], unmoved: pa.Table, moved: pa.Table) -> Turns:
    """Move fences in the matcher; return whom that makes enter and leave."""
    old, new = Matcher(SPACE), Matcher(SPACE)
    old.subscribe_many(unmoved)
    new.subscribe_many(moved)
    every = np.arange(len(now["x"]))
    before, after = (_pairs(each, now, every) for each in (old, new))
    matcher.subscribe_many(moved, duplicates="replace")
    turned = {(truck, None, fence, "leave") for truck, fence in before - after}
    return turned | {(truck, None, fence, "enter") for truck, fence in after - before}


def _pairs(matcher: Matcher, now: dict[str, Any], trucks: Any) -> set[tuple[int, int]]:
    found = matcher.match_batch(pa.table({name: values[trucks] for name, values in now.items()}))
    of_pair = trucks[np.array(found["event"])].tolist()
    return set(zip(of_pair, found["subscription"].to_pylist(), strict=True))


def draw_transitions(figures: TransitionFigures, file: Path) -> None:
    """Draw the rate of each batch of both fleets, and the target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(7, 3.2))
    for one, colour in ((figures.fleet, "#c1272d"), (figures.smaller, "#0071bc")):
        panel.plot(range(1, len(one.rates) + 1), one.rates, "o-", color=colour, label=f"{one.trucks:,} trucks stored")
    panel.axhline(TARGET, color="#888888", linestyle="--", linewidth=1, label="target")
    panel.set_ylim(bottom=0)
    panel.set_xlabel(f"batch of {figures.fleet.rows:,} updates")
    panel.set_ylabel("updates a second")
    panel.legend(fontsize=8)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)
    pyplot.close(figure)


def page(about: dict[str, Any], figures: TransitionFigures, picture: str) -> Iterator[str]:
    """Yield the lines of a page about a run."""
    yield "# Transitions of a fleet\n"
    yield f"This page is written by `{about['command']}`; the same command writes it anew.\n"
    yield (
        f"{about['date']}, revision {about['revision']}, seed {about['seed']}. {about['processor']}, "
        f"{about['cores']} cores, load average when it began: {about['load']}.\n"
    )
    yield f"![rates]({picture})\n"
    yield f"| | {figures.fleet.trucks:,} trucks | {figures.smaller.trucks:,} trucks |\n|---|---|---|"
    yield from (f"| {' | '.join(row)} |" for row in figures.as_rows())
    yield f"\nWith all trucks stored the rate is {figures.share} of that with few."


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{each:,}" for each in value)
    return str(value) if isinstance(value, bool) else f"{value:,}"
