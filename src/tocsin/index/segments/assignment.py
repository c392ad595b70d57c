"""Where each box goes in a segment: down the tree of a plan to a slot, or to the bitmaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.index.boxes import Int64s
from tocsin.index.segments.planner import ROOMY, SMALL, Plan
from tocsin.index.segments.predicates import Predicates
from tocsin.kernels.segments import layout as at
from tocsin.kernels.segments.nodes import fill_hash
from tocsin.kernels.segments.planning import list_cells, route


@dataclass(frozen=True)
class Assignment:
    """Boxes in slots, and the tables by which queries find them.

    Row ``i`` is box ``boxes[i]``, filed in ``slots[i]`` under the plan's node ``nodes[i]``; a box with a key of
    several cells has several rows. ``left`` are the boxes for the bitmaps.
    """

    boxes: Int64s
    slots: Int64s
    nodes: Int64s
    left: Int64s
    slot_count: int
    node_table: Int64s
    embedded: Int64s
    hash_keys: Int64s
    hash_pages: Int64s
    key_axes: list[int]
    sort_node: int


@dataclass
class _Arrivals:
    """Rows that reached a node: their boxes, pages, and whether a key of several cells brought them there."""

    boxes: Int64s
    pages: Int64s
    replicated: np.ndarray[tuple[int], np.dtype[np.bool_]]
    page_count: int


class _Filing:
    """The work of filing boxes: nodes are visited parents first; the tables grow."""

    def __init__(self, predicates: Predicates, plan: Plan) -> None:
        self.of = predicates
        self.plan = plan
        used = sorted({node.axis for node in plan.nodes[1:]})
        self.key_axes = [axis for axis in used if predicates.axes[axis].cells > at.BUCKETS]
        self.key_of = {axis: axis for axis in used}
        self.key_of.update({axis: -1 - place for place, axis in enumerate(self.key_axes)})
        self.boxes: list[Int64s] = []
        self.slots: list[Int64s] = []
        self.nodes: list[Int64s] = []
        self.left: list[Int64s] = []
        self.records: list[list[int]] = []
        self.place_of: dict[int, int] = {}
        self.embedded: list[tuple[int, int]] = []
        self.hash_keys: list[Int64s] = []
        self.hash_pages: list[Int64s] = []
        self.hashed = 0
        self.slot_count = 0
        self.filed_in_record: list[int] = []

    def visit(self, number: int, there: _Arrivals) -> list[tuple[int, _Arrivals]]:
        """File the rows that reached a node, and return the arrivals at those children that are nodes of their own."""
        record = self.records[self.place_of[number]]
        node = self.plan.nodes[number]
        child_of_axis = np.full(max(len(self.of.axes), 1), -1, np.int64)
        for order, child in enumerate(node.children):
            child_of_axis[self.plan.nodes[child].axis] = order
        used = np.zeros(len(child_of_axis), np.bool_)
        used[self.plan.path(number)] = True
        rows = (self.of.row_start, self.of.held, used)
        child, key = route(there.boxes, there.replicated, child_of_axis, rows, self.of.axis_of, self.of.cells)
        by_child = np.argsort(child, kind="stable")
        ends = np.searchsorted(child[by_child], np.arange(-1, len(node.children) + 1))
        stay = by_child[: ends[1]]
        stride, onward = 1, []
        inside: list[tuple[int, _Arrivals, Any]] = []
        record[at.N_EMBEDDED] = len(self.embedded)
        record[at.N_WIDE] = -1
        for order, child_number in sorted(enumerate(node.children), key=self._is_wide):
            some = by_child[ends[order + 1] : ends[order + 2]]
            arrivals, cells = self._expand(there, some, key[some])
            cell_count = self.of.axes[self.plan.nodes[child_number].axis].cells
            wanted = there.page_count * (stride + cell_count)
            axis_key = self.key_of[self.plan.nodes[child_number].axis]
            if not self.plan.nodes[child_number].children and wanted <= max(SMALL, ROOMY * len(there.boxes)):
                if axis_key < 0 and record[at.N_WIDE] < 0:
                    record[at.N_WIDE] = len(self.embedded)
                self.embedded.append((max(axis_key, -1 - axis_key), stride))
                inside.append((child_number, arrivals, stride + cells))
                stride += cell_count
            else:
                onward.append((child_number, self._enter(number, child_number, arrivals, cells, axis_key)))
        record[at.N_EMBEDDED_END] = len(self.embedded)
        if record[at.N_WIDE] < 0:
            record[at.N_WIDE] = len(self.embedded)
        record[at.N_START], record[at.N_STRIDE] = self.slot_count, stride
        if node.kept:
            inside.append((number, _Arrivals(there.boxes[stay], there.pages[stay], there.replicated[stay], 0), 0))
        else:
            self.left.append(there.boxes[stay])
        for owner, arrivals, places in inside:
            self.boxes.append(arrivals.boxes)
            self.slots.append(self.slot_count + arrivals.pages * stride + places)
            self.nodes.append(np.full(len(arrivals.boxes), owner))
            self.filed_in_record[self.place_of[number]] += len(arrivals.boxes)
        self.slot_count += there.page_count * stride
        return onward

    def _is_wide(self, child: tuple[int, int]) -> bool:
        return self.key_of[self.plan.nodes[child[1]].axis] < 0

    def _expand(
        self, there: _Arrivals, rows: Int64s, keys: np.ndarray[tuple[int], np.dtype[np.int32]]
    ) -> tuple[_Arrivals, Int64s]:
        """Return rows once for each cell of their keys, and those cells."""
        counts = self.of.cells[keys]
        cells = list_cells(keys, self.of.cells, self.of.first_cell, self.of.last_cell, self.of.interval_start)
        several = np.repeat(rows, counts)
        replicated = there.replicated[several] | np.repeat(counts > 1, counts)
        return _Arrivals(there.boxes[several], there.pages[several], replicated, there.page_count), cells

    def _enter(self, parent: int, child: int, arrivals: _Arrivals, cells: Int64s, axis_key: int) -> _Arrivals:
        """Give a child its record and its rows their pages there: computed if there is room, else hashed."""
        cell_count = self.of.axes[self.plan.nodes[child].axis].cells
        keys = arrivals.pages * cell_count + cells
        place = self.open(child, parent, axis_key, cell_count)
        page_count = arrivals.page_count * cell_count
        if page_count > max(SMALL, len(keys)):
            distinct, keys = np.unique(keys, return_inverse=True)
            page_count = len(distinct)
            size = 1 << max(3, int(2 * page_count - 1).bit_length())
            slots, pages = np.full(size, -1, np.int64), np.zeros(size, np.int64)
            fill_hash(distinct, slots, pages)
            self.records[place][at.N_HASH], self.records[place][at.N_MASK] = self.hashed, size - 1
            self.hash_keys.append(slots)
            self.hash_pages.append(pages)
            self.hashed += size
        return _Arrivals(arrivals.boxes, keys.astype(np.int64), arrivals.replicated, page_count)

    def open(self, number: int, parent: int, axis_key: int, cell_count: int) -> int:
        """Add a record for a node of the plan and return its place."""
        record = [0] * at.NODE_FIELDS
        record[at.N_PARENT] = self.place_of.get(parent, 0)
        record[at.N_KEY], record[at.N_CELLS], record[at.N_HASH] = axis_key, cell_count, -1
        self.place_of[number] = len(self.records)
        self.records.append(record)
        self.filed_in_record.append(0)
        return len(self.records) - 1


def assign(predicates: Predicates, plan: Plan) -> Assignment:
    """File every box as the plan says."""
    boxes = len(predicates.row_start) - 1
    filing = _Filing(predicates, plan)
    filing.open(0, -1, 0, 1)
    everything = np.arange(boxes, dtype=np.int64)
    waiting = [(0, _Arrivals(everything, np.zeros(boxes, np.int64), np.zeros(boxes, np.bool_), 1))]
    while waiting:
        waiting.extend(filing.visit(*waiting.pop(0)))
    return Assignment(
        boxes=_joined(filing.boxes),
        slots=_joined(filing.slots),
        nodes=_joined(filing.nodes),
        left=np.unique(_joined(filing.left)),  # a box of several rows was left as often
        slot_count=filing.slot_count,
        node_table=np.array(filing.records, np.int64).ravel(),
        embedded=np.array(filing.embedded, np.int64).reshape(-1, 2),
        hash_keys=_joined(filing.hash_keys),
        hash_pages=_joined(filing.hash_pages),
        key_axes=filing.key_axes,
        sort_node=int(np.argmax(filing.filed_in_record)),
    )


def _joined(parts: list[Int64s]) -> Int64s:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
