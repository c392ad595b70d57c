"""What a subscription means: dimensions, types, axes and codes; events and expressions become points and boxes."""

from tocsin.space.hierarchy import Hierarchy
from tocsin.space.intervals import Interval
from tocsin.space.ontology import read_ontology
from tocsin.space.space import Space
from tocsin.space.types import Address, Boolean, Concept, Derived, Dimension, Number, Repeated, Text, Time
from tocsin.space.units import Rates, Units

__all__ = [
    "Address",
    "Boolean",
    "Concept",
    "Derived",
    "Dimension",
    "Hierarchy",
    "Interval",
    "Number",
    "Rates",
    "Repeated",
    "Space",
    "Text",
    "Time",
    "Units",
    "read_ontology",
]
