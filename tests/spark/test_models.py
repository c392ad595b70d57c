"""What the models of publications and of meaning say holds on Spark too: some thousand pairs, in two jobs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.matcher.meaning_draws import KNOWN_GAPS as MEANING_GAPS
from tests.matcher.meaning_draws import Meanings
from tests.matcher.meaning_runs import MeaningRun
from tests.models.histories import seed
from tests.models.kinds import Moments, Truth
from tests.models.logic import sql
from tests.spark.model_leg import Case, match_on_spark, transitions_on_spark
from tests.subjects.publication_draws import KNOWN_GAPS, Histories
from tests.subjects.publication_runs import column, merged
from tests.subjects.witness_spaces import Refused, SpaceModel, Undocumented
from tests.subjects.witnesses import Model

PAIRS = [400, pytest.param(2_000, marks=pytest.mark.slow)]


class Wide(Meanings):
    """Histories without growth, saving and wall-clock times, whose last step matches many events."""

    def event_rows(self, forms: dict[str, str]) -> list[dict[str, Any]]:
        return [self.event(forms) for _ in range(12)]


def meaning_case(number: int, first: int, folder: Path) -> tuple[Case, set[tuple[int, int]], int] | None:
    """Return subscriptions and events of one space, what the model says of them, and how many pairs that are."""
    drawer = Wide(Random(f"{first}/spark/{number}"), MEANING_GAPS | {"growth", "saving"})
    spec = drawer.space()
    if any("timestamp_ntz" in str(each) for each in spec["dimensions"].values()):
        return None  # Spark does not take such a column from Arrow as it is
    history = {"space": spec, "engine": "adaptive", "steps": []}
    run = MeaningRun(history, folder)
    drawer.model = run.model
    texts: dict[int, str] = {}
    for row in [row for _ in range(4) for row in drawer.subscribe_many(3)["rows"]]:
        if run.taken(row["of"]):
            run.model.subscriptions[row["id"]] = row["of"]
            texts[row["id"]] = run.text(row["of"])
    forms = dict.fromkeys(run.model.kinds, "number")
    events = [event for event in drawer.event_rows(forms) if not run.model.read(event)[1]]
    if not events:
        return None
    expected = {(row, id) for row, event in enumerate(events) for id in run.model.answer(event)[0]}
    table = run.table({"forms": forms, "events": events, "types": 0, "whole": True})
    assert table is not None
    return Case(run.model.declare(), texts, table), expected, len(events) * len(texts)


@pytest.mark.parametrize("least", PAIRS)
def test_meaning_on_spark_is_that_of_the_model(spark: SparkSession, tmp_path: Path, least: int) -> None:
    first = seed(bool(MEANING_GAPS))
    print(f"seed {first} (TOCSIN_SEED={first} plays it again)")
    cases, expected, pairs = [], [], 0
    for number in range(1_000):
        made = meaning_case(number, first, tmp_path / "library")
        if made is not None:
            cases.append(made[0])
            expected.append(made[1])
            pairs += made[2]
        if pairs >= least:
            break
    found = match_on_spark(spark, tmp_path, cases)
    print(f"{pairs:,} pairs of event and subscription in {len(cases)} spaces")
    for case, here, there in zip(cases, found, expected, strict=True):
        wrong = sorted(here ^ there)[:3]
        texts = {id: case.subscriptions[id] for _, id in wrong}
        assert here == there, (wrong, texts, [case.events.slice(row, 1).to_pylist() for row, _ in wrong])


class Updates(Histories):
    """Updates of a few keys as a table: every row is a whole publication."""

    def drawn(self, rows: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return a history that mentions all values and constants, and the rows."""
        self.gaps |= {"folded texts", "patterns", "derived", "field synonyms", "string views", "nested"}
        spec = self.space("only", self.random.choice(["null", "any"]))
        self.spaces = {"only": SpaceModel(spec)}
        fields = self.fields("only", True)
        shapes = {
            name: "closed" if kind.ordered and not isinstance(kind, Truth) and self.chance(0.5) else "plain"
            for name, kind in fields.items()
        }
        made = []
        for at in range(rows):
            of = {name: self.cell(name, kind, shapes[name]) for name, kind in fields.items()}
            made.append({"key": self.random.choice("abc"), "at": at, "of": of})
        subscriptions = {id: self.expression(fields) for id in range(8)}
        steps = [{"do": "x", "regions": {"r": {"of": row["of"], "space": "only"}}} for row in made]
        steps += [{"do": "x", "regions": {"r": {"of": each, "space": "only"}}} for each in subscriptions.values()]
        history = {"spaces": {"only": spec}, "steps": steps, "subscriptions": subscriptions, "shapes": shapes}
        return history, made


def publication_case(number: int, first: int) -> tuple[Case, Counter[Any], int] | None:
    """Return updates of publications, and the transitions that the model tells of them."""
    drawer = Updates(Random(f"{first}/spark/{number}"), KNOWN_GAPS)
    history, rows = drawer.drawn(16)
    model = Model(history)
    space = model.spaces["only"]
    if any(isinstance(kind, Moments) and not kind.zoned for kind in space.kinds.values()):
        return None
    kept = []
    told: Counter[Any] = Counter()
    for id, expression in history["subscriptions"].items():
        region = {"region": {"of": expression, "space": "only"}}
        model.subs[id] = model.subscription(region, "all", None)
    for row in rows:
        try:
            regions = merged({}, {"region": {"of": row["of"], "space": "only"}})
            model.pubs[row["key"]] = model.publication(regions, "all", None)
        except (Refused, Undocumented):
            continue
        kept.append(row)
        for transition, key, id in model.step(pubs=[row["key"]]):
            told[(key, row["at"], id, transition)] += 1
    if not kept:
        return None
    columns: dict[str, Any] = {
        "key": [row["key"] for row in kept],
        "at": pa.array([row["at"] for row in kept], pa.int64()),
    }
    for name, shape in history["shapes"].items():
        columns[name] = column([row["of"][name] for row in kept], shape, space.kinds[name].arrow()[0])
    texts = {id: sql(each, lambda field: space.kinds[field]) for id, each in history["subscriptions"].items()}
    return Case(space.declare(), texts, pa.table(columns)), told, model.checked


@pytest.mark.parametrize("least", PAIRS)
def test_transitions_on_spark_are_those_of_the_model(spark: SparkSession, tmp_path: Path, least: int) -> None:
    first = seed(bool(KNOWN_GAPS))
    print(f"seed {first} (TOCSIN_SEED={first} plays it again)")
    cases, expected, pairs = [], [], 0
    for number in range(1_000):
        made = publication_case(number, first)
        if made is not None:
            cases.append(made[0])
            expected.append(made[1])
            pairs += made[2]
        if pairs >= least:
            break
    found = transitions_on_spark(spark, tmp_path, cases)
    print(f"{pairs:,} pairs of publication and subscription in {len(cases)} spaces")
    for case, here, there in zip(cases, found, expected, strict=True):
        assert here == there, (here - there, there - here, case.subscriptions, case.events.to_pylist())
