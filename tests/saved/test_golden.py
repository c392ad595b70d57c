"""What was saved once is opened for ever, or refused: the form of saved matchers does not change unnoticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.saved.golden import EVENTS, GOLDEN, NOTE, SUBSCRIPTIONS, golden, long_name
from tocsin import Matcher

ADVICE = "the saved form has changed: raise the version, and write the golden one anew (python -m tests.saved.golden)"


def outline(directory: Path) -> dict[str, Any]:
    """Return what a manifest says, without what differs from save to save."""
    manifest = json.loads((directory / "manifest.json").read_text())
    body, notes = manifest["body"], manifest["body"]["notes"]
    return {
        "manifest": [manifest["format"], manifest["version"], sorted(manifest), sorted(body)],
        "notes": [notes["tocsin_matcher"], sorted(notes), notes["axes"], notes["space"]],
        "arrays": {name: [one["kind"], len(one["shape"])] for name, one in body["arrays"].items()},
    }


def test_the_golden_matcher_answers_as_it_did_when_it_was_saved() -> None:
    matcher = Matcher.load(GOLDEN, operators=[long_name])
    assert {id: matcher[id] for id in matcher} == SUBSCRIPTIONS, ADVICE
    assert matcher.note == NOTE
    assert matcher.never() == ["never"]
    for event, expected in EVENTS:
        assert sorted(matcher.match(event)) == expected, event


def test_the_golden_matcher_can_be_changed(tmp_path: Path) -> None:
    matcher = Matcher.load(GOLDEN, operators=[long_name])
    matcher.unsubscribe("cheap")
    matcher.subscribe("new", "city = 'NYCx' OR is_a(kind, 'thing')")
    matcher.grow("kind", {"laptop": ["ultrabook"]})
    matcher.save(tmp_path)
    again = Matcher.load(tmp_path, operators=[long_name])
    assert sorted(again.match({"price": 350, "city": "NYC", "kind": "ultrabook"})) == ["cheap again", "new"]


def test_what_is_saved_today_has_the_form_of_the_golden_one(tmp_path: Path) -> None:
    golden().save(tmp_path, note=NOTE)
    assert outline(tmp_path) == outline(GOLDEN), ADVICE
