"""The functions of `pyarrow.compute`, which is imported when the first of them is used.

That import wraps some three hundred functions and takes longer than a first match. Rooms that a first match passes
through say ``from tocsin import arrow as pc`` and write ``pc.equal(...)`` as usual, within functions.

>>> from tocsin import arrow as pc
>>> pc.add(1, 2).as_py()
3
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a function, and keep it, so that it is looked up here once only."""
    import pyarrow.compute

    function = globals()[name] = getattr(pyarrow.compute, name)
    return function
