"""Tocsin: content-based publish/subscribe. Standing subscriptions, matched exactly and at once.

>>> import tocsin
>>> matcher = tocsin.Matcher(tocsin.Space({"price": tocsin.Number(), "city": tocsin.Text()}))
>>> matcher.subscribe("cheap", "price <= 400 AND city = 'NYC'")
>>> matcher.match({"price": 350, "city": "NYC"})
['cheap']
"""

import gc
import sys
from typing import TYPE_CHECKING, Any

_was_collecting = gc.isenabled()
gc.disable()  # what is imported stays: looking for garbage in it, again and again, takes a sixth of the time
try:
    from tocsin.errors import TocsinError
    from tocsin.matcher import Matcher, Problem
    from tocsin.operators.operator import operator
    from tocsin.space import (
        Address,
        Boolean,
        Concept,
        Derived,
        Hierarchy,
        Interval,
        Number,
        Rates,
        Repeated,
        Space,
        Text,
        Time,
        Units,
        read_ontology,
    )
except KeyboardInterrupt:
    if not sys.argv or not sys.argv[0].endswith("tocsin"):
        raise
    raise SystemExit(130) from None  # the command line, interrupted before it has begun
finally:
    if not gc.get_freeze_count():  # both together: what there is counts as old, and is not looked through at once
        gc.freeze()
        gc.unfreeze()
    if _was_collecting:
        gc.enable()

if TYPE_CHECKING:
    from tocsin.subjects import Region, Subjects, Transitions

__all__ = [
    "Address",
    "Boolean",
    "Concept",
    "Derived",
    "Hierarchy",
    "Interval",
    "Matcher",
    "Number",
    "Problem",
    "Rates",
    "Region",
    "Repeated",
    "Space",
    "Subjects",
    "Text",
    "Time",
    "TocsinError",
    "Transitions",
    "Units",
    "__version__",
    "operator",
    "read_ontology",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import living publications when they are first asked for: who only matches does not wait for them."""
    if name in ("Region", "Subjects", "Transitions"):
        from tocsin import subjects

        return getattr(subjects, name)
    raise AttributeError(f"module 'tocsin' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__})
