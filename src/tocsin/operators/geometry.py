"""Geometry with shapely: points within areas, distances, shapes that intersect.

Areas are written as WKT (``'POLYGON ((...))'``) or GeoJSON. The bounds of an area go to the index as intervals on the
fields of the point, so that of a hundred thousand areas only the few around a point are looked at, all in one call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from tocsin.errors import OperatorError
from tocsin.operators.operator import Asked, operator
from tocsin.operators.shapes import Shapes

EARTH = 6_371_008.8
"""The mean radius of the earth in metres."""

_LONGITUDES, _LATITUDES = 180.0, 90.0
_DENSE = 16
_MARGIN = 1.0001


_areas = Shapes(prepare=True)
"""Areas on their way from the text of a subscription to what is prepared of it."""

_event_shapes = Shapes()
"""Shapes of events, which often come again: a route, a district."""


def shape_of(text: str) -> Any:
    """Return the geometry of a WKT or GeoJSON text of a subscription; OperatorError if it is none.

    >>> shape_of("POINT (1 2)").x
    1.0
    """
    return _areas[text]


def _area_check(*arguments: Any) -> str | None:
    if any(each is not None for each in arguments[:-1]):
        return "the point, or the shape, is given by fields"
    return _refusal(arguments[-1])


def _refusal(text: Any) -> str | None:
    if not isinstance(text, str):
        return "an area is a text such as 'POLYGON ((0 0, 1 0, 1 1, 0 0))'"
    try:
        found = shape_of(text)
    except OperatorError as error:
        return str(error)
    return None if shapely.is_valid(found) else f"the geometry is not valid: {shapely.is_valid_reason(found)}"


def _numbers(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the numbers of a field as doubles, of whichever type its dimension is."""
    return np.asarray(column, np.float64)


