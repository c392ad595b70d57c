"""Relation graphs over containment: which subscriptions make others redundant, and what to tell a neighbour of them.

This room imports `index` and nothing else of ours. It knows subscriptions as boxes and ids; what an id or an axis means
is the caller's.
"""

from tocsin.covering.forest import Tree, forest
from tocsin.covering.graph import Change, Graph
from tocsin.covering.neighbour import Message, Neighbour, Relations
from tocsin.covering.posets import FullGraph, StrictPoset
from tocsin.covering.relation import RelationGraph, maximal_boxes
from tocsin.covering.subscriptions import with_residuals

__all__ = [
    "Change",
    "FullGraph",
    "Graph",
    "Message",
    "Neighbour",
    "RelationGraph",
    "Relations",
    "StrictPoset",
    "Tree",
    "forest",
    "maximal_boxes",
    "with_residuals",
]
