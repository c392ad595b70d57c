"""A marketplace generated from a seed: offers that arrive, and the searches that people keep.

An offer rings a handful of a million searches on average. Everything is drawn in chunks with a seed each, so that any
number of tasks may draw them, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CHUNK = 50_000
"""How many offers or searches are drawn from one seed."""

PRICES = {
    "armchair": 220, "backpack": 70, "bicycle": 400, "blender": 60, "bookcase": 120, "camera": 350, "carpet": 180,
    "clarinet": 450, "desk lamp": 40, "drill": 90, "drone": 380, "easel": 55, "espresso machine": 320, "globe": 65,
    "guitar": 500, "headphones": 130, "kayak": 620, "keyboard": 110, "laptop": 700, "microscope": 240, "mirror": 80,
    "monitor": 190, "scooter": 260, "sewing machine": 210, "sofa": 600, "stroller": 230, "telescope": 330, "tent": 150,
    "turntable": 250, "typewriter": 140,
}  # fmt: skip
"""What is traded, and what it usually costs."""

BRANDS = [
    first + second
    for first in ("Al", "Bor", "Cal", "Dor", "El", "Fen", "Gal", "Hol", "Ist", "Jun")
    for second in ("ba", "dex", "mio", "ros", "vik")
]
CITIES = [
    first + second
    for first in ("Ald", "Brim", "Cor", "Dun", "East", "Fair", "Glen", "Har", "Iron", "King")
    for second in ("bridge", "bury", "ford", "ham", "haven", "mouth", "stead", "ton")
]
COLOURS = ["black", "blue", "brown", "green", "grey", "orange", "red", "silver", "white", "yellow"]

OFFER = (
    "offer bigint, title string, item string, brand string, colour string, city string, price double, rating double, "
    "used boolean, posted timestamp"
)
"""The schema of offers, in Spark's words."""

SEARCH = "id bigint, expression string"

_ITEMS = pa.array(list(PRICES))
_COSTS = np.array(list(PRICES.values()), np.float64)
_EPOCH = 1_767_225_600_000_000  # 2026-01-01 in microseconds


def offers(chunk: int, seed: int = 7) -> pa.Table:
    """Return the offers of a chunk; one in twenty does not say how its seller is rated.

    >>> offers(0).slice(0, 1).select(["title", "city"]).to_pylist()
    [{'title': 'Junmio turntable red', 'city': 'Fairmouth'}]
    """
    random = np.random.default_rng([seed, 0, chunk])
    item = random.integers(len(PRICES), size=CHUNK)
    brand, colour, city = (_drawn(random, names) for names in (BRANDS, COLOURS, CITIES))
    named = _ITEMS.take(pa.array(item))
    number = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)
    return pa.table(
        {
            "offer": number,
            "title": pc.binary_join_element_wise(brand, named, colour, " "),
            "item": named,
            "brand": brand,
            "colour": colour,
            "city": city,
            "price": np.round(_COSTS[item] * random.lognormal(0, 0.5, CHUNK)),
            "rating": pa.array(np.round(5 - random.exponential(0.5, CHUNK), 1), mask=random.random(CHUNK) < 0.05),
            "used": random.random(CHUNK) < 0.7,
            "posted": pa.array(_EPOCH + number * 250_000, pa.timestamp("us", "UTC")),
        }
    )


def searches(chunk: int, seed: int = 7) -> pa.Table:
    """Return the searches of a chunk: eight kinds of wishes, each with its own things, places and bounds.

    >>> searches(0)["expression"][0].as_py()
    "item = 'telescope' AND brand = 'Fendex' AND city = 'Fairstead' AND price <= 358"
    """
    random = np.random.default_rng([seed, 1, chunk])
    kinds = _wishes(random)
    table = pa.concat_tables([pa.table({"expression": kind}) for kind in kinds])
    order = np.arange(CHUNK).reshape(len(kinds), -1).T.ravel()
    ids = pa.array(np.arange(chunk * CHUNK, (chunk + 1) * CHUNK))
    return table.take(pa.array(order)).add_column(0, "id", ids)


def _wishes(random: np.random.Generator) -> list[pa.Array]:
    """Return the expressions of each kind, the same number of each."""
    each = CHUNK // 8
    item = random.integers(len(PRICES), size=(8, each))
    bound = np.maximum(5, np.round(_COSTS[item] * random.beta(2, 3, (8, each)) * 1.5)).astype(np.int64)
    i = [_ITEMS.take(pa.array(row)) for row in item]
    p = [pa.array(row).cast(pa.string()) for row in bound]
    half = [pa.array(row // 2).cast(pa.string()) for row in bound]
    b, o, c, d = ([_drawn(random, names, each) for _ in range(8)] for names in (BRANDS, COLOURS, CITIES, CITIES))
    stars = _drawn(random, ["4", "4.5", "4.8"], each)
    return [
        _text("item = '", i[0], "' AND brand = '", b[0], "' AND city = '", c[0], "' AND price <= ", p[0]),
        _text("item = '", i[1], "' AND brand = '", b[1], "' AND city IN ('", c[1], "', '", d[1], "') AND NOT used AND rating >= ", stars, " AND price <= ", p[1]),  # noqa: E501
        _text("title LIKE '", b[2], " ", i[2], "%' AND city = '", c[2], "' AND price BETWEEN ", half[2], " AND ", p[2]),
        _text("item = '", i[3], "' AND colour = '", o[3], "' AND city = '", c[3], "' AND price < ", p[3]),
        _text("lower(city) = '", pc.utf8_lower(c[4]), "' AND item = '", i[4], "' AND used AND rating IS NULL AND price < ", p[4]),  # noqa: E501
        _text("(city = '", c[5], "' OR rating > 4.9) AND title = '", b[5], " ", i[5], " ", o[5], "'"),
        _text("item IN ('", i[6], "', '", i[7], "') AND brand = '", b[6], "' AND city = '", c[6], "' AND price < ", p[6], " / 2"),  # noqa: E501
        _text("title LIKE '%", o[7], "' AND brand = '", b[7], "' AND city = '", c[7], "' AND price < ", p[7]),
    ]  # fmt: skip


def _drawn(random: np.random.Generator, names: list[str], count: int = CHUNK) -> pa.Array:
    return pa.array(names).take(pa.array(random.integers(len(names), size=count)))


def _text(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def offer_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the offers of the chunks that arrive as numbers: a function for Spark's `mapInArrow`."""
    for batch in batches:
        for chunk in batch.column(0).to_pylist():
            yield from offers(chunk).to_batches()


def search_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the searches of the chunks that arrive as numbers: a function for Spark's `mapInArrow`."""
    for batch in batches:
        for chunk in batch.column(0).to_pylist():
            yield from searches(chunk).to_batches()


def shares(counts: npt.NDArray[np.int64], most: int = 12) -> list[tuple[str, float]]:
    """Return which share of offers rings how many searches; the last line gathers the rest.

    >>> shares(np.array([0, 0, 1, 5]), 2)
    [('0', 0.5), ('1', 0.25), ('2+', 0.25)]
    """
    found = np.bincount(np.minimum(counts, most), minlength=most + 1) / max(1, len(counts))
    return [(f"{number}{'+' if number == most else ''}", float(share)) for number, share in enumerate(found)]
