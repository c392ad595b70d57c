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

_ORDERS = ("naive", "sequential", "sub-order", "adaptive", "learning", "hindsight", "bound")


def operators(
    events: Annotated[int, typer.Option(min=1, help="How many events are matched at each point.")] = 20,
    polygons: Annotated[int, typer.Option(min=0, help="How many polygon subscriptions; 0 leaves them out.")] = 100_000,
    figure: Annotated[int | None, typer.Option(min=4, max=8, help="Only this figure of the paper.")] = None,
    equal: Annotated[bool, typer.Option("--equal", help="All predicates have the same selectivity.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="What workloads are generated from.")] = 1,
    json: options.Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write operators.json and pictures/operators.png here."),
    ] = None,
) -> None:
    """Measure the orders in which operators are evaluated (figures 4 to 8 of the operators paper).

    Counts are predicates evaluated an event. "learning" is adaptive that begins without knowing any selectivity,
    "hindsight" a greedy set cover that knows every outcome, "bound" what no order can do without. Then what ordering
    costs beside what it saves at a millisecond a call, and polygon subscriptions against points.
    """
    from tocsin.bench.machine import describe
    from tocsin.bench.operators import FIGURES, overhead, run

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), seed)
    rows: list[dict[str, Any]] = []
    for setting in FIGURES:
        if figure in (None, setting.figure):
            with progress(f"figure {setting.figure}: {setting.subscriptions:,} x {setting.predicates:,}"):
                rows.append(run(setting, events, seed, equal))
    extra: dict[str, Any] = {}
    if figure is None:
        with progress("ordering beside what it saves"):
            extra["overhead"] = overhead(seed=seed)
    if polygons and figure is None:
        from tocsin.bench.polygons import measure

        with progress(f"{polygons:,} polygons"):
            extra["polygons"] = measure(polygons, 100_000, seed).to_json()
    if json:
        for row in [*rows, *extra.values()]:
            typer.echo(to_json(row))
    else:
        _tell(rows, extra)
    if output is not None:
        from tocsin.bench.operators_pictures import draw_figures

        (output / "pictures").mkdir(parents=True, exist_ok=True)
        draw_figures(rows, output / "pictures" / "operators.png")
        (output / "operators.json").write_text(to_json({"about": about, "figures": rows, **extra}) + "\n")


def _tell(rows: list[dict[str, Any]], extra: dict[str, Any]) -> None:
    shown = [
        [
            row["figure"],
            f"{row['subscriptions']:,}",
            f"{row['predicates']:,}",
            row["longest"],
            row["popularity"],
            *(_count(row, name) for name in _ORDERS),
        ]
        for row in rows
    ]
    draw(["figure", "subscriptions", "predicates", "longest", "popularity", *_ORDERS], shown)
    typer.echo("In brackets: what the paper prints.")
    slowest = {name: max(row["build_seconds"][name] for row in rows) for name in ("sub-order", "adaptive")}
    typer.echo(
        f"An order is built in at most {slowest['sub-order']} s (sub-order), {slowest['adaptive']} s (adaptive)."
    )
    if "overhead" in extra:
        found = extra["overhead"]
        typer.echo(
            f"Ordering takes {found['ordering_seconds']:.4f} s an event and saves {found['saved_seconds']:.2f} s at a "
            f"millisecond a call: {found['share']:.2%}."
        )
    if "polygons" in extra:
        found = extra["polygons"]
        typer.echo(
            f"{found['subscriptions']:,} polygons: {found['events_per_second']:,.0f} events a second of one core, "
            f"{found['matches_per_event']:.2f} matches an event, loaded in {found['load_seconds']:.1f} s."
        )


def _count(row: dict[str, Any], name: str) -> str:
    printed = row["printed"].get(name)
    return f"{row[name]:,.0f}" + (f" ({printed:,})" if printed else "")
