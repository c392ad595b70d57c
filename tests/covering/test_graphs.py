"""Relation graphs: covering never changes a result, whatever comes and goes."""

from __future__ import annotations

import random as stdlib_random
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

from tests.covering.sets import Box, as_boxes, box, interval, matches, nested, point, subscription
from tests.index.test_containment import holds
from tocsin.covering import Change, FullGraph, Graph, Neighbour, RelationGraph, StrictPoset, forest, maximal_boxes
from tocsin.errors import BoxError, CoveringError, TocsinError
from tocsin.index import HIGHEST, LOWEST, NULL, Boxes

GRAPHS: dict[str, Callable[[], Graph]] = {
    "G_1": RelationGraph,
    "G_1, as printed": lambda: RelationGraph(1, "scan", absorb=False, among="all"),
    "G_1, kd": lambda: RelationGraph(1, "kd", overflow=2, underflow=1),
    "G_2": lambda: RelationGraph(2, "kd"),
    "G_3, zcurve, as printed": lambda: RelationGraph(3, "zcurve", absorb=False),
    "G*": lambda: FullGraph("scan"),
    "strict poset": lambda: StrictPoset("scan"),
}
SETS = {name: 4_000 if name == "G_1" else 1_000 for name in GRAPHS}
"""How many random sets are tried in each run: 10,000 together."""

every_graph = pytest.mark.parametrize("name", GRAPHS)


def test_ten_thousand_sets_are_tried_in_every_run() -> None:
    assert sum(SETS.values()) == 10_000


def covers(one: list[Box], other: list[Box]) -> bool:
    return all(any(holds(outer, inner) for outer in one) for inner in other)


class World:
    """A graph beside what it should mean: the subscriptions there are, and what a neighbour has been told."""

    def __init__(self, graph: Graph, random: stdlib_random.Random) -> None:
        self.graph, self.random = graph, random
        self.held: dict[int, list[Box]] = {}
        self.told: dict[int, list[Box]] = {}
        self.ids = count()
        self.pool: list[list[Box]] = [[one] for one in nested(random, 6)]
        self.thorough = random.random() < 0.1

    def tell(self, change: Change) -> None:
        """Act as the neighbour would, and check at each step that nothing that is held is uncovered."""
        for key in change.forward:
            assert key not in self.told
            boxes = self.graph.boxes(key)
            spans = [slice(*boxes.offsets[i : i + 2]) for i in range(len(boxes))]
            self.told[key] = [
                {
                    int(axis): [
                        (int(low), int(high))
                        for a, low, high in zip(boxes.axis[span], boxes.low[span], boxes.high[span], strict=True)
                        if a == axis
                    ]
                    for axis in np.unique(boxes.axis[span])
                }
                for span in spans
            ]
        for key in change.withdraw:
            del self.told[key]
            if self.thorough:
                for held in self.held.values():
                    assert not held or any(covers(one, held) for one in self.told.values())
            self.check_a_point(exactly=False)

    def subscribe(self, at_once: int) -> None:
        made = {next(self.ids): subscription(self.random, self.pool) for _ in range(at_once)}
        flat = [one for boxes in made.values() for one in boxes]
        of = np.repeat(np.arange(at_once), [len(boxes) for boxes in made.values()])
        change = self.graph.subscribe_many(made, as_boxes(flat), of)
        self.held |= made
        self.tell(change)

    def unsubscribe(self, at_once: int) -> None:
        gone = self.random.sample(sorted(self.held), min(at_once, len(self.held)))
        for id in gone:
            del self.held[id]
        self.tell(self.graph.unsubscribe_many(gone))

    def check_a_point(self, exactly: bool = True) -> None:
        at = point(self.random)
        told, held = (any(matches(boxes, at) for boxes in some.values()) for some in (self.told, self.held))
        assert told == held if exactly else told >= held

    def check(self) -> None:
        """The neighbour matches what the subscriptions match, and edges are what they claim."""
        assert sorted(self.told) == sorted(self.graph.roots())
        for _ in range(4):
            self.check_a_point()
        if not self.thorough:
            return
        alive = {id: boxes for id, boxes in self.held.items() if boxes}
        for id in list(alive)[:6]:
            node = self.graph.node(id)
            for parent in self.graph.parents(node):
                above = alive[self.graph.owners(parent)[0]]  # type: ignore[index]
                assert covers(above, alive[id]) and not covers(alive[id], above)
                assert node in self.graph.children(parent)
            assert (node in self.told) == (not self.graph.parents(node))
        trees = forest(self.graph)
        assert sum(tree.size for tree in trees) == len(alive) == len(self.graph) - (len(self.held) - len(alive))


