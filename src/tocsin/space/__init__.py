"""What a subscription means: dimensions, types, axes and codes; events and expressions become points and boxes."""

from tocsin.space.hierarchy import Hierarchy
from tocsin.space.intervals import Interval
from tocsin.space.ontology import read_ontology
from tocsin.space.space import Space
from tocsin.space.types import Address, Boolean, Concept, Dimension, Number, Repeated, Text, Time

__all__ = [
    "Address",
    "Boolean",
    "Concept",
    "Dimension",
    "Hierarchy",
    "Interval",
    "Number",
    "Repeated",
    "Space",
    "Text",
    "Time",
    "read_ontology",
]
