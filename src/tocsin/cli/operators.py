"""`tocsin bench operators`: how many operator calls each order makes, beside the paper's counts; and polygons."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json

_ORDERS = ("naive", "sequential", "sub-order", "adaptive", "learning", "unforeseen", "hindsight", "bound")
_READINGS = ("spread", "even", "fitted")
_BELOW = (("adaptive", "sub-order"), ("unforeseen", "sub-order"), ("adaptive", "naive"))
_SHOWN = 20


def operators(
    events: Annotated[int, typer.Option(min=1, help="How many events are matched at each point.")] = 20,
    polygons: Annotated[
        int, typer.Option(min=0, help="With --timed, how many polygon subscriptions; 0 leaves them out.")
    ] = 100_000,
    figure: Annotated[int | None, typer.Option(min=4, max=8, help="Only this figure of the paper.")] = None,
    reading: Annotated[
        str, typer.Option(help=f"How to read what the paper leaves open: {', '.join(_READINGS)}.")
    ] = "spread",
    readings: Annotated[
        bool,
        typer.Option("--readings", help="Go through all readings instead, and say how far each is from the paper."),
    ] = False,
    timed: Annotated[
        bool,
        typer.Option("--timed", help="Measure instead what depends on the machine: ordering, building, polygons."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="What workloads are generated from.")] = 1,
    json: options.Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write operators.json and pictures/operators.png here."),
    ] = None,
) -> None:
    """Measure the orders in which operators are evaluated (figures 4 to 8 of the operators paper).

    Counts are predicates evaluated an event. "learning" is adaptive that begins without knowing any selectivity,
    "unforeseen" a certified lower bound for every order that cannot foresee outcomes, "hindsight" a greedy set cover
    that knows every outcome, "bound" what no order can do without.

    With --readings the paper's printed counts are compared with those of every reading of what it leaves open. With
    --timed: what ordering costs beside what it saves at a millisecond a call, computed and timed; how long orders take
    to build; polygon subscriptions against points.
    """
    from tocsin.bench.machine import describe
    from tocsin.bench.operators import FIGURES, run
    from tocsin.bench.operators_readings import READINGS

    if reading not in READINGS:
        raise typer.BadParameter(f"{reading!r} is none of {', '.join(READINGS)}", param_hint="--reading")
    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), seed)
    if readings:
        _search(events, seed, json, output, about)
        return
    if timed:
        _timed(polygons, seed, json, output, about)
        return
    rows: list[dict[str, Any]] = []
    chosen = [setting for setting in FIGURES if figure in (None, setting.figure)]
    with progress("figures", len(chosen) * events) as advance:
        rows += [run(setting, events, seed, READINGS[reading], advance) for setting in chosen]
    if json:
        for row in rows:
            typer.echo(to_json(row))
    else:
        _tell(rows)
    if output is not None:
        from tocsin.bench.operators_pictures import draw_figures

        (output / "pictures").mkdir(parents=True, exist_ok=True)
        draw_figures(rows, output / "pictures" / "operators.png")
        written = {"about": about, "reading": reading, "figures": rows}
        (output / "operators.json").write_text(to_json(written) + "\n")


def _timed(polygons: int, seed: int, json: bool, output: Path | None, about: dict[str, Any]) -> None:
    """Measure what depends on the machine."""
    from tocsin.bench.operators import TIMED, build_seconds, overhead

    found: dict[str, Any] = {"overhead": [], "build": []}
    with progress("ordering beside what it saves", len(TIMED)) as advance:
        for setting in TIMED:
            found["overhead"].append(overhead(setting, seed=seed))
            found["build"].append({"subscriptions": setting.subscriptions, **build_seconds(setting, seed)})
            advance(1)
    if polygons:
        from tocsin.bench.polygons import measure

        with progress(f"{polygons:,} polygons"):
            found["polygons"] = measure(polygons, 100_000, seed).to_json()
    if json:
        typer.echo(to_json(found))
    else:
        _tell_timed(found)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "operators-timed.json").write_text(to_json({"about": about, **found}) + "\n")


def _search(events: int, seed: int, json: bool, output: Path | None, about: dict[str, Any]) -> None:
    """Compare the printed counts with those of every reading."""
    from tocsin.bench.operators_search import SETTINGS, search, steps, unreachable

    with progress("readings", steps()) as advance:
        rows = search(events, seed, advance=advance)
    with progress("what no set of predicates can hit"):
        least = unreachable(SETTINGS[0], seed)
    if json:
        for row in rows:
            typer.echo(to_json(row))
        typer.echo(to_json({"unreachable": least}))
    else:
        names = [(name, order) for name, each in rows[0]["deviations"].items() for order in each]
        percent = [
            {(name, order): off for name, each in row["deviations"].items() for order, off in each.items()}
            for row in rows
        ]
        shown = [
            [
                row["truths"] + (f" + {row['background']:.0%}" if row["background"] else ""),
                row["entries"],
                "stops" if row["stops"] else "whole",
                row["chains"],
                *(f"{off[name]:+.0%}" if name in off else "" for name in names),
            ]
            for row, off in list(zip(rows, percent, strict=True))[:_SHOWN]
        ]
        short = [f"{name.replace('figure ', '').replace(', longest ', '/')} {order}" for name, order in names]
        draw(["truths", "entries", "sequential", "chains", *short], shown)
        typer.echo(
            f"The {len(shown)} nearest of {len(rows)} readings; figure 5 is compared with the counts of figure 4."
        )
        typer.echo(f"Figure 4, 80,000 subscriptions: no {least:,} predicates hit them all, whatever is true.")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        found = {"about": about, "unreachable": least, "readings": rows}
        (output / "operators-readings.json").write_text(to_json(found) + "\n")


def _tell(rows: list[dict[str, Any]]) -> None:
    shown = [
        [
            row["figure"],
            f"{row['subscriptions']:,}",
            f"{row['predicates']:,}",
            row["longest"],
            row["popularity"],
            *(_count(row, name) for name in _ORDERS),
            *(_below(row, *pair) for pair in _BELOW),
        ]
        for row in rows
    ]
    below = [f"{name} below {other}" for name, other in _BELOW]
    draw(["figure", "subscriptions", "predicates", "longest", "popularity", *_ORDERS, *below], shown)
    typer.echo("In brackets: what the paper prints.")


def _tell_timed(found: dict[str, Any]) -> None:
    for each, built in zip(found["overhead"], found["build"], strict=True):
        typer.echo(
            f"{each['subscriptions']:,} subscriptions, {each['predicates']:,} predicates, {each['popularity']}: "
            f"{each['naive']:,.0f} calls an event without an order, {each['adaptive']:,.0f} with it; "
            f"built in {built['sub-order']} s (sub-order), {built['adaptive']} s (adaptive)."
        )
        for name in ("computed", "timed"):
            took = each[name]
            typer.echo(
                f"  Ordering takes {took['ordering_seconds']:.4f} s an event and saves {took['saved_seconds']:.2f} s "
                f"at a millisecond a call ({name}): {took['share']:.2%}."
            )
    if "polygons" in found:
        each = found["polygons"]
        typer.echo(
            f"{each['subscriptions']:,} polygons: {each['events_per_second']:,.0f} events a second of one core, "
            f"{each['matches_per_event']:.2f} matches an event, loaded in {each['load_seconds']:.1f} s."
        )


def _below(row: dict[str, Any], name: str, other: str) -> str:
    return "" if row[name] is None else f"{1 - row[name] / row[other]:.1%}"


def _count(row: dict[str, Any], name: str) -> str:
    printed = row["printed"].get(name)
    if row[name] is None:
        return ""
    return f"{row[name]:,.0f}" + (f" ({printed:,})" if printed else "")
