"""`tocsin demo`: a marketplace where people keep saved searches and offers arrive, generated from a seed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from tocsin.cli import options
from tocsin.cli.progress import progress
from tocsin.cli.results import to_json
from tocsin.matcher import Matcher
from tocsin.space import Boolean, Number, Space, Text

PRICES = {"bicycle": 400, "camera": 350, "desk lamp": 40, "guitar": 500, "sofa": 600, "tent": 150, "turntable": 250}
"""What is traded, and what it usually costs."""

CITIES = ["Lisbon", "Lyon", "Marseille", "Naples", "Porto", "Seville", "Turin", "Valencia"]
LOOKS = ["black", "blue", "green", "old", "red", "vintage", "white"]

SPACE = Space(
    {"title": Text(), "item": Text(), "city": Text(), "price": Number(), "rating": Number(), "used": Boolean()}
)

BATCH = 2_000
"""Offers that arrive together."""

Say = Callable[[str], None]


def searches(count: int, random: np.random.Generator) -> pa.Table:
    """Return saved searches: a few kinds of wishes, each with its own things, places and bounds."""
    items = random.choice(list(PRICES), count)
    cities = random.choice(CITIES, (count, 2))
    looks = random.choice(LOOKS, count)
    bounds = [max(5, round(PRICES[item] * share)) for item, share in zip(items, random.beta(2, 5, count), strict=True)]
    ratings = random.choice([4.0, 4.5, 4.8], count)
    wishes = [
        lambda n: f"item = '{items[n]}' AND price <= {bounds[n]} AND city = '{cities[n, 0]}'",
        lambda n: f"item = '{items[n]}' AND price < {bounds[n]} AND city IN ('{cities[n, 0]}', '{cities[n, 1]}')",
        lambda n: f"title LIKE '{looks[n]} {items[n]}%' AND price BETWEEN {bounds[n] // 2} AND {bounds[n]}",
        lambda n: f"item = '{items[n]}' AND NOT used AND rating >= {ratings[n]} AND price <= {bounds[n]}",
        lambda n: f"title LIKE '%{looks[n]}%' AND city = '{cities[n, 0]}' AND (price < {bounds[n]} OR rating > 4.9)",
        lambda n: f"title = '{looks[n]} {items[n]}' AND city <> '{cities[n, 0]}' AND price < {bounds[n]}",
        lambda n: f"item = '{items[n]}' AND rating IS NULL AND price <= {bounds[n]} AND city = '{cities[n, 0]}'",
        lambda n: f"lower(city) = '{cities[n, 0].lower()}' AND item = '{items[n]}' AND price < {bounds[n]} AND used",
        lambda n: f"(city = '{cities[n, 0]}' OR rating > {ratings[n]}) AND title = '{looks[n]} {items[n]}'",
        lambda n: f"item IN ('{items[n]}', '{items[n - 1]}') AND price < {bounds[n]} / 2 AND city = '{cities[n, 0]}'",
    ]
    kinds = random.integers(len(wishes), size=count)
    return pa.table(
        {
            "id": [f"search-{n:06}" for n in range(count)],
            "expression": [wishes[kind](n) for n, kind in enumerate(kinds.tolist())],
        }
    )


def offers(count: int, random: np.random.Generator) -> pa.Table:
    """Return offers; one in twenty does not say how its seller is rated."""
    items = random.choice(list(PRICES), count)
    looks = random.choice(LOOKS, count)
    price = np.array([PRICES[item] for item in items.tolist()]) * random.lognormal(0, 0.5, count)
    return pa.table(
        {
            "title": [f"{look} {item}" for look, item in zip(looks, items, strict=True)],
            "item": items.tolist(),
            "city": random.choice(CITIES, count).tolist(),
            "price": np.round(price),
            "rating": pa.array(np.round(5 - random.exponential(0.5, count), 1), mask=random.random(count) < 0.05),
            "used": random.random(count) < 0.7,
        }
    )


def demo(
    searches_kept: Annotated[
        int, typer.Option("--searches", min=1, help="How many saved searches there are.")
    ] = 100_000,
    offers_made: Annotated[int, typer.Option("--offers", min=1, help="How many offers arrive.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="What the scenario is generated from.")] = 7,
    json: options.Json = False,
) -> None:
    """Watch a generated marketplace: saved searches, arriving offers, and who is told.

    People keep searches ("a bicycle in Lyon for at most 150"); every offer that arrives is matched against all of
    them at once.
    """
    say: Say = (lambda text: None) if json else typer.echo
    random = np.random.default_rng(seed)
    subscriptions, events = searches(searches_kept, random), offers(offers_made, random)
    matcher = Matcher(SPACE)
    say(f"{searches_kept:,} saved searches, such as")
    for row in subscriptions.slice(0, 3).to_pylist():
        say(f"  {row['id']}  {row['expression']}")

    compiling = _compiled(subscriptions, events)
    if compiling > 2:
        say(f"compiled for this machine in {compiling:.0f} s, which the next run need not do")
    started = time.perf_counter()
    with progress("loading searches"):
        matcher.subscribe_many(subscriptions)
    loading = time.perf_counter() - started
    say(f"loaded in {loading:.2f} s\n")

    matches, matching = _matched(matcher, events)
    rate = f"{offers_made / matching:,.0f} offers/s"
    say(f"{offers_made:,} offers, {len(matches):,} matches in {matching:.2f} s ({rate})\n")
    told = Counter(matches["event"].to_pylist())
    story = _story(matcher, events, matches, told)
    for line in story:
        say(line)
    if json:
        facts = {"searches": searches_kept, "offers": offers_made, "seed": seed, "matches": len(matches)}
        facts |= {"offers_without_match": offers_made - len(told)}
        typer.echo(to_json(facts | {"loading_seconds": loading, "matching_seconds": matching}))


def _compiled(subscriptions: pa.Table, events: pa.Table) -> float:
    """Match a little of everything, so that the kernels are compiled or read from their cache; return the seconds."""
    started = time.perf_counter()
    with progress("preparing (compiling, on the first run)"):
        matcher = Matcher(SPACE)
        matcher.subscribe_many(subscriptions.slice(0, 10_000))
        matcher.match_batch(events.slice(0, BATCH))
    return time.perf_counter() - started


def _matched(matcher: Matcher, events: pa.Table) -> tuple[pa.Table, float]:
    """Return the matches of all offers, batch after batch as they arrive, and the seconds that took."""
    parts, seconds = [], 0.0
    with progress("matching offers", len(events)) as advance:
        for start in range(0, len(events), BATCH):
            started = time.perf_counter()
            found = matcher.match_batch(events.slice(start, BATCH))
            seconds += time.perf_counter() - started
            parts.append(found.set_column(0, "event", pc.add(found["event"], start)))
            advance(min(BATCH, len(events) - start))
    return pa.concat_tables(parts), seconds


def _story(matcher: Matcher, events: pa.Table, matches: pa.Table, told: Counter[int]) -> list[str]:
    """Return what happened to some offers: the most wanted one, the first that nobody wants, and a near miss."""
    lines: list[str] = []
    for number, count in told.most_common(1):
        lines.append(f"offer {number} is wanted most: {_described(events, number)}; {count:,} searches ring, such as")
        wanted = matches.filter(pc.equal(matches["event"], number))["subscription"].to_pylist()
        lines += [f"  {id}  {matcher[id]}" for id in sorted(wanted)[:3]] + [""]
    unwanted = next((number for number in range(len(events)) if number not in told), None)
    if unwanted is not None:
        lines.append(f"offer {unwanted} rings nowhere: {_described(events, unwanted)}. Why not the first search?")
        lines.append(str(matcher.explain(events.slice(unwanted, 1).to_pylist()[0], next(iter(matcher)))))
    return lines


def _described(events: pa.Table, number: int) -> str:
    offer: dict[str, Any] = events.slice(number, 1).to_pylist()[0]
    rating = f"rated {offer['rating']}" if offer["rating"] is not None else "not rated"
    return (
        f"a {'used' if offer['used'] else 'new'} {offer['title']} in {offer['city']} for {offer['price']:.0f}, {rating}"
    )
