"""What a subscription means: dimensions, types, axes and codes; events and expressions become points and boxes."""

from tocsin.space.space import Space
from tocsin.space.types import Address, Boolean, Dimension, Number, Repeated, Text, Time

__all__ = ["Address", "Boolean", "Dimension", "Number", "Repeated", "Space", "Text", "Time"]
