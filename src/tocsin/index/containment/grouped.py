"""The containment path of `adaptive`: boxes grouped by the axes they constrain, and a tree of blocks for each group.

See `kernels/containment/grouped.py` for the structure. Compared with `kd`: nodes know the bounds of all dimensions
rather than one, boxes are compared 32 at a time, and boxes on other axes than the box asked about are never looked at.
Where many boxes are asked about at once, groups that would be searched widely are asked by sheet (`sheets.py`). A group
is built anew, evenly, when it has doubled by boxes that its tree could not divide, or lost half of its boxes;
tables are packed when most of them is waste.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tocsin.index.blocks import longer
from tocsin.index.boxes import Int32s
from tocsin.index.containment.held import Asked
from tocsin.index.containment.sheets import Sheets
from tocsin.kernels.containment.boxes import Question, Rows
from tocsin.kernels.containment.grouped import (
    AXES,
    BLOCKS,
    DEEP,
    GONE,
    GROUPS,
    HELD,
    LANES,
    MANY,
    MARK,
    NODES,
    ROOT,
    SLOTS,
    Groups,
    build_group,
    insert_slots,
    mark_of,
    remove_slots,
    schema_keys,
)

BULK = 256
"""So many boxes at once for one group, and as many as it has, build it anew."""


class Grouped(Asked):
    """Boxes in trees, a tree for each set of axes.

    >>> from tocsin.index.boxes import Boxes
    >>> index = Grouped()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> index.contain(Boxes.of([{0: [(2, 2)]}, {1: [(2, 2)]}]), k=1)
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "adaptive"

    def __init__(self) -> None:
        super().__init__()
        self._group_of: dict[bytes, int] = {}
        self._built: dict[int, int] = {}
        self._groups = _tables(0, 64, 64)
        self._sheets = Sheets()

    def _added(self, slots: Int32s) -> None:
        if len(self._number_of) > len(self._groups.group_of):
            self._groups = self._groups._replace(group_of=longer(self._groups.group_of, len(self._number_of), -1))
        every = slots
        slots = self._grouped(slots)
        self._sheets.added(self._groups, self._rows, every)
        done = 0
        while (done := insert_slots(self._groups, self._rows, slots, done)) < len(slots):
            self._grow(1.5)
        deep = int(self._groups.state[DEEP])
        if deep >= 0:
            self._groups.state[DEEP] = -1
            if self._groups.groups[deep, HELD] >= 2 * self._built.get(deep, 64):
                self._build(deep, self._slots_of(deep))

    def _removing(self, slots: Int32s) -> None:
        remove_slots(self._groups, self._rows, slots)
        self._sheets.removing(self._groups, slots)
        table = self._groups.groups
        self._number_of[slots] = -1
        for group in np.unique(self._groups.group_of[slots]).tolist():
            if table[group, GONE] > max(64, table[group, HELD]):
                self._build(group, self._slots_of(group))

    def _asked(self, question: Question) -> Any:
        return self._sheets.ask(self._groups, self._rows, self._live_slots, question, self.tally)

    def _structure(self) -> tuple[Any, ...]:
        return (*self._groups, *self._sheets.arrays())

    def _grouped(self, slots: Int32s) -> Int32s:
        """Find or make the group of each box; build those of which the most is new, and return the other boxes."""
        rows = self._rows
        keys, first = schema_keys(rows, slots)
        numbers = np.empty(len(first), np.int32)
        for place, at in enumerate(first.tolist()):
            slot = slots[at]
            axes = np.unique(rows.axis[rows.start[slot] : rows.start[slot] + rows.length[slot]])
            known = self._group_of.get(axes.tobytes())
            numbers[place] = self._new_group(axes, slot) if known is None else known
        self._groups.group_of[slots] = numbers[keys]
        if len(slots) < BULK:
            return slots
        order = np.argsort(numbers[keys], kind="stable")
        begins = np.flatnonzero(np.diff(numbers[keys][order], prepend=-1))
        left = []
        for part in np.split(slots[order], begins[1:]):
            group = int(self._groups.group_of[part[0]])
            held = int(self._groups.groups[group, HELD])
            if len(part) >= BULK and len(part) >= held:
                self._build(group, np.concatenate([self._slots_of(group, part), part]))
            else:
                left.append(part)
        return np.concatenate([np.empty(0, np.int32), *left])

    def _new_group(self, axes: Int32s, slot: Any) -> int:
        groups = self._groups
        group = int(groups.state[GROUPS])
        used = int(groups.groups[:group, MANY].sum())
        if group == len(groups.groups):
            groups = groups._replace(groups=longer(groups.groups, 2 * group, 0))
        if used + len(axes) > len(groups.axes):
            groups = groups._replace(axes=longer(groups.axes, 2 * (used + len(axes)), 0))
        groups.axes[used : used + len(axes)] = axes
        record = {AXES: used, MANY: len(axes), ROOT: -1, HELD: 0, GONE: 0, MARK: mark_of(self._rows, slot)}
        groups.groups[group, list(record)] = list(record.values())
        groups.state[GROUPS] += 1
        self._groups = groups
        self._group_of[axes.tobytes()] = group
        return group

    def _slots_of(self, group: int, without: Int32s | None = None) -> Int32s:
        live = self._live_slots()
        live = live[self._groups.group_of[live] == group]
        return live if without is None else np.setdiff1d(live, without).astype(np.int32)

    def _build(self, group: int, slots: Int32s) -> None:
        """Build a group anew, and pack everything if the trees it had before are half of all."""
        self._built[group] = len(slots)
        while not build_group(self._groups, group, self._rows, slots):
            self._grow(1.5, len(slots) // 16 * 2, 2 * int(self._groups.groups[group, MANY]))
        if int(self._groups.state[NODES]) > 1_024 and self._groups.state[BLOCKS] > 8 * (self._live // LANES + 64):
            self._pack()

    def _pack(self) -> None:
        """Build all groups into new tables."""
        groups = self._groups
        live = self._live_slots()
        order = live[np.argsort(groups.group_of[live], kind="stable")]
        wide = 2 * int(groups.groups[: groups.state[GROUPS], MANY].max(initial=0))
        fresh = _tables(len(self._number_of), 64 + len(live) // 8, wide)
        fresh.state[GROUPS] = groups.state[GROUPS]
        self._groups = fresh._replace(groups=groups.groups, axes=groups.axes, group_of=groups.group_of)
        self._groups.groups[:, ROOT], self._groups.groups[:, HELD], self._groups.groups[:, GONE] = -1, 0, 0
        begins = np.flatnonzero(np.diff(groups.group_of[order], prepend=-1))
        for part in np.split(order, begins[1:]) if len(order) else []:
            group = int(groups.group_of[part[0]])
            self._built[group] = len(part)
            while not build_group(self._groups, group, self._rows, part):
                self._grow(1.5)

    def _grow(self, factor: float, nodes: int = 0, wide: int = 0) -> None:
        """Make the tables of nodes and blocks longer."""
        old = self._groups
        many, blocks = int(factor * len(old.nodes)) + nodes + 64, int(factor * len(old.blocks)) + nodes + 64
        self._groups = old._replace(
            nodes=longer(old.nodes, many, 0),
            splits=longer(old.splits, many, 0),
            corner_at=longer(old.corner_at, many, 0),
            corners=longer(old.corners, int(factor * len(old.corners)) + 2 * nodes * wide + 1_024, 0),
            blocks=longer(old.blocks, blocks, 0),
            column_at=longer(old.column_at, blocks, 0),
            columns=longer(old.columns, int(factor * len(old.columns)) + nodes * wide * LANES // 2 + 4 * LANES * 64, 0),
        )


def tables_for(rows: Rows, boxes: int, attributes: int) -> Groups:
    """Return empty tables with room for so many boxes in slots from 0 on, all on the same axes."""
    groups = _tables(boxes, 64 + boxes // 4, 2 * attributes)
    groups.group_of[:] = 0
    groups.axes[:attributes] = rows.axis[rows.start[0] : rows.start[0] + attributes]
    groups.groups[0] = [0, attributes, -1, 0, 0, mark_of(rows, 0)]
    groups.state[GROUPS] = 1
    return groups


def _tables(slots: int, nodes: int, wide: int) -> Groups:
    """Return empty tables with room for so many nodes."""
    return Groups(
        np.zeros((16, 6), np.int64),
        np.empty(64, np.int32),
        np.full(slots, -1, np.int32),
        np.empty((nodes, 4), np.int32),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(2 * nodes * wide, np.int64),
        np.empty((nodes, SLOTS + LANES), np.int32),
        np.empty(nodes, np.int64),
        np.empty(nodes * wide * LANES // 2, np.int64),
        np.array([0, 0, 0, 0, 0, -1], np.int64),
    )


CONTAINMENT = Grouped
