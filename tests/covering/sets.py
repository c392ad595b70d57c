"""Random subscription sets, small and nasty: many duplicates, deep nesting, several boxes, several intervals."""

from __future__ import annotations

import random as stdlib_random

from tocsin.index.boxes import HIGHEST, LOWEST, NULL, Boxes

Box = dict[int, list[tuple[int, int]]]

AXES = 3
ENDS = [NULL, LOWEST, -2, -1, 0, 1, 2, 3, 4, 5, 6, HIGHEST]


def interval(random: stdlib_random.Random) -> tuple[int, int]:
    low, high = sorted((random.randrange(len(ENDS)), random.randrange(len(ENDS))))
    return ENDS[low], ENDS[high]


def box(random: stdlib_random.Random) -> Box:
    made: Box = {}
    for axis in range(AXES):
        drawn = random.random()
        if drawn < 0.55:
            made[axis] = [interval(random)]
        elif drawn < 0.65:
            made[axis] = [(0, 0), (2, random.choice([2, 3])), (5, random.choice([5, HIGHEST]))]
    return made


def nested(random: stdlib_random.Random, count: int) -> list[Box]:
    """Return boxes each inside the one before."""
    return [{axis: [(-count + step, 2 * count - step)] for axis in range(AXES)} for step in range(count)]


def subscription(random: stdlib_random.Random, pool: list[list[Box]]) -> list[Box]:
    """Return the boxes of a subscription: half the time one seen before, or such a one with a box more."""
    if pool and random.random() < 0.5:
        chosen = random.choice(pool)
        return [*chosen, box(random)] if random.random() < 0.15 else list(chosen)
    made = [box(random) for _ in range(random.choice([1, 1, 1, 1, 2, 3, 0]))]
    pool.append(made)
    return made


def point(random: stdlib_random.Random) -> list[int]:
    return [random.choice(ENDS) for _ in range(AXES)]


def matches(boxes: list[Box], at: list[int]) -> bool:
    return any(all(any(low <= at[axis] <= high for low, high in spans) for axis, spans in one.items()) for one in boxes)


def as_boxes(boxes: list[Box]) -> Boxes:
    return Boxes.of(boxes)  # type: ignore[arg-type]
