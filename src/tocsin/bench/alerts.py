"""Subscriptions of mixed types from a seed: numbers, texts, times, addresses, concepts, sets, choices; what covering is
measured with at a million. Popular wishes are shared or nested, rare ones stand alone, as saved alerts are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.space import Address, Concept, Number, Space, Text, Time

KINDS = 8
"""Concepts under the root, and as many under each of those, three deep."""


def _names(depth: int, above: str) -> dict[str, object] | list[str]:
    names = [f"{above}{place}" for place in range(KINDS)]
    return names if depth == 1 else {name: _names(depth - 1, name) for name in names}


SPACE = Space(
    {
        "kind": Concept({"thing": _names(3, "k")}),
        "brand": Text(),
        "city": Text(),
        "price": Number(),
        "stock": Number("int64"),
        "seen": Time(),
        "host": Address(),
    }
)


def alerts(count: int, seed: int = 8) -> pa.Table:
    """Return so many subscriptions, with columns ``id`` and ``expression``.

    >>> alerts(3)["expression"].to_pylist()[0].count("AND") > 0
    True
    """
    random = np.random.default_rng(seed)

    def zipf(most: int, prefix: str) -> pa.Array:
        drawn = np.minimum(random.zipf(1.3, count), most) - 1
        return pa.array([f"{prefix}{n}" for n in range(most)]).take(pa.array(drawn))

    def number(low: int, high: int) -> pa.Array:
        return pa.array(random.integers(low, high, count)).cast(pa.string())

    brand, other, city = zipf(20_000, "brand"), zipf(20_000, "brand"), zipf(5_000, "city")
    deep = random.integers(1, 4, count)
    digits = [pa.array(random.integers(0, KINDS, count)).cast(pa.string()) for _ in range(3)]
    kind = pc.binary_join_element_wise(
        "k", digits[0], *(pc.if_else(pa.array(deep > place), digits[place], "") for place in (1, 2)), ""
    )
    low, wide = random.integers(1, 1_000, count), random.integers(0, 2_000, count)
    least, most = pa.array(low).cast(pa.string()), pa.array(low + wide).cast(pa.string())
    day, hosts = number(10, 28), number(1, 255)
    forms = [
        ["brand = '", brand, "' AND price <= ", most, " AND city = '", city, "'"],
        ["is_a(kind, '", kind, "') AND price BETWEEN ", least, " AND ", most],
        ["is_a(kind, '", kind, "') AND brand IN ('", brand, "', '", other, "') AND stock > ", least],
        ["brand LIKE '", brand, "%' AND seen >= TIMESTAMP '2026-01-", day, " 00:00:00'"],
        ["city = '", city, "' AND (price < ", least, " OR stock > ", most, ")"],
        ["city <> '", city, "' AND is_a(kind, '", kind, "') AND price < ", most],
        ["host = '10.0.0.", hosts, "' AND price > ", least, " AND brand = '", brand, "'"],
        ["brand = '", brand, "' AND stock IS NULL AND seen < TIMESTAMP '2026-02-", day, " 00:00:00'"],
    ]
    texts = [pc.binary_join_element_wise(*form, "") for form in forms]
    chosen = pc.choose(pa.array(random.integers(0, len(forms), count)), *texts)
    return pa.table({"id": np.arange(count), "expression": chosen})


def sightings(count: int, seed: int = 9) -> pa.Table:
    """Return so many events of the space of alerts.

    >>> sightings(2).num_rows
    2
    """
    random = np.random.default_rng(seed)
    digits = random.integers(0, KINDS, (count, 3)).tolist()
    day = np.datetime64("2026-01-01T00:00:00", "us") + random.integers(0, 60 * 86_400, count).astype("m8[s]")
    return pa.table(
        {
            "kind": [f"k{a}{b}{c}" for a, b, c in digits],
            "brand": [f"brand{n}" for n in np.minimum(random.zipf(1.3, count), 20_000) - 1],
            "city": [f"city{n}" for n in np.minimum(random.zipf(1.3, count), 5_000) - 1],
            "price": random.integers(1, 3_000, count).astype(np.float64),
            "stock": pa.array(random.integers(0, 3_000, count), mask=random.random(count) < 0.2),
            "seen": pa.array(day, pa.timestamp("us", "UTC")),
            "host": [f"10.0.0.{n}" for n in random.integers(1, 255, count)],
        }
    )
