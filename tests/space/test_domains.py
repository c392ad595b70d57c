"""Intervals that hold no value: of a single subscription, looked at one by one, as of many together."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes
from tocsin.language.symbolic import AxisKey
from tocsin.space import Address, Boolean, Concept, Number, Space, Text, Time
from tocsin.space.axes import codec_of
from tocsin.space.codes import Codec, ValueProblem
from tocsin.space.domains import possible
from tocsin.space.listed import Listed

SPACE = Space(
    {
        "truth": Boolean(),
        "double": Number(),
        "whole": Number("int64"),
        "long": Number("decimal(30, 2)"),
        "text": Text(),
        "time": Time("date"),
        "address": Address(),
        "concept": Concept({"a": ["b", {"c": ["d"]}], "e": []}),
    }
)
KEYS = {"text": ["", "a", "b", "ba"], "long": [0, 1, -5], "address": ["::", "1.2.3.4", "ffff::"]}


def codecs() -> list[Codec]:
    found = [codec_of(SPACE, AxisKey(path)) for path in SPACE.paths()]
    for name, codec in zip(SPACE, found, strict=True):
        if isinstance(codec, Listed):
            for value in KEYS[name]:
                codec.place(value)
    return found


def drawn_box(draw: random.Random, held: list[Codec]) -> dict[int, list[tuple[int, int]]]:
    box = {}
    for axis in sorted(draw.sample(range(len(held)), draw.randint(1, 3))):
        codec = held[axis]
        if isinstance(codec, Listed):
            names = list(SPACE)
            known = [codec.code(value) + step for value in KEYS[names[axis]] for step in (-1, 0, 1)]
        else:
            known = [-(2**62), -3, -2, -1, 0, 1, 2, 3, 4, 2**62]
        ends = sorted(draw.choices(known, k=2))
        low = draw.choice([LOWEST, NULL, ends[0], ends[0]])
        high = draw.choice([HIGHEST, ends[1], ends[1]])
        box[axis] = [(low, high)]
    return box


@pytest.mark.parametrize("settings", [{}, {"nulls": False}, {"spans": False}, {"spans": False, "grows": True}])
def test_one_box_is_judged_as_among_many(settings: dict[str, bool]) -> None:
    draw, held = random.Random(16), codecs()
    drawn = [drawn_box(draw, held) for _ in range(400)]
    together, many = possible(Boxes.of(drawn), held, **settings)
    alone = [possible(Boxes.of([box]), held, **settings) for box in drawn]
    assert [row for row, (kept, _) in enumerate(alone) if len(kept)] == together.tolist()
    assert 0 < len(together) < len(drawn)
    assert np.concatenate([boxes.low for _, boxes in alone]).tolist() == many.low.tolist()
    assert np.concatenate([boxes.high for _, boxes in alone]).tolist() == many.high.tolist()


def test_a_text_that_is_not_valid_is_refused_by_its_codec() -> None:
    text = codec_of(SPACE, AxisKey(("text",)))
    text.check("anything")
    with pytest.raises(ValueProblem, match="not valid text"):
        text.check("\ud800")
