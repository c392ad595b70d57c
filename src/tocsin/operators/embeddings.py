"""Nearness of embeddings: a column of vectors against constant vectors, by matrix products over the batch."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.operators.operator import Asked, operator

Floats = npt.NDArray[np.float64]

_DENSE = 8
_NEAR = 1e-9
_SHORT, _LONG = 1e-140, 1e140  # the squares of such lengths are doubles without loss


def vector_of(text: Any) -> Floats:
    """Return the unit vector of a constant such as ``'[0.1, 0.7]'``; ValueError if it is none.

    >>> vector_of("[3, 4]").tolist()
    [0.6, 0.8]
    """
    try:
        found = np.asarray(json.loads(text), np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ValueError("a vector is a text such as '[0.1, -0.7, 0.2]'") from None
    unit = _unit(found) if found.ndim == 1 and len(found) else None
    if unit is None:
        raise ValueError("a vector has finite numbers that are not all 0")
    return unit


def _check(*constants: Any) -> str | None:
    if constants[0] is not None:
        return "the vector is a field"
    try:
        vector_of(constants[1])
    except ValueError as error:
        return str(error)
    least = constants[2] if len(constants) > 2 else 0
    return "the least similarity is a number" if isinstance(least, (str, bool)) or least is None else None


def _events(asked: Asked, size: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the unit vectors of events, and which events have one of that size."""
    vectors = np.zeros((len(asked.columns[0]), size))
    good = np.zeros(len(vectors), bool)
    for at, given in enumerate(asked.columns[0]):
        vector = _numbers(given) if isinstance(given, (list, tuple)) and len(given) == size else None
        unit = None if vector is None else _unit(vector)
        if unit is not None:
            vectors[at], good[at] = unit, True
    return vectors, good


def _unit(vector: Floats) -> Floats | None:
    """Return a vector of length 1 in the same direction, None if there is none; of very long and short ones too."""
    with np.errstate(all="ignore"):
        length = float(np.linalg.norm(vector))
        if not (_SHORT < length < _LONG):
            most = float(np.max(np.abs(vector), initial=0.0))
            if not (0 < most < np.inf):  # zero, infinite, or no number
                return None
            vector = vector / most
            length = float(np.linalg.norm(vector))
        return np.asarray(vector / length)


def _numbers(given: Any) -> Floats | None:
    """Return a list of numbers as doubles, None if it is something else: that harms no other event of the batch."""
    try:
        return np.asarray(given, np.float64) if None not in given else None
    except (TypeError, ValueError, OverflowError):
        return None


def _exact(events: Floats, constants: Floats) -> Floats:
    """Return the products row by row, which do not depend on what else is in the batch."""
    found: Floats = np.einsum("ij,ij->i", events, constants)
    return found


def _by_size(asked: Asked) -> Any:
    """Yield the pairs asked about vectors of each size: their places, events, which of them have one, constants."""
    distinct, where = np.unique(asked.which, return_inverse=True)
    sizes = np.array([len(asked.prepared.values[which][0]) for which in distinct.tolist()])[where]
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        vectors, good = _events(asked, size)
        yield places, vectors, good, [asked.prepared.values[which] for which in asked.which[places].tolist()]


@operator(
    form="bulk",
    parameters=("vector", "constant", "least"),
    prepare=lambda constant, least: (vector_of(constant), float(least)),
    check=_check,
)
def resembles(asked: Asked) -> npt.NDArray[np.int8]:
    """``resembles(vector, '[...]', least)``: the cosine between the vectors is at least so much.

    >>> from tocsin import Matcher, Number, Repeated, Space
    >>> matcher = Matcher(Space({"meaning": Repeated(Number())}))
    >>> matcher.subscribe("like it", "resembles(meaning, '[1, 0]', 0.9)")
    >>> matcher.match({"meaning": [5.0, 0.5]}), matcher.match({"meaning": [1.0, 1.0]})
    (['like it'], [])
    """
    state = np.full(len(asked.rows), -1, np.int8)
    for places, vectors, good, constants in _by_size(asked):
        least = np.array([each for _, each in constants])
        rows = asked.rows[places]
        if len(places) >= _DENSE * len(vectors):
            distinct, where = np.unique(asked.which[places], return_inverse=True)
            matrix = np.stack([asked.prepared.values[which][0] for which in distinct.tolist()])
            cosine = (vectors @ matrix.T)[rows, where]
            close = np.flatnonzero(np.abs(cosine - least) < _NEAR)  # a product's last bits depend on its shape
            if len(close):
                cosine[close] = _exact(vectors[rows[close]], np.stack([constants[at][0] for at in close]))
        else:
            cosine = _exact(vectors[rows], np.stack([vector for vector, _ in constants]))
        state[places] = np.where(good[rows], cosine >= least, -1)
    return state


@operator(
    form="bulk",
    parameters=("vector", "constant"),
    outputs={"s": float},
    prepare=lambda constant: (vector_of(constant), 0.0),
    check=_check,
)
def similarity(asked: Asked) -> Floats:
    """``similarity(vector, '[...]', :s)``: the cosine between the vectors.

    >>> from tocsin import Matcher, Number, Repeated, Space
    >>> matcher = Matcher(Space({"meaning": Repeated(Number())}))
    >>> matcher.subscribe("opposite", "similarity(meaning, '[1, 0]', :s) AND :s < 0")
    >>> matcher.match({"meaning": [-2.0, 1.0]}), matcher.match({"meaning": [2.0, 1.0]})
    (['opposite'], [])
    """
    value = np.full(len(asked.rows), np.nan)
    for places, vectors, good, constants in _by_size(asked):
        rows = asked.rows[places]
        cosine = _exact(vectors[rows], np.stack([vector for vector, _ in constants]))
        value[places] = np.where(good[rows], cosine, np.nan)
    return value