def run(name: str, sets: range) -> None:
    for seed in sets:
        random = stdlib_random.Random(seed)
        world = World(GRAPHS[name](), random)
        for _ in range(random.choice([2, 3, 4, 8])):
            if world.held and random.random() < 0.4:
                world.unsubscribe(random.choice([1, 1, 2, 5]))
            else:
                world.subscribe(random.choice([1, 1, 2, 4]))
            world.check()
        world.unsubscribe(len(world.held))
        assert not world.told and not len(world.graph) and not world.graph.nodes


@every_graph
def test_covering_never_changes_a_result(name: str) -> None:
    run(name, range(SETS[name]))


@pytest.mark.slow
@every_graph
def test_covering_never_changes_a_result_at_length(name: str) -> None:
    run(name, range(SETS[name], SETS[name] + 3_000))


@every_graph
def test_equal_subscriptions_do_not_lose_each_other(name: str) -> None:
    """The counterexample to the algorithm as printed: s2 and s3 equal, both under s1, which leaves."""
    graph = GRAPHS[name]()
    assert graph.subscribe("s1", Boxes.of([{0: [(0, 9)]}])) == Change([0], [])
    assert graph.subscribe("s2", Boxes.of([{0: [(3, 4)]}])) == Change([], [])
    assert graph.subscribe("s3", Boxes.of([{0: [(3, 4)], 1: [(NULL, HIGHEST)]}])) == Change([], [])
    assert graph.unsubscribe("s1") == Change([1], [0])
    assert graph.unsubscribe("s2") == Change([], [])
    assert graph.owners(1) == ["s3"]
    assert graph.unsubscribe("s3") == Change([], [1])


@every_graph
def test_what_is_uncovered_is_forwarded_before_what_covered_it_is_withdrawn(name: str) -> None:
    graph = GRAPHS[name]()
    graph.subscribe_many("abcd", Boxes.of([{0: [(0, 9)]}, {0: [(1, 8)]}, {0: [(2, 3)]}, {0: [(5, 9)]}]))
    assert graph.roots() == [0]
    change = graph.unsubscribe("a")
    assert sorted(change.forward) == [1, 3] and change.withdraw == [0]
    assert graph.unsubscribe_many("bcd") == Change([], change.forward)


@every_graph
def test_bad_input_leaves_the_graph_intact(name: str) -> None:
    graph = GRAPHS[name]()
    graph.subscribe("a", Boxes.of([{0: [(0, 9)]}]))
    one = Boxes.of([{0: [(1, 2)]}])
    bad: list[tuple[type[TocsinError], str, Callable[[], object]]] = [
        (CoveringError, "already", lambda: graph.subscribe("a", one)),
        (CoveringError, "twice", lambda: graph.subscribe_many(["b", "b"], Boxes.of([{}, {}]))),
        (CoveringError, "no subscription 'b'", lambda: graph.unsubscribe("b")),
        (CoveringError, "twice", lambda: graph.unsubscribe_many(["a", "a"])),
        (CoveringError, "no longer", lambda: graph.unsubscribe_many(["a", "b"])),
        (BoxError, "empty or out of form", lambda: graph.subscribe_many("bc", Boxes.of([{}, {0: [(2, 1)]}]))),
        (CoveringError, "ascending", lambda: graph.subscribe_many("bc", one, [2])),
        (CoveringError, "ascending", lambda: graph.subscribe_many("bc", Boxes.of([{}, {}]), [1, 0])),
        (CoveringError, "ascending", lambda: graph.subscribe_many("bc", one, [-1])),
        (CoveringError, "no node 7", lambda: graph.boxes(7)),
        (CoveringError, "no subscription", lambda: graph.node("b")),
    ]
    for kind, said, call in bad:
        with pytest.raises(kind, match=said):
            call()
        assert len(graph) == graph.nodes == 1 and graph.roots() == [0] and graph.owners(0) == ["a"]
    assert graph.unsubscribe("a") == Change([], [0])
    with pytest.raises(CoveringError, match="no longer"):
        graph.unsubscribe("a")


@every_graph
def test_infinite_boxes_and_subscriptions_that_never_match(name: str) -> None:
    graph = GRAPHS[name]()
    nothing = Boxes.of([])
    assert graph.subscribe("never", nothing) == Change([], [])
    assert graph.subscribe("nor this", nothing) == Change([], [])
    assert graph.subscribe("all", Boxes.of([{}])) == Change([1], [])
    assert graph.subscribe("all the same", Boxes.of([{4: [(NULL, HIGHEST)]}])) == Change([], [])
    assert graph.subscribe("values", Boxes.of([{4: [(LOWEST, HIGHEST)]}])) == Change([], [])
    assert [graph.owners(node) for node in graph.never()] == [["never", "nor this"]]
    assert [tree.size for tree in forest(graph)] == [3]
    assert graph.unsubscribe("never") == graph.unsubscribe("nor this") == Change([], [])
    assert graph.unsubscribe_many(["all", "all the same"]) == Change([2], [1])


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "1"])
def test_k_is_a_number_from_1_on(k: object) -> None:
    with pytest.raises(CoveringError, match="from 1 on"):
        RelationGraph(k)  # type: ignore[arg-type]
    with pytest.raises(CoveringError, match="among is"):
        RelationGraph(2, among="roots")


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_node_hangs_on_k_others_or_on_all_that_cover_it(k: int) -> None:
    random = stdlib_random.Random(k)
    graph = RelationGraph(k, "kd", among="all")
    boxes = {id: {0: [interval(random)], 1: [interval(random)]} for id in range(120)}
    for id, one in boxes.items():
        graph.subscribe(id, as_boxes([one]))
    first = {id: graph.owners(graph.node(id))[0] for id in boxes}
    for id, one in boxes.items():
        before = {first[other] for other in boxes if other < first[id] and holds(boxes[other], one)} - {first[id]}  # type: ignore[operator]
        parents = graph.parents(graph.node(id))
        assert min(k, len(before)) <= len(parents) or graph.node(id) in graph.roots()
        assert len(set(parents)) == len(parents)