def _points(asked: Asked) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the coordinates of the point of each pair."""
    x, y = (_numbers(column)[asked.rows] for column in asked.columns)
    return x, y


def _area_bounds(constants: list[tuple[Any, ...]], position: int) -> npt.NDArray[np.float64]:
    """Return the bounds of areas in one direction: the field at position 0 is x, at 1 it is y."""
    shapes = np.array([shape_of(each[2]) for each in constants], object)
    found: npt.NDArray[np.float64] = shapely.bounds(shapes)[:, [position, position + 2]]
    return found


def _prepared_area(*constants: Any) -> Any:
    return shape_of(constants[-1])


@operator(
    form="bulk",
    parameters=("x", "y", "area"),
    prepare=_prepared_area,
    check=_area_check,
    bounding=_area_bounds,
    bounded=(0, 1),
)
def within(asked: Asked) -> npt.NDArray[np.int8]:
    """``within(x, y, area)``: the point lies inside the area, not on its edge, on a plane.

    An area over the 180th meridian is two, one to each side of it, as GeoJSON has it: a MULTIPOLYGON.

    >>> from tocsin import Matcher, Number, Space
    >>> matcher = Matcher(Space({"lon": Number(), "lat": Number()}))
    >>> matcher.subscribe("triangle", "within(lon, lat, 'POLYGON ((0 0, 4 0, 0 4, 0 0))')")
    >>> matcher.match({"lon": 1, "lat": 1}), matcher.match({"lon": 3, "lat": 3})
    (['triangle'], [])
    """
    x, y = _points(asked)
    inside: npt.NDArray[np.bool_] = shapely.contains_xy(asked.prepared.array[asked.which], x, y)
    return np.where(np.isnan(x) | np.isnan(y), -1, inside).astype(np.int8)


@operator(form="bulk", parameters=("x", "y", "place"), outputs={"d": float}, prepare=_prepared_area, check=_area_check)
def distance(asked: Asked) -> npt.NDArray[np.float64]:
    """``distance(x, y, place, :d)``: how far the point is from the place, in the units of the fields.

    >>> from tocsin import Matcher, Number, Space
    >>> matcher = Matcher(Space({"x": Number(), "y": Number()}))
    >>> matcher.subscribe("near", "distance(x, y, 'POINT (0 0)', :d) AND :d < 10")
    >>> matcher.match({"x": 3, "y": 4}), matcher.match({"x": 30, "y": 40})
    (['near'], [])
    """
    x, y = _points(asked)
    with np.errstate(all="ignore"):  # infinities, and places that are empty, have no distance
        found: npt.NDArray[np.float64] = shapely.distance(shapely.points(x, y), asked.prepared.array[asked.which])
    return found


def _nearby_check(lon: Any, lat: Any, place: Any, metres: Any) -> str | None:
    refused = _area_check(lon, lat, place)
    if refused is not None:
        return refused
    found = shape_of(place)
    if shapely.get_type_id(found) != 0 or shapely.is_empty(found):
        return "a place is a text such as 'POINT (-73.9 40.7)', longitude first"
    if not (abs(found.x) <= _LONGITUDES and abs(found.y) <= _LATITUDES):
        return f"a longitude is from -180 to 180 and a latitude from -90 to 90, not {found.x:g} and {found.y:g}"
    if isinstance(metres, (bool, str)) or metres is None or not float(metres) >= 0:
        return "the distance is a number of metres"
    return None


def _nearby_bounds(constants: list[tuple[Any, ...]], position: int) -> npt.NDArray[np.float64]:
    """Return the degrees within which alone a point can be near; all of them around the poles and the date line."""
    places = np.array([shape_of(each[2]) for each in constants], object)
    metres = np.array([float(each[3]) for each in constants])
    lon, lat = shapely.get_x(places), shapely.get_y(places)
    reach = np.degrees(metres / EARTH) * _MARGIN + 1e-9
    if position == 1:
        return np.stack([lat - reach, lat + reach], axis=1)
    polar = np.abs(lat) + reach >= 89.0
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = np.sin(np.radians(np.minimum(reach, 90.0))) / np.cos(np.radians(np.clip(lat, -89.0, 89.0)))
        spread = np.degrees(np.arcsin(np.minimum(wide, 1.0))) * _MARGIN + 1e-9
    around = polar | (reach >= 90.0) | (np.abs(lon) + spread > 180.0)
    return np.stack([np.where(around, -np.inf, lon - spread), np.where(around, np.inf, lon + spread)], axis=1)


@operator(
    form="bulk",
    parameters=("lon", "lat", "place", "metres"),
    prepare=lambda place, metres: (shape_of(place).x, shape_of(place).y, float(metres)),
    check=_nearby_check,
    bounding=_nearby_bounds,
    bounded=(0, 1),
)
def nearby(asked: Asked) -> npt.NDArray[np.int8]:
    """``nearby(lon, lat, 'POINT (lon lat)', metres)``: the point is within so many metres over the sphere.

    Of a longitude beyond -180 to 180, or a latitude beyond -90 to 90, it is unknown.

    >>> from tocsin import Matcher, Number, Space
    >>> matcher = Matcher(Space({"lon": Number(), "lat": Number()}))
    >>> matcher.subscribe("statue", "nearby(lon, lat, 'POINT (-74.0445 40.6892)', 1000)")
    >>> matcher.match({"lon": -74.04, "lat": 40.69}), matcher.match({"lon": -73.97, "lat": 40.78})
    (['statue'], [])
    """
    x, y = _points(asked)
    places = asked.prepared.matrix[asked.which]
    lon, lat, there, above = (np.radians(side) for side in (x, y, places[:, 0], places[:, 1]))
    with np.errstate(invalid="ignore"):  # infinities, which are no place
        half = np.sin((above - lat) / 2) ** 2 + np.cos(lat) * np.cos(above) * np.sin((there - lon) / 2) ** 2
    near = 2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1.0))) <= places[:, 2]
    on_earth = (np.abs(x) <= _LONGITUDES) & (np.abs(y) <= _LATITUDES)
    return np.where(on_earth, near, -1).astype(np.int8)


@operator(form="bulk", parameters=("shape", "area"), prepare=_prepared_area, check=_area_check)
def intersects(asked: Asked) -> npt.NDArray[np.int8]:
    """``intersects(shape, area)``: the shape in a text field, as WKT or GeoJSON, touches the area.

    Where an event is asked about many areas, one tree over all of them answers.

    >>> from tocsin import Matcher, Space, Text
    >>> matcher = Matcher(Space({"path": Text()}))
    >>> matcher.subscribe("crossing", "intersects(path, 'POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))')")
    >>> matcher.match({"path": "LINESTRING (-1 2, 9 2)"}), matcher.match({"path": "POINT (9 9)"})
    (['crossing'], [])
    """
    shapes = np.array([_shape_or_none(text) for text in asked.columns[0]], object)
    readable = np.array([shape is not None for shape in shapes], bool)
    if len(asked.rows) < _DENSE * len(shapes):
        holds = shapely.intersects(asked.prepared.array[asked.which], shapes[asked.rows])
    else:
        rows, which = _tree(asked).query(shapes, predicate="intersects")
        keys = np.sort(rows.astype(np.int64) << 32 | which)
        wanted = asked.rows << 32 | asked.which
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        holds = keys[at] == wanted if len(keys) else np.zeros(len(wanted), bool)
    return np.where(readable[asked.rows], holds, -1).astype(np.int8)


def _shape_or_none(text: Any) -> Any:
    try:
        return _event_shapes[text] if isinstance(text, str) else None
    except OperatorError:
        return None


def _tree(asked: Asked) -> shapely.STRtree:
    """Return the tree over all areas, built anew when there are more."""
    prepared = asked.prepared
    with prepared.lock:
        areas = prepared.array
        count, tree = prepared.memo.get("tree", (0, None))
        if tree is None or count != len(areas):
            tree = shapely.STRtree(areas)
            prepared.memo["tree"] = len(areas), tree
    return tree
