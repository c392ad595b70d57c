"""Polygon subscriptions: geofences around cities, matched against points."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from tocsin.matcher import Matcher
from tocsin.space import Number, Space

CITIES = 300
_DEGREE = 111.2
_TIMES = 4


@dataclass(frozen=True, slots=True)
class Polygons:
    """What was measured: events a second of the processor, Arrow in and out; matches an event, and the loading."""

    subscriptions: int
    events: int
    events_per_second: float
    matches_per_event: float
    load_seconds: float
    checked: int

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def polygon_texts(count: int, seed: int) -> list[str]:
    """Return areas as WKT: 5 to 40 corners, radius lognormal around 500 m (50 m to 20 km), around 300 cities.

    >>> polygon_texts(1, 1)[0].startswith("POLYGON")
    True
    """
    rng = np.random.default_rng(seed)
    x, y = _around_cities(count, rng, seed)
    radius = np.clip(np.exp(rng.normal(np.log(0.5), 1.0, count)), 0.05, 20.0) / _DEGREE
    found = []
    for at in range(count):
        corners = int(rng.integers(5, 41))
        angle = np.sort(rng.random(corners)) * 2 * np.pi
        reach = radius[at] * rng.uniform(0.6, 1.0, corners)
        ring = np.stack([x[at] + reach * np.cos(angle), y[at] + reach * np.sin(angle)], axis=1)
        found.append(shapely.Polygon(ring))
    return [str(text) for text in shapely.to_wkt(shapely.buffer(np.array(found, object), 0), rounding_precision=12)]


def points(count: int, seed: int) -> pa.Table:
    """Return events with a longitude and a latitude, around the same cities."""
    x, y = _around_cities(count, np.random.default_rng(seed + 1), seed)
    return pa.table({"lon": x, "lat": y})


def measure(count: int, events: int, seed: int = 1, check: int = 200) -> Polygons:
    """Load polygons, match points, and compare some of them with all polygons tested one by one."""
    texts = polygon_texts(count, seed)
    matcher = Matcher(Space({"lon": Number(), "lat": Number()}))
    begun = time.perf_counter()
    matcher.subscribe_many(
        pa.table({"id": pa.array(range(count)), "expression": [f"within(lon, lat, '{text}')" for text in texts]})
    )
    loaded = time.perf_counter() - begun
    table = points(events, seed)
    matcher.match_batch(table.slice(0, 8192))
    matcher.match_batch(table.slice(0, 8192))
    spent = np.inf
    for _ in range(_TIMES):  # all threads count, and one may still plan what was loaded
        begun = time.process_time()
        found = matcher.match_batch(table)
        spent = min(spent, time.process_time() - begun)
    shapes = shapely.from_wkt(np.array(texts, object))
    rows, ids = (np.asarray(found[name]) for name in ("event", "subscription"))
    for row in range(min(check, events)):
        inside = shapely.contains_xy(shapes, table["lon"][row].as_py(), table["lat"][row].as_py())
        if not np.array_equal(np.sort(ids[rows == row]), np.flatnonzero(inside)):
            raise AssertionError(f"event {row} differs from testing every polygon")
    return Polygons(count, events, events / spent, len(rows) / events, loaded, min(check, events))


def _around_cities(count: int, rng: np.random.Generator, seed: int) -> tuple[Any, Any]:
    cities = np.random.default_rng(seed + 1000).random((CITIES, 2)) * [50.0, 22.0] + [-122.0, 26.0]
    chosen = cities[rng.integers(0, CITIES, count)]
    spread = rng.normal(0.0, 15.0 / _DEGREE, (count, 2))
    return chosen[:, 0] + spread[:, 0], chosen[:, 1] + spread[:, 1]
