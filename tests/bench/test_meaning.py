"""The paper's workload means the same as expressions and as boxes; a run becomes targets and a page."""

from __future__ import annotations

from tocsin.bench import meaning
from tocsin.bench.concept_trees import ConceptWorkload
from tocsin.bench.meaning import Figure
from tocsin.index import create
from tocsin.matcher import Matcher


def test_a_matcher_finds_the_pairs_that_an_index_finds() -> None:
    workload = ConceptWorkload(3)
    index = create("scan")
    index.insert(*workload.boxes(3_000))
    pairs = index.overlap(workload.queries(400))
    expected = set(zip(pairs.rows.tolist(), pairs.numbers.tolist(), strict=True))
    assert expected
    for engine in meaning.ENGINES:
        matcher = Matcher(meaning.paper_space(workload), engine)
        matcher.subscribe_many(meaning.paper_subscriptions(workload, 3_000))
        found = matcher.match_batch(meaning.paper_events(workload, 400))
        assert set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected


def test_what_is_slow_is_no_target_met() -> None:
    run = [
        Figure("9 concepts, depth 2, 5 x is_a", "matching", 49_999.0, "events/s"),
        Figure("9 concepts, depth 2, 5 x is_a", "matches", 2.0, "an event"),
        Figure("9 concepts, depth 2, 5 x NOT is_a, city", "matching", 1.0, "events/s"),
        Figure("Table 1, height 5, 7 subscriptions, bitmap", "matching", 3.0, "events/s"),
        Figure("Table 1, height 5, 7 subscriptions, adaptive", "matching", 6.0, "events/s"),
    ]
    assert [one.met for one in meaning.targets(run)] == [False, None, True]
