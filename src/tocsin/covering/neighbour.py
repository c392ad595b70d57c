"""What a broker tells one neighbour: the subscriptions that the neighbour must know, and no more.

A broker has one `Neighbour` for each link. It adds to it every subscription that comes from elsewhere (its own clients,
its other links) and sends the messages it gets in return down the link, in order. The link must keep that order; how
long messages take does not matter. At every moment the neighbour then knows subscriptions that cover all that were
added before the messages it has received, because what is uncovered goes out before what covered it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple, Protocol

from tocsin.covering.graph import Change
from tocsin.covering.relation import RelationGraph
from tocsin.index.boxes import Boxes


class Message(NamedTuple):
    """Tell the neighbour to take in a subscription, by its boxes, or to forget it. ``key`` names it on this link."""

    kind: Literal["forward", "withdraw"]
    key: int
    boxes: Boxes | None


class Relations(Protocol):
    """What a link asks of its graph. Every `Graph` has it."""

    def subscribe(self, id: Hashable, boxes: Boxes) -> Change:
        """Add a subscription; return what to forward and withdraw."""
        ...

    def unsubscribe(self, id: Hashable) -> Change:
        """Remove a subscription; return what to forward and withdraw."""
        ...

    def node(self, id: Hashable) -> int:
        """Return the key of a subscription."""
        ...

    def boxes(self, node: int) -> Boxes:
        """Return the boxes under a key."""
        ...

    def parents(self, node: int) -> list[int]:
        """Return the keys that the one under this key hangs on."""
        ...


class Neighbour:
    """The subscriptions that one neighbour is told of, in a relation graph of their own.

    >>> link = Neighbour()
    >>> [(message.kind, message.key) for message in link.add("wide", Boxes.of([{0: [(0, 9)]}]))]
    [('forward', 0)]
    >>> link.add("narrow", Boxes.of([{0: [(3, 4)]}]))
    []
    >>> [(message.kind, message.key) for message in link.remove("wide")]
    [('forward', 1), ('withdraw', 0)]
    """

    def __init__(self, graph: Relations | None = None) -> None:
        self.graph: Relations = RelationGraph() if graph is None else graph

    def add(self, id: Hashable, boxes: Boxes) -> list[Message]:
        """Add a subscription that is not the neighbour's; return what to send."""
        return self._messages(self.graph.subscribe(id, boxes))

    def remove(self, id: Hashable) -> list[Message]:
        """Remove a subscription; return what to send."""
        return self._messages(self.graph.unsubscribe(id))

    def known_by(self, id: Hashable) -> list[int]:
        """Return the keys that the neighbour was told of and that cover a subscription, its own among them."""
        graph = self.graph
        found: set[int] = set()
        waiting = [graph.node(id)]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            parents = graph.parents(node)
            if not parents:
                found.add(node)
            waiting.extend(parent for parent in parents if parent not in seen)
            seen.update(parents)
        return sorted(found)

    def _messages(self, change: Change) -> list[Message]:
        forward = [Message("forward", key, self.graph.boxes(key)) for key in change.forward]
        return forward + [Message("withdraw", key, None) for key in change.withdraw]