def test_full_graph_and_strict_poset_hold_every_relation() -> None:
    random = stdlib_random.Random(5)
    full, strict = FullGraph(), StrictPoset()
    boxes = {id: [box(random)] for id in range(90)}
    for graph in (full, strict):
        graph.subscribe_many(list(boxes)[:40], as_boxes([boxes[id][0] for id in range(40)]))
        for id in range(40, 90):
            graph.subscribe(id, as_boxes(boxes[id]))
        graph.unsubscribe_many(range(0, 90, 3))
    left = [id for id in boxes if id % 3]
    for one in left:
        for other in left:
            above, below = full.node(one), full.node(other)
            real = above != below and covers(boxes[one], boxes[other])
            assert (above in full.parents(below)) == real
            path = strict.node(one) in strict._ancestors(strict.node(other))
            assert path == real
    for one in left:
        node = strict.node(one)
        for parent in strict.parents(node):
            assert not any(parent in strict._ancestors(between) for between in strict.parents(node))


def test_a_forest_reads_with_sizes_however_deep() -> None:
    graph = RelationGraph()
    deep = 3_000
    for id in range(deep):
        graph.subscribe(id, Boxes.of([{0: [(id, 10_000 - id)]}]))
    assert graph.roots() == [0]
    chain = StrictPoset("scan")
    chain.subscribe_many(range(200), Boxes.of([{0: [(id, 10_000 - id)]} for id in range(200)]))
    (tree,) = forest(chain)
    assert (tree.size, tree.height, len(list(tree.walk()))) == (200, 200, 200)
    assert tree.to_json()["children"][0]["size"] == 199
    assert [depth for depth, _ in tree.walk()] == list(range(200))
    assert [depth for depth, _ in tree.walk(deepest=2)] == [0, 1, 2]


def test_a_neighbour_knows_only_the_outermost_that_cover_a_subscription() -> None:
    link = Neighbour()
    told = {id: link.add(id, Boxes.of([{0: [span]}])) for id, span in enumerate([(0, 9), (1, 8), (20, 30), (2, 3)])}
    outer, other = (message.key for id in (0, 2) for message in told[id])
    assert not told[1] and not told[3]
    assert [link.known_by(id) for id in range(4)] == [[outer], [outer], [other], [outer]]


@every_graph
def test_the_numbers_of_boxes_that_are_gone_are_used_again(name: str) -> None:
    graph = GRAPHS[name]()
    for turn in range(50):
        graph.subscribe(turn, Boxes.of([{0: [(turn, turn + 5)]}, {1: [(turn, turn)]}]))
        if turn >= 3:
            graph.unsubscribe(turn - 3)
    assert int(max(np.max(graph._numbers[graph.node(id)]) for id in range(47, 50))) < 20


def test_the_boxes_that_no_other_contains_hold_what_all_hold() -> None:
    random = stdlib_random.Random(11)
    for _ in range(30):
        boxes = [box(random) for _ in range(25)]
        kept = maximal_boxes(as_boxes(boxes))
        whole, roots = (RelationGraph(1, "scan", among="all") for _ in range(2))
        whole.subscribe_many(range(len(boxes)), as_boxes(boxes))
        assert len(kept) == len(whole.roots())
        roots.subscribe_many(range(len(kept)), kept)
        assert roots.subscribe_many(range(100, 125), as_boxes(boxes)) == Change([], [])


@every_graph
def test_a_subscription_is_covered_if_each_of_its_boxes_is(name: str) -> None:
    graph = GRAPHS[name]()
    graph.subscribe("two", Boxes.of([{0: [(0, 9)]}, {0: [(5, 20)]}]))
    assert graph.subscribe("both inside", Boxes.of([{0: [(1, 2)]}, {0: [(15, 16)]}])) == Change([], [])
    assert graph.subscribe("one inside both", Boxes.of([{0: [(6, 7)]}, {1: [(0, 1)]}])) == Change([2], [])
    assert graph.parents(1) == [0] and graph.parents(2) == []
