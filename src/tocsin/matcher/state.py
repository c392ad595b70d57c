"""What codes mean and who uses them: the axes with their books, the programs and the index, replaced as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.index import Index
from tocsin.index.boxes import Boxes, Int32s, Int64s
from tocsin.index.shared import create_shared
from tocsin.matcher.ranges import Ranges
from tocsin.operators.programs import Programs
from tocsin.space.axes import Axes, recoded
from tocsin.space.events import Encoder
from tocsin.space.filling import Planner
from tocsin.space.space import Space

Changes = dict[int, tuple[Int64s, Int64s]]
"""For each listed axis, the old labels of its book and the new ones."""


@dataclass(frozen=True, slots=True)
class State:
    """One consistent set of parts. A reader takes it once and sees nothing change under it but additions."""

    axes: Axes
    planner: Planner
    encoder: Encoder
    programs: Programs
    index: Index
    ranges: Ranges

    @classmethod
    def of(cls, axes: Axes, programs: Programs, index: Index) -> State:
        """Return the state of these parts."""
        return cls(axes, Planner(axes), encoder_of(axes, programs), programs, index, Ranges(axes))

    def tidied(
        self,
        program_of: Int32s,
        options: Mapping[str, Any],
        space: Space | None = None,
        condition_of: Int32s | None = None,
    ) -> State:
        """Return the same subscriptions with labels spread evenly and without keys and programs that nothing uses.

        ``program_of`` gives the program of each box number; ``options`` are those of the engine; ``space`` is the same
        space, whose trees may have grown; ``condition_of`` gives what operators must decide of each box number,
        and without it all of that is kept.
        """
        labelled = any(True for _ in self.axes.listed()) or any(True for _ in self.axes.concepts())
        if not len(self.programs) and not len(self.programs.conditions) and not labelled:
            return self
        numbers, boxes = self.index.contents()
        programs_in_use = program_of[numbers]
        leaf_axis, *leaf_sides = self.programs.bounds()
        bounds = [(boxes.axis, boxes.low), (boxes.axis, boxes.high), *((leaf_axis, side) for side in leaf_sides)]
        used = {
            axis: np.unique(np.concatenate([side[where == axis] for where, side in bounds]))
            for axis, _ in self.axes.listed()
        }
        axes, changes = self.axes.relabelled(used, space or self.axes.space)
        low, high = (_recoded(boxes.axis, side, changes) for side in (boxes.low, boxes.high))
        leaf_low, leaf_high = (_recoded(leaf_axis, side, changes) for side in leaf_sides)
        programs = self.programs.only(np.unique(programs_in_use[programs_in_use >= 0]), leaf_low, leaf_high)
        programs.conditions = self.programs.conditions
        if condition_of is not None:
            programs.conditions = programs.conditions.only(np.unique(condition_of[numbers]))
        index = create_shared(self.index.name, **options)
        if len(numbers):
            index.insert(numbers, Boxes(boxes.offsets, boxes.axis, low, high))
        return State.of(axes, programs, index)


def encoder_of(axes: Axes, programs: Programs) -> Encoder:
    """Return what encodes events for an index on these axes, and for these programs and their operators."""
    return Encoder(axes, programs.atoms.paths, programs.conditions.paths)


def _recoded(axis: Int32s, side: Int64s, changes: Changes) -> Int64s:
    """Return bounds with the labels of their axes changed."""
    changed = side.copy()
    for number, (old, new) in changes.items():
        where = np.flatnonzero(axis == number)
        changed[where] = recoded(side[where], old, new)
    return changed
