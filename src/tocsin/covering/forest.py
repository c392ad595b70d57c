"""A relation graph read as a forest: each node below the first of those it hangs on, with sizes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from tocsin.covering.graph import Graph


@dataclass(frozen=True, slots=True)
class Tree:
    """A node with what is below it. ``size``: how many subscriptions are in the tree, its own owners among them;
    ``nodes``: how many different ones; ``height``: nodes on its longest path."""

    node: int
    owners: tuple[Hashable, ...]
    children: tuple[Tree, ...]
    size: int
    nodes: int
    height: int

    def walk(self, deepest: int | None = None) -> Iterator[tuple[int, Tree]]:
        """Yield every tree within, with its depth, parents first."""
        waiting = [(0, self)]
        while waiting:
            depth, tree = waiting.pop()
            yield depth, tree
            if deepest is None or depth < deepest:
                waiting.extend((depth + 1, child) for child in reversed(tree.children))

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain values."""
        built: dict[int, dict[str, Any]] = {}
        for _, tree in reversed(list(self.walk())):
            children = [built.pop(child.node) for child in tree.children]
            built[tree.node] = {
                "node": tree.node,
                "owners": list(tree.owners),
                "size": tree.size,
                "height": tree.height,
                "children": children,
            }
        return built[self.node]


def forest(graph: Graph) -> list[Tree]:
    """Return the trees of a graph, the largest first. Subscriptions that can never match are in none.

    >>> from tocsin.covering import RelationGraph
    >>> from tocsin.index.boxes import Boxes
    >>> graph = RelationGraph()
    >>> _ = graph.subscribe_many("abc", Boxes.of([{0: [(0, 9)]}, {0: [(1, 2)]}, {0: [(1, 2)]}]))
    >>> [(tree.owners, tree.size, tree.height) for tree in forest(graph)]
    [(('a',), 3, 2)]
    """
    below: dict[int, list[int]] = {}
    order: list[int] = []
    waiting = graph.roots()
    while waiting:
        node = waiting.pop()
        order.append(node)
        below[node] = [child for child in graph.children(node) if graph.parents(child)[0] == node]
        waiting.extend(below[node])
    built: dict[int, Tree] = {}
    for node in reversed(order):
        children = sorted((built.pop(child) for child in below[node]), key=lambda tree: (-tree.size, tree.node))
        owners = tuple(graph.owners(node))
        built[node] = Tree(
            node,
            owners,
            tuple(children),
            len(owners) + sum(child.size for child in children),
            1 + sum(child.nodes for child in children),
            1 + max((child.height for child in children), default=0),
        )
    return sorted(built.values(), key=lambda tree: (-tree.size, tree.node))
