"""`tocsin bench engines`: every engine on every workload, as a table, JSON, a page and pictures."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import options
from tocsin.cli.results import draw, to_json

if TYPE_CHECKING:
    from tocsin.bench.engines import Measurement

SIZES = ",".join(["10K,100K", "W0=10K+100K+1M+6M", *(f"{name}=10K+100K+1M" for name in ("W1", "W2", "R", "boolean"))])
QUICK_SIZES = "2K"
PAGE = "benchmarks.md"


def engines(
    workloads: Annotated[str, typer.Option(metavar="NAMES", help="Workloads, with commas between; else all.")] = "",
    sizes: Annotated[
        str, typer.Option(help="Subscriptions, with commas between: a size for all, NAME=SIZE+SIZE for one.")
    ] = SIZES,
    engines: Annotated[str, typer.Option(metavar="NAMES", help="Engines, with commas between; else all.")] = "",
    peers: Annotated[bool, typer.Option(help="Measure what people write instead: joins, a Python loop.")] = True,
    spark: Annotated[bool, typer.Option(help="Among them a join in Spark SQL; needs Java.")] = True,
    extras: Annotated[bool, typer.Option(help="Measure saved indexes, churn and memory by width as well.")] = True,
    churn: Annotated[str, typer.Option(metavar="SIZE", help="Subscriptions held while others come and go.")] = "3M",
    saved: Annotated[str, typer.Option(metavar="SIZE", help="Subscriptions of W0 in the saved index.")] = "6M",
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and short repetitions: a look.")] = False,
    budget: Annotated[float, typer.Option(min=0.1, help="Seconds that one engine may take on one size.")] = 20.0,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="What all of it may take, about; 0: as long as it does.")
    ] = 25,
    json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write a page, JSON and pictures here.")
    ] = None,
) -> None:
    """Measure every engine, beside a kernel written by hand and what people write instead.

    Everything goes through the public match_batch, Arrow in and out. Each engine has a share of the time; one that
    would exceed it on a size, by what it took on a smaller one, is reported as not run, with what was foretold. The
    folder of --output gets benchmarks.md, benchmarks.json and pictures/.
    """
    from tocsin.bench import engines as measuring
    from tocsin.bench.loaded import engine_names
    from tocsin.bench.machine import describe
    from tocsin.bench.peers import PEERS
    from tocsin.bench.plan import SPARK
    from tocsin.bench.report import COLUMNS, cells, page
    from tocsin.bench.targets import targets
    from tocsin.bench.timing import QUICK, Effort

    about = describe(shlex.join(["tocsin", *sys.argv[1:]]), measuring.MEASURED["W0"].seed)
    effort = QUICK if quick else Effort(budget=budget)
    names = chosen(workloads, list(measuring.MEASURED), "workload")
    ours = chosen(engines, engine_names(), "engine")
    where = [(name, size) for name in names for size in sizes_of(QUICK_SIZES if quick else sizes, name)]
    held_size, saved_size = (size_of("2K" if quick else size) for size in (churn, saved))
    beside = [name for name in PEERS if peers and (name != SPARK or (spark and not quick))]
    if not quick:
        _say("compiling what is not on disk", json)
        measuring.compile_all(ours)
    started = time.perf_counter()
    more = _extras(held_size, saved_size, quick, effort, json) if extras else {}
    seconds = max(60 * minutes - (time.perf_counter() - started), 20 * minutes) if minutes else None
    found = []
    for one in measuring.measure(where, ours, beside, effort, seconds):
        found.append(one)
        _tell(one, json)
    found.sort(key=lambda one: where.index((one.workload, one.size)))
    held = targets(found, more)
    about["minutes"] = round((time.perf_counter() - started) / 60, 1)
    if json:
        typer.echo(to_json({"targets": [target.to_json() for target in held]}))
    else:
        draw(["workload", "size", *COLUMNS], [[one.workload, f"{one.size:,}", *cells(one)] for one in found])
        marks = {True: "yes", False: "NO", None: ""}
        draw(["target", "measured", "met?"], [[target.target, target.measured, marks[target.met]] for target in held])
    if output is not None:
        from tocsin.bench.pictures import draw_all

        files = draw_all(found, output / "pictures")
        (output / PAGE).write_text(page(about, found, more, held, files, output))
        whole = {
            "about": about,
            "measurements": [one.to_json() for one in found],
            "extras": more,
            "targets": [target.to_json() for target in held],
        }
        (output / "benchmarks.json").write_text(to_json(whole) + "\n")


def _extras(held: int, saved: int, quick: bool, effort: Any, json: bool) -> dict[str, Any]:
    from tocsin.bench.churn import churn
    from tocsin.bench.lasting import memory_by_leaves, saved_and_spread
    from tocsin.bench.starting import first_match
    from tocsin.bench.workloads import WORKLOADS

    seconds = 0.5 if quick else 10.0
    rate = 2_000 if quick else 50_000
    ranges = min(saved, 1_000_000)
    w0, w1, r = (WORKLOADS[name] for name in ("W0", "W1", "R"))
    stages: list[tuple[str, str, Callable[[], Any]]] = [
        ("first", "the first match of a process", lambda: first_match(1 if quick else 5)),
        ("saved", f"W0 {saved:,}, saved and over two threads", lambda: saved_and_spread(w0, saved, effort)),
        ("saved", f"R {ranges:,}, saved and over two threads", lambda: saved_and_spread(r, ranges, effort)),
        ("churn", f"W0 {held:,} beside change", lambda: churn(w0, held, rate, seconds).to_json()),
        ("churn", f"W1 {held:,} beside change", lambda: churn(w1, held, rate, seconds).to_json()),
    ]
    found: dict[str, Any] = {}
    for key, what, measured in stages:
        _say(what, json)
        found.setdefault(key, []).append(measured())
    _say("memory by the width of expressions", json)
    found["leaves"] = memory_by_leaves(500 if quick else 25_000)
    if json:
        typer.echo(to_json(found))
    return found


def size_of(text: str) -> int:
    """Return a number of subscriptions; K and M are thousands and millions.

    >>> size_of("10K"), size_of("1.5M"), size_of("70_000")
    (10000, 1500000, 70000)
    """
    scale = {"K": 1_000, "M": 1_000_000}.get(text[-1:].upper(), 1)
    try:
        size = round(float(text[:-1] if scale > 1 else text) * scale)
    except ValueError:
        size = 0
    if size < 1:
        raise typer.BadParameter(f"{text!r} is no number of subscriptions; write it like 10000, 100K or 6M")
    return size


def sizes_of(text: str, workload: str) -> list[int]:
    """Return the sizes that a list gives a workload: its own, or those for all.

    >>> sizes_of("100K,W0=10K+1M", "W0"), sizes_of("100K,W0=10K+1M", "R")
    ([10000, 1000000], [100000])
    """
    general, own = [], []
    for part in filter(None, text.split(",")):
        name, given, several = part.partition("=")
        if not given:
            general.append(size_of(part))
        elif name == workload:
            own += [size_of(size) for size in several.split("+")]
    return own or general


def chosen(text: str, known: list[str], what: str) -> list[str]:
    """Return the names in a list, or all that are known when it is empty."""
    names = [name for name in text.split(",") if name] or known
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"there is no {what} {name!r}; choose of {', '.join(known)}")
    return names


def _tell(one: Measurement, json: bool) -> None:
    if json:
        typer.echo(to_json(one.to_json()))
    said = f"{one.events:,.0f} events/s" if one.events is not None else f"not run: {one.note}"
    _say(f"{one.workload} {one.size:,} {one.engine}: {said}", json)


def _say(what: str, json: bool) -> None:
    """Tell on standard error how far a run has come, also into a file: it takes minutes."""
    if not json:
        typer.echo(what, err=True)
