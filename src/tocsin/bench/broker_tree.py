"""A tree of brokers in one process: what covering saves between them, and that it loses nothing.

Every broker has clients of its own and a link to each neighbour. A link delivers messages in the order they were sent,
each as late as the schedule likes. A broker keeps, for each neighbour, the subscriptions it was told by it (its routing
table), and a `Neighbour` with all that come from elsewhere. A publication goes to each neighbour whose table has a
match, and to the clients whose subscription matches.

A subscription is acknowledged network-wide when every broker has been told of it or of one that covers it. A broker
acknowledges what it was told to the one who told it, as soon as all its other neighbours have acknowledged something
that covers it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import numpy as np

from tocsin.covering import Change, Neighbour, RelationGraph, Relations
from tocsin.index.boxes import Boxes, Int64s


@dataclass
class Link:
    """One direction of a link: what is under way, and what the sender knows the receiver to have acknowledged."""

    told: Neighbour
    acknowledged: set[int] = field(default_factory=set)
    under_way: deque[tuple[Any, ...]] = field(default_factory=deque)


@dataclass
class Publication:
    """A publication, who had to get it and who did: brokers with a matching subscription that was acknowledged
    network-wide when it was published, and brokers to whose clients it came."""

    number: int
    point: Int64s
    owed: set[int]
    reached: set[int] = field(default_factory=set)
    visited: set[int] = field(default_factory=set)


class Broker:
    """A node of the tree."""

    def __init__(self, number: int, neighbours: Iterable[int], graph: Callable[[], Relations]) -> None:
        self.number = number
        self.clients: dict[Hashable, Boxes] = {}
        self.tables: dict[int, dict[int, Boxes]] = {other: {} for other in neighbours}
        self.links = {other: Link(Neighbour(graph())) for other in self.tables}
        self.waiting: dict[tuple[Any, ...], int | None] = {}
        """Subscriptions not yet acknowledged by all others, and who told us (None for clients)."""

    def add(self, id: tuple[Any, ...], boxes: Boxes, source: int | None) -> None:
        """Take in a subscription from a client or a neighbour."""
        for other, link in self.links.items():
            if other != source:
                self._send(link, link.told.add(id, boxes))
        self.waiting[id] = source

    def remove(self, id: tuple[Any, ...], source: int | None) -> None:
        """Forget a subscription."""
        self.waiting.pop(id, None)
        for other, link in self.links.items():
            if other != source:
                self._send(link, link.told.remove(id))

    def acknowledged(self) -> list[tuple[tuple[Any, ...], int | None]]:
        """Return the subscriptions that all others have acknowledged by now, and wait for them no longer."""
        done = [(id, source) for id, source in self.waiting.items() if self._is_known(id, source)]
        for id, _ in done:
            del self.waiting[id]
        return done

    def _is_known(self, id: tuple[Any, ...], source: int | None) -> bool:
        others = (link for other, link in self.links.items() if other != source)
        return all(link.acknowledged.intersection(link.told.known_by(id)) for link in others)

    @staticmethod
    def _send(link: Link, messages: list[Any]) -> None:
        for message in messages:
            if message.kind == "withdraw":
                link.acknowledged.discard(message.key)
            link.under_way.append(tuple(message))


class Network:
    """Brokers in a tree, and the schedule of their messages.

    ``covering``: whether neighbours are told only what is not covered (else everything, each once).

    >>> from tocsin.index.boxes import Boxes
    >>> network = Network([None, 0, 1], Random(1))
    >>> network.subscribe(2, "wide", Boxes.of([{0: [(0, 9)]}]))
    >>> network.settle()
    >>> network.publish(0, np.array([5])).owed
    {2}
    >>> network.settle()
    >>> network.publications[0].reached, network.lost(), network.counts["forward"]
    ({2}, [], 2)
    """

    def __init__(
        self,
        parents: list[int | None],
        random: Random,
        *,
        covering: bool = True,
        graph: Callable[[], Relations] | None = None,
    ) -> None:
        pairs = [(child, parent) for child, parent in enumerate(parents) if parent is not None]
        beside: dict[int, list[int]] = {broker: [] for broker in range(len(parents))}
        for one, other in pairs:
            beside[one].append(other)
            beside[other].append(one)
        make = graph or (RelationGraph if covering else Flood)
        self.brokers = [Broker(number, beside[number], make) for number in range(len(parents))]
        self.random = random
        self.counts: Counter[str] = Counter()
        self.acknowledged: set[Hashable] = set()
        self.publications: list[Publication] = []
        self._home: dict[Hashable, int] = {}

    def subscribe(self, broker: int, id: Hashable, boxes: Boxes) -> None:
        """Let a client of a broker subscribe."""
        self._home[id] = broker
        self.brokers[broker].clients[id] = boxes
        self.brokers[broker].add(("client", id), boxes, None)
        self._acknowledge(broker)

    def unsubscribe(self, id: Hashable) -> None:
        """Let a client unsubscribe; publications under way are no longer owed to it."""
        broker = self._home.pop(id)
        boxes = self.brokers[broker].clients.pop(id)
        self.acknowledged.discard(id)
        self.brokers[broker].remove(("client", id), None)
        for publication in self.publications:
            if broker in publication.owed - publication.reached and _matches(boxes, publication.point):
                publication.owed = {
                    owner for owner in publication.owed if owner != broker or self._owes(broker, publication.point)
                }
        self._acknowledge(broker)

    def publish(self, broker: int, point: Int64s) -> Publication:
        """Let a client of a broker publish; it is owed to every broker with a match acknowledged by now."""
        owed = {number for number in range(len(self.brokers)) if self._owes(number, point)}
        publication = Publication(len(self.publications), point, owed)
        self.publications.append(publication)
        self._carry(broker, None, publication)
        return publication

    def step(self) -> bool:
        """Deliver the next message of some link, chosen at random; return whether there was one."""
        busy = [(broker, other) for broker in self.brokers for other, link in broker.links.items() if link.under_way]
        if not busy:
            return False
        sender, receiver = self.random.choice(busy)
        kind, *rest = sender.links[receiver].under_way.popleft()
        self.counts[kind] += 1
        self._deliver(kind, sender.number, receiver, rest)
        return True

    def settle(self) -> None:
        """Deliver everything that is under way."""
        while self.step():
            pass

    def lost(self) -> list[tuple[int, int]]:
        """Return the publications and brokers that should have met by now and have not."""
        return [(one.number, broker) for one in self.publications for broker in sorted(one.owed - one.reached)]

    def table_sizes(self) -> list[int]:
        """Return how many subscriptions of others each broker keeps."""
        return [sum(map(len, broker.tables.values())) for broker in self.brokers]

    def _owes(self, broker: int, point: Int64s) -> bool:
        clients = self.brokers[broker].clients
        return any(_matches(boxes, point) for id, boxes in clients.items() if id in self.acknowledged)

    def _deliver(self, kind: str, sender: int, receiver: int, rest: list[Any]) -> None:
        broker = self.brokers[receiver]
        if kind == "forward":
            key, boxes = rest
            broker.tables[sender][key] = boxes
            broker.add(("told", sender, key), boxes, sender)
        elif kind == "withdraw":
            del broker.tables[sender][rest[0]]
            broker.remove(("told", sender, rest[0]), sender)
        elif kind == "acknowledge":
            broker.links[sender].acknowledged.add(rest[0])
        else:
            self._carry(receiver, sender, rest[0])
        self._acknowledge(receiver)

    def _acknowledge(self, number: int) -> None:
        """Let a broker tell who told it of what all others know by now."""
        for id, source in self.brokers[number].acknowledged():
            if source is None:
                self.acknowledged.add(id[1])
            else:
                self.brokers[number].links[source].under_way.append(("acknowledge", id[2]))

    def _carry(self, number: int, source: int | None, publication: Publication) -> None:
        """Bring a publication to the clients of a broker and on to the neighbours whose tables match."""
        broker = self.brokers[number]
        publication.visited.add(number)
        if any(_matches(boxes, publication.point) for boxes in broker.clients.values()):
            publication.reached.add(number)
        for other, link in broker.links.items():
            if other != source and any(_matches(boxes, publication.point) for boxes in broker.tables[other].values()):
                link.under_way.append(("publish", publication))


class Flood:
    """No covering: every subscription is forwarded, equal ones too."""

    def __init__(self) -> None:
        self._fresh = count()
        self._node_of: dict[Hashable, int] = {}
        self._held: dict[int, Boxes] = {}

    def subscribe(self, id: Hashable, boxes: Boxes) -> Change:
        """Forward it."""
        node = self._node_of[id] = next(self._fresh)
        self._held[node] = boxes
        return Change([node], [])

    def unsubscribe(self, id: Hashable) -> Change:
        """Withdraw it."""
        node = self._node_of.pop(id)
        del self._held[node]
        return Change([], [node])

    def node(self, id: Hashable) -> int:
        """Return its key."""
        return self._node_of[id]

    def boxes(self, node: int) -> Boxes:
        """Return its boxes."""
        return self._held[node]

    def parents(self, node: int) -> list[int]:
        """Return nothing: none hangs on another."""
        return []


def simulate(brokers: int, steps: int, seed: int, *, covering: bool = True, pace: float | None = 3.0) -> dict[str, Any]:
    """Run a random tree of brokers through random commands, then let it settle and publish from everywhere.

    ``pace``: how many messages are delivered between two commands on average, None for all. Return what was sent, how
    large the tables are at the end, which publications were lost, and which visited a broker without need.

    >>> found = simulate(5, 60, seed=1)
    >>> found["lost"], found["needless"]
    ([], [])
    """
    random = Random(seed)
    parents = [None, *(random.randrange(child) for child in range(1, brokers))]
    network = Network(parents, Random(seed + 1), covering=covering)
    held: list[int] = []
    largest = 0
    for step in range(steps):
        drawn = random.random()
        if drawn < 0.45:
            network.subscribe(random.randrange(brokers), step, _drawn_boxes(random))
            held.append(step)
        elif drawn < 0.65 and held:
            network.unsubscribe(held.pop(random.randrange(len(held))))
        else:
            network.publish(random.randrange(brokers), _drawn_point(random))
        if pace is None:
            network.settle()
        for _ in range(int(network.random.expovariate(1 / pace)) if pace else 0):
            network.step()
        largest = max(largest, sum(network.table_sizes()))
    network.settle()
    first = len(network.publications)
    unacknowledged = [id for id in held if id not in network.acknowledged]
    for broker in range(brokers):
        network.publish(broker, _drawn_point(random))
    network.settle()
    needless = [
        (one.number, broker)
        for start, one in enumerate(network.publications[first:])
        for broker in sorted(one.visited - _between(parents, start, one.owed))
    ]
    return {
        "brokers": brokers,
        "covering": covering,
        "subscriptions": len(held),
        "publications": len(network.publications),
        "deliveries": sum(len(one.reached) for one in network.publications),
        **{kind: network.counts[kind] for kind in ("forward", "withdraw", "acknowledge", "publish")},
        "table": sum(network.table_sizes()),
        "largest": largest,
        "lost": network.lost(),
        "needless": needless,
        "unacknowledged": unacknowledged,
    }


def _between(parents: list[Any], start: int, ends: set[int]) -> set[int]:
    """Return the brokers on the ways from one broker to others."""

    def way_up(broker: int) -> list[int]:
        way = [broker]
        while parents[way[-1]] is not None:
            way.append(parents[way[-1]])
        return way

    found = {start}
    for end in ends:
        one, other = way_up(start), way_up(end)
        meeting = next(broker for broker in one if broker in other)
        found.update(one[: one.index(meeting) + 1], other[: other.index(meeting) + 1])
    return found


def _drawn_boxes(random: Random) -> Boxes:
    """Return one box or two, of few different ones, so that many are equal and many nested."""
    made: list[dict[int, list[tuple[int, int]]]] = []
    for _ in range(random.choice([1, 1, 1, 2])):
        middle, width = random.randrange(4, 12), random.choice([0, 1, 2, 4, 8])
        made.append({axis: [(middle - width, middle + width)] for axis in range(random.choice([1, 2, 2]))})
    return Boxes.of(made)


def _drawn_point(random: Random) -> Int64s:
    return np.array([random.randrange(0, 16), random.randrange(0, 16)])


def _matches(boxes: Boxes, point: Int64s) -> bool:
    """Return whether a point is in one of the boxes."""
    ends, axes, lows, highs = (part.tolist() for part in boxes)
    for box in range(len(boxes)):
        missed = {axes[at] for at in range(ends[box], ends[box + 1])}
        missed -= {axes[at] for at in range(ends[box], ends[box + 1]) if lows[at] <= point[axes[at]] <= highs[at]}
        if not missed:
            return True
    return False
