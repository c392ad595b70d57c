"""Tocsin: content-based publish/subscribe. Standing subscriptions, matched exactly and at once.

>>> import tocsin
>>> matcher = tocsin.Matcher(tocsin.Space({"price": tocsin.Number(), "city": tocsin.Text()}))
>>> matcher.subscribe("cheap", "price <= 400 AND city = 'NYC'")
>>> matcher.match({"price": 350, "city": "NYC"})
['cheap']
"""

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
