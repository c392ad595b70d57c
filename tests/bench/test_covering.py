"""The covering paper's experiments, small: every index sees the same graph, and what is reported is complete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin.bench.covering import INDEXES, commands, in_bulk, replay
from tocsin.bench.covering_pictures import draw_all
from tocsin.bench.covering_report import brokers_compared, mixed, page, parts_of, pruning, targets
from tocsin.covering import RelationGraph
from tocsin.index import Boxes


@pytest.mark.parametrize("k", [1, 3])
def test_every_index_runs_the_same_commands_to_the_same_end(k: int) -> None:
    given = commands(1_500, 2, 0.3)
    ends = [list(replay(name, given, k))[-1] for name in INDEXES]
    # who hangs on whom is free, and with it who is asked again; who is held is not
    assert len({end["live"] for end in ends}) == 1
    assert all(end["queries_subscribe"] == len(given.boxes) for end in ends)
    assert len({end["forwarded"] > 0 for end in ends}) == 1
    assert all(end["queries_unsubscribe"] <= 1_500 for end in ends)


def test_the_compiled_graph_forwards_what_the_graph_forwards() -> None:
    given = commands(800, 2, 0.0)
    (end,) = replay("scan", given)
    graph = RelationGraph(1, "scan", absorb=False, among="all")
    forwarded = 0
    for place in given.sequence.tolist():
        box: Boxes = given.boxes.take(np.array([place]))
        forwarded += len(graph.subscribe(place, box).forward)
    assert end["forwarded"] == forwarded == len(graph.roots())
    assert in_bulk(given)["roots"] <= forwarded


def test_figures_become_tables_and_pictures(tmp_path: Path) -> None:
    given = commands(600, 2, 0.2)
    found = {
        "modes": [
            {"load": "heavy", **row} for name in ("kd", "zcurve") for k in (1, 2) for row in replay(name, given, k)
        ],
        "comparison": [row for name in INDEXES for row in replay(name, given, stops=[300, 600])] + [in_bulk(given)],
        "mixed": mixed(400, 20),
        "pruning": pruning(300, 64),
        "brokers": brokers_compared(4, 60, (1,)),
    }
    titles = [title for title, _, _ in parts_of(found)]
    assert len(titles) == 7 and titles[0].startswith("Table I,")
    assert {what: met for what, _, _, met in targets(found)}["publications lost or astray, covering: yes"]
    about = {"command": "c", "date": "d", "revision": "r", "seed": 1, "processor": "p", "cores": 2, "memory_gb": 1}
    about |= {"system": "s", "python": "3", "packages": {"numpy": "2"}, "load": 0.1}
    pictures = draw_all(found, tmp_path)
    text = page(about, found, pictures)
    assert all(picture.stat().st_size > 1_000 and picture.name in text for picture in pictures)
    assert found["brokers"][0]["lost"] == 0 and "scan over it" in text
