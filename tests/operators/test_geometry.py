"""Points and areas against plain formulas: great circles by the haversine, areas by shapely, one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import tocsin

EARTH = 6_371_008.8
SPACE = tocsin.Space({"lon": tocsin.Number(), "lat": tocsin.Number()})
CORNERS = [
    (180.0, 0.0), (-180.0, 0.0), (179.9999, 10.0), (-179.9999, 10.0), (0.0, 90.0), (0.0, -90.0), (123.0, 90.0),
    (-57.0, 89.9999), (123.0, -89.9999), (180.0, 90.0), (-180.0, -90.0), (0.0, 0.0), (-0.0, -0.0), (45.0, 88.9),
]  # fmt: skip


def far(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the metres between two points over the sphere."""
    (lon, lat), (to_lon, to_lat) = ((math.radians(x), math.radians(y)) for x, y in (one, other))
    half = math.sin((to_lat - lat) / 2) ** 2
    half += math.cos(lat) * math.cos(to_lat) * math.sin((to_lon - lon) / 2) ** 2
    return 2 * EARTH * math.asin(math.sqrt(min(half, 1.0)))


def points_of(rng: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """Draw points everywhere, at the corners, and near the poles and the 180th meridian."""
    found = [*CORNERS, *zip(rng.uniform(-180, 180, count), rng.uniform(-90, 90, count), strict=True)]
    near = rng.normal(0, 0.5, (count, 2))
    for x, y in near.tolist():
        found.append((math.copysign(180.0 - abs(x), y), 40 * y))
        found.append((rng.uniform(-180, 180), math.copysign(90.0 - abs(y), x)))
    return [(float(np.clip(x, -180, 180)), float(np.clip(y, -90, 90))) for x, y in found]


def pairs_of(matcher: tocsin.Matcher, points: list[tuple[float, float]]) -> set[tuple[int, Any]]:
    table = pa.table({"lon": [x for x, _ in points], "lat": [y for _, y in points]})
    found = matcher.match_batch(table)
    return set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_nearby_holds_of_the_points_that_are_near_and_of_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, places = points_of(rng, 40), points_of(rng, 12)
    reaches = [float(10 ** rng.uniform(2, 7.4)) for _ in places]
    matcher = tocsin.Matcher(SPACE)
    for number, ((x, y), reach) in enumerate(zip(places, reaches, strict=True)):
        call = f"nearby(lon, lat, 'POINT ({x!r} {y!r})', {reach!r})"
        matcher.subscribe(number, call)
        matcher.subscribe(1_000 + number, f"NOT {call}")
    wanted = {
        (row, number + (0 if far(point, place) <= reach else 1_000))
        for row, point in enumerate(points)
        for number, (place, reach) in enumerate(zip(places, reaches, strict=True))
        if abs(far(point, place) - reach) > 1e-3
    }
    unsure = {
        (row, number + other)
        for row, point in enumerate(points)
        for number, (place, reach) in enumerate(zip(places, reaches, strict=True))
        for other in (0, 1_000)
        if abs(far(point, place) - reach) <= 1e-3
    }
    found = pairs_of(matcher, points)
    assert found - unsure == wanted
    for row in range(0, len(points), 7):
        point = {"lon": points[row][0], "lat": points[row][1]}
        assert set(matcher.match(point)) == {id for each, id in found if each == row}


@pytest.mark.parametrize("seed", range(3))
def test_within_and_distance_are_what_shapely_says_of_each_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = points_of(rng, 30)
    shapes = [shapely.Point(*rng.choice(points)).buffer(float(rng.uniform(0.1, 60))) for _ in range(10)]
    shapes += [shapely.box(-180, -90, 180, 90), shapely.box(179, -90, 180, 90), shapely.box(-180, 89, 180, 90)]
    matcher = tocsin.Matcher(SPACE)
    for number, shape in enumerate(shapes):
        matcher.subscribe(number, f"within(lon, lat, '{shape.wkt}')")
        matcher.subscribe(1_000 + number, f"NOT within(lon, lat, '{shape.wkt}')")
        matcher.subscribe(2_000 + number, f"distance(lon, lat, '{shape.wkt}', :d) AND :d <= 30")
    wanted = set()
    for row, (x, y) in enumerate(points):
        for number, shape in enumerate(map(shapely.from_wkt, [shape.wkt for shape in shapes])):
            wanted.add((row, number + (0 if shapely.contains_xy(shape, x, y) else 1_000)))
            if shapely.distance(shape, shapely.Point(x, y)) <= 30:
                wanted.add((row, 2_000 + number))
    assert pairs_of(matcher, points) == wanted
    for row in range(0, len(points), 7):
        point = {"lon": points[row][0], "lat": points[row][1]}
        assert set(matcher.match(point)) == {id for each, id in wanted if each == row}


@pytest.mark.parametrize("point", [(181.0, 0.0), (-180.5, 0.0), (0.0, 90.5), (float("nan"), 0.0), (0.0, float("inf"))])
def test_what_is_no_place_on_earth_is_neither_near_nor_far(point: tuple[float, float]) -> None:
    matcher = tocsin.Matcher(SPACE)
    for reach in (10.0, 3e7):
        matcher.subscribe(f"near {reach}", f"nearby(lon, lat, 'POINT (-179 0)', {reach!r})")
        matcher.subscribe(f"far {reach}", f"NOT nearby(lon, lat, 'POINT (-179 0)', {reach!r})")
    assert matcher.match({"lon": point[0], "lat": point[1]}) == []
    assert pairs_of(matcher, [point, (-179.0, 0.0)]) == {(1, "near 10.0"), (1, "near 30000000.0")}


@pytest.mark.parametrize("kind", ["double", "int64", "decimal(12, 3)"])
def test_bounds_lose_no_point_whatever_the_type_of_the_fields(kind: str) -> None:
    rng = np.random.default_rng(5)
    space = tocsin.Space({"lon": tocsin.Number(kind), "lat": tocsin.Number(kind)})
    matcher = tocsin.Matcher(space)
    places = rng.integers(-60, 60, (20, 2)).tolist()
    for number, (x, y) in enumerate(places):
        matcher.subscribe(number, f"within(lon, lat, '{shapely.box(x, y, x + 7, y + 3).wkt}')")
    for x, y in rng.integers(-60, 60, (40, 2)).tolist():
        wanted = {number for number, (a, b) in enumerate(places) if a < x < a + 7 and b < y < b + 3}
        assert set(matcher.match({"lon": x, "lat": y})) == wanted
