"""Shapes from text, WKT or GeoJSON: of bounded size and depth, and kept within so many bytes.

GEOS reads nested collections by recursion in C, so that a text nested some ten thousand deep ends the process; nothing
deeper than `DEEPEST` reaches it.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import shapely

from tocsin.errors import OperatorError

LONGEST = 4_000_000
"""Characters of a shape at most."""

DEEPEST = 64
"""Levels of parentheses, brackets and braces in a shape at most; a MULTIPOLYGON has three."""

KEPT_BYTES = 32 * 2**20
"""What shapes are kept for reuse take at most, by estimate."""

_EACH = 1_024
_A_COORDINATE = 48
_OPENS, _CLOSES = np.frombuffer(b"([{", np.uint8), np.frombuffer(b")]}", np.uint8)


def depth_of(text: str) -> int:
    """Return how deep parentheses, brackets and braces are nested in a text.

    >>> depth_of("POINT (1 2)"), depth_of("POLYGON ((0 0, 1 0, 1 1, 0 0))"), depth_of("none")
    (1, 2, 0)
    """
    read = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    steps = np.isin(read, _OPENS).astype(np.int32) - np.isin(read, _CLOSES)
    return int(np.cumsum(steps).max(initial=0))


def read_shape(text: str) -> Any:
    """Return the geometry of a WKT or GeoJSON text; OperatorError if it is none, too long or too deep.

    >>> read_shape("POINT (1 2)").x
    1.0
    """
    if len(text) > LONGEST:
        raise OperatorError(f"a shape has at most {LONGEST:,} characters, and this has {len(text):,}")
    if sum(map(text.count, "([{")) > DEEPEST and (depth := depth_of(text)) > DEEPEST:
        raise OperatorError(f"a shape is nested at most {DEEPEST} deep, and this is nested {depth:,} deep")
    try:
        found = shapely.from_geojson(text) if text.lstrip().startswith("{") else shapely.from_wkt(text)
    except (shapely.errors.GEOSException, UnicodeEncodeError, ValueError) as error:
        raise OperatorError(f"this is no geometry: {error}") from None
    if found is None:
        raise OperatorError("this is no geometry: the text is empty")
    return found


class Shapes:
    """The shapes of texts that were read last, within so many bytes."""

    def __init__(self, most: int = KEPT_BYTES, prepare: bool = False) -> None:
        self._most, self._prepare = most, prepare
        self._held: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, text: str) -> Any:
        """Return the shape of a text, read if it is not kept; OperatorError if it is none."""
        with self._lock:
            found = self._held.get(text)
            if found is not None:
                self._held.move_to_end(text)
                return found[0]
        shape = read_shape(text)
        if self._prepare:
            shapely.prepare(shape)
        size = _EACH + sys.getsizeof(text) + _A_COORDINATE * int(shapely.get_num_coordinates(shape))
        with self._lock:
            if text not in self._held and size <= self._most:
                self._held[text] = shape, size
                self.nbytes += size
                while self.nbytes > self._most:
                    _, (_, gone) = self._held.popitem(last=False)
                    self.nbytes -= gone
        return shape
