"""`tocsin demo`: a generated marketplace on Spark: a million searches, a million offers, and who is told."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from tocsin.bench import marketplace
from tocsin.cli import needs, options
from tocsin.cli.progress import progress
from tocsin.cli.results import draw, to_json
from tocsin.cli.spark import Cores, open_session, spark_room
from tocsin.errors import FileError

BATCHES = 8
"""Into how many files the offers come: each is a batch of the stream."""


class Run(NamedTuple):
    """What a run was: the seconds of its parts, and the rate of each batch."""

    generating: float
    indexing: float
    matching: float
    matches: int
    rates: list[float]


def demo(
    searches: Annotated[
        int, typer.Option("--searches", min=1, help="How many saved searches there are, rounded up to 50,000.")
    ] = 1_000_000,
    offers: Annotated[
        int, typer.Option("--offers", min=1, help="How many offers arrive, rounded up to 50,000.")
    ] = 1_000_000,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Where the tables, the index and the picture go.")
    ] = "out/demo",
    cores: Cores = "*",
    json: options.Json = False,
) -> None:
    """Watch a generated marketplace on Spark: kept searches, arriving offers, and who is told.

    People keep searches ("a red kayak in Corham below 398"); every offer that arrives is matched against all of them at
    once, by a stream on Spark in this process. The matches are left as Parquet, with a picture of the run.
    """
    spark_room()
    needs("matplotlib")
    with _fresh(output) as folder:
        with progress("starting Spark"):
            session = open_session(cores)
        run = _matched(session, folder, *(-(-count // marketplace.CHUNK) for count in (searches, offers)))
        facts, items, told = _summary(session, folder, run)
        picture = folder / "demo.png"
        _draw_picture(picture, facts, run, items, told)
        if json:
            typer.echo(to_json(facts | {"output": str(folder)}))
            return
        draw(["what", "how much"], [[name.replace("_", " "), _shown(value)] for name, value in facts.items()])
        _tell(session, folder)
        typer.echo(f"matches: {folder / 'matches'} (Parquet)   picture: {picture}")


def _matched(session: Any, folder: Path, search_chunks: int, offer_chunks: int) -> Run:
    """Generate both tables, index the searches, and stream the offers past them."""
    ts = spark_room()
    from tocsin.spark.streaming import Progress, run_stream

    started = time.perf_counter()
    with progress("generating searches and offers"):
        chunks = session.range(0, search_chunks, 1, min(search_chunks, BATCHES))
        chunks.mapInArrow(marketplace.search_batches, marketplace.SEARCH).write.parquet(str(folder / "searches"))
        chunks = session.range(0, offer_chunks, 1, min(offer_chunks, BATCHES))
        chunks.mapInArrow(marketplace.offer_batches, marketplace.OFFER).write.parquet(str(folder / "offers"))
    generated = time.perf_counter()
    kept = session.read.parquet(str(folder / "searches"))
    sample = session.read.parquet(str(folder / "offers"))
    with progress("indexing searches"):
        ts.build_index(kept, str(folder / "index"), events_sample=sample)
    indexed = time.perf_counter()
    rates = []
    arriving = session.readStream.schema(sample.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "offers"))
    matched = ts.match(arriving, str(folder / "index")).select("offer", "item", "city", "price", "subscription")
    with progress("matching offers", offer_chunks * marketplace.CHUNK) as advance:

        def report(step: Progress) -> None:
            rates.append(step.rate)
            advance(step.events)

        total = run_stream(matched, str(folder / "matches"), str(folder / "checkpoint"), report=report)
    ended = time.perf_counter()
    return Run(generated - started, indexed - generated, ended - indexed, total.matches, rates)


def _summary(session: Any, folder: Path, run: Run) -> tuple[dict[str, Any], list[tuple[str, int]], Any]:
    """Return the figures of a run, the matches of each item, and for each offer how many searches it rings."""
    with progress("counting"):
        matches = session.read.parquet(str(folder / "matches"))
        offers = session.read.parquet(str(folder / "offers")).count()
        searches = session.read.parquet(str(folder / "searches")).count()
        rung = np.asarray(matches.groupBy("offer").count().select("count").toArrow()["count"])
        items = matches.groupBy("item").count().orderBy("count", ascending=False).limit(12).collect()
        told = matches.select("subscription").distinct().count()
    counts = np.concatenate([rung, np.zeros(offers - len(rung), np.int64)])
    facts = {
        "searches": searches,
        "offers": offers,
        "matches": run.matches,
        "offers_without_match": offers - len(rung),
        "searches_told": told,
        "generating_seconds": round(run.generating, 1),
        "indexing_seconds": round(run.indexing, 1),
        "matching_seconds": round(run.matching, 1),
        "searches_indexed_a_second": round(searches / run.indexing),
        "offers_matched_a_second": round(offers / run.matching),
        "matches_a_second": round(run.matches / run.matching),
    }
    return facts, [(row["item"], row["count"]) for row in items], counts


def _draw_picture(file: Path, facts: dict[str, Any], run: Run, items: list[tuple[str, int]], counts: Any) -> None:
    from tocsin.bench.marketplace_picture import draw_marketplace

    title = (
        f"{facts['offers']:,} offers past {facts['searches']:,} searches: {facts['matches']:,} matches, "
        f"{facts['offers_matched_a_second']:,} offers a second"
    )
    draw_marketplace(file, title, marketplace.shares(counts), items, run.rates)


def _tell(session: Any, folder: Path) -> None:
    """Show one offer and the searches that it rings."""
    matches = session.read.parquet(str(folder / "matches"))
    row = matches.orderBy("offer").limit(1).collect()
    if not row:
        return
    offer = row[0]["offer"]
    (event,) = session.read.parquet(str(folder / "offers")).where(f"offer = {offer}").collect()
    state = "used" if event["used"] else "new"
    typer.echo(f"\na {state} {event['title']} in {event['city']} for {event['price']:.0f} rings")
    kept = session.read.parquet(str(folder / "searches"))
    rung = matches.where(f"offer = {offer}").join(kept, matches["subscription"] == kept["id"])
    for search in rung.select("id", "expression").orderBy("id").limit(3).collect():
        typer.echo(f"  {search['id']}  {search['expression']}")
    typer.echo("")


@contextmanager
def _fresh(output: str) -> Iterator[Path]:
    """Give the directory of a run, emptied of what a former run left there; anything else in it is an error, and so is
    another run that is writing to it."""
    folder = Path(output).absolute()
    ours = {"searches", "offers", "index", "matches", "checkpoint", "demo.png"}
    try:
        if folder.exists() and (not folder.is_dir() or {file.name for file in folder.iterdir()} - ours):
            raise FileError(f"{output} holds other files; name a new directory with --output")
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise _unwritable(output, error) from error
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go of when the process ends, however it does
        except BlockingIOError as error:
            raise FileError(
                f"another demo is writing to {output}; wait for it, or name another directory with --output"
            ) from error
        try:
            for file in folder.iterdir():
                shutil.rmtree(file) if file.is_dir() else file.unlink()
            (folder / "searches").mkdir()
            (folder / "searches").rmdir()
        except OSError as error:
            raise _unwritable(output, error) from error
        yield folder
    finally:
        os.close(held)


def _unwritable(output: str, error: OSError) -> FileError:
    return FileError(f"{output} cannot be written: {error.strerror}; name another directory with --output")


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
