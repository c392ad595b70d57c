"""A small marketplace from a seed: saved searches of ten templates, and offers; what loading is measured with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tocsin.space import Boolean, Number, Space, Text

PRICES = {"bicycle": 400, "camera": 350, "desk lamp": 40, "guitar": 500, "sofa": 600, "tent": 150, "turntable": 250}
"""What is traded, and what it usually costs."""

CITIES = ["Lisbon", "Lyon", "Marseille", "Naples", "Porto", "Seville", "Turin", "Valencia"]
LOOKS = ["black", "blue", "green", "old", "red", "vintage", "white"]

SPACE = Space(
    {"title": Text(), "item": Text(), "city": Text(), "price": Number(), "rating": Number(), "used": Boolean()}
)


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
