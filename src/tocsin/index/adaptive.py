"""`adaptive`: immutable segments that are planned, a small mutable part for what is new, merges in the background.

| idea | where, in `segments/` here and in `kernels/` |
|---|---|
| multi-attribute hashing on equalities (clusters paper, section 3) | `planner.py`, `assignment.py`; `nodes.py` |
| predicates stored once, checked by small codes | `predicates.py`; `coding.py`, `checking.py` |
| boxes against 512 queries at once | `bitmaps.py` of the kernels |
| what is new | `fresh.py`, in both |
| what was removed | `parts.py` |
| what is new joins a segment without planning | `absorbing.py`, in both; `copying.py` |
| dynamic clustering (clusters paper, section 4) | merges re-plan with the statistics of that moment; `reviewing.py` |

The state of an index is one tuple, replaced at every change: a reader takes it once and never waits. Removals are
stamped with the version from which they count, appended boxes lie beyond the count of earlier states.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tocsin.arguments import expect_count, expect_flag
from tocsin.errors import BoxNumberError, MemoryLimitError
from tocsin.index.boxes import Boxes, Int32s, Moved, Pairs, Queries
from tocsin.index.containment.containing import Containing
from tocsin.index.moves import checked
from tocsin.index.protocol import Index
from tocsin.index.segments.fresh import FreshPart
from tocsin.index.segments.parts import Part
from tocsin.index.segments.states import State, Work, answer, contents_of, due, fresh_part, readable
from tocsin.index.segments.statistics import QueryStatistics

FIRST = 128
"""So many boxes are worth a segment where there is none; more where there are more."""

FRESH = 2_048
"""How many boxes the mutable part may hold before it is merged, at least."""

SHARE = 16
"""It may hold one box for so many in segments: then taking them into a segment is worth its work."""

MOST = 65_536
"""How many it may hold in any case."""

LONGEST = 1_024
"""It is merged as well when one of its chains has so many boxes, as that of boxes which demand no single value has
before long: a query would have to be compared with all of them."""

REVIEW = 16_384
"""After so many queries it is asked whether the plan still suits them."""

TURN = 8
"""The same is asked when one box in so many has been taken in without planning, however long that takes."""

NICE = 5
"""How much later than others a merge is served, no more: it must keep up where all cores are busy."""

MERGING = "tocsin-merge"
"""The name of the thread that merges."""

LONGEST_PAUSE = 16.0
"""Seconds between two such questions, at most."""


class Adaptive(Index):
    """The default engine.

    ``threads``: over how many threads one call of `overlap` is spread. ``memory_limit``: bytes beyond which no
    segment is added. ``background``: whether merges run in a thread of their own; otherwise only `settle` merges.

    >>> index = Adaptive()
    >>> index.insert(np.array([7], np.int32), Boxes.of([{0: [(1, 5)]}]))
    >>> index.overlap(Queries.points(np.array([[3, 9]])))
    Pairs(rows=array([0], dtype=int32), numbers=array([7], dtype=int32))
    """

    name: ClassVar[str] = "adaptive"

    def __init__(
        self, *, threads: int = 1, memory_limit: int | None = None, background: bool = True, fresh: int = FRESH
    ) -> None:
        expect_count(threads, "threads")
        if memory_limit is not None:
            expect_count(memory_limit, "memory_limit", 0)
        expect_flag(background, "background")
        expect_count(fresh, "fresh", 0)
        self.statistics = QueryStatistics()
        self._threads = threads
        self._memory_limit = memory_limit
        self._background = background
        self._fresh_limit = fresh
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._changing = threading.Lock()
        self._replacing, self._starting = threading.RLock(), threading.Lock()
        self._merging: threading.Thread | None = None
        self._closed = False
        self._merges = 0
        self._taken_in = 0
        self._asked: tuple[tuple[Part, ...], int] = (), 0
        self._unasked, self._ask_after = 0, 0
        self._pairs_a_row = 2.0
        self._review_from, self._review_pause, self._review_at = REVIEW, 1.0, 0.0
        self._state = State((), ((FreshPart(), 0),), 0)
        self._containing = Containing(self.contents)

    def insert(self, numbers: Int32s, boxes: Boxes) -> None:
        """Add boxes: many at once become a segment, others go to the fresh part."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        self._refuse_clashes(numbers)
        if self._is_bulk(len(numbers)):
            self._refuse_too_much(len(numbers) * 32 + len(boxes.axis) * 28)
            part = Part.of(numbers, boxes, self.statistics)
            self._refuse_too_much(part.nbytes)
            with self._changing:
                parts, fresh, version = self._state
                parts = (*parts, part)
                if fresh[-1][1] == 0:
                    fresh = (*fresh[:-1], (fresh_part(parts), 0))
                self._state = State(parts, fresh, version)
        else:
            self._refuse_too_much(len(numbers) * 32 + len(boxes.axis) * 20)
            with self._changing:
                parts, fresh, version = self._state
                fresh[-1][0].append(numbers, boxes)
                fresh = (*fresh[:-1], (fresh[-1][0], fresh[-1][0].count))
                if fresh[-1][1] >= self._fresh_room(parts) or fresh[-1][0].longest >= LONGEST:
                    fresh = (*fresh, (fresh_part(parts), 0))
                self._state = State(parts, fresh, version)
        self._containing.inserted(numbers, boxes)
        self._merge_if_due()

    def remove(self, numbers: Int32s) -> None:
        """Forget boxes: they stay where they are until a merge, and no longer show."""
        numbers = np.ascontiguousarray(numbers, np.int32)
        _refuse_repeats(numbers)
        with self._changing:
            parts, fresh, version = self._state
            struck: list[tuple[Any, ...]] = []
            left = numbers.tolist()
            for young, _ in reversed(fresh):
                here = young.slot_of.keys() & left
                if here:
                    struck.append((young, list(here)))
                    left = [number for number in left if number not in here]
            sought = numbers if len(left) == len(numbers) else np.array(left, np.int32)
            for part in parts:
                if not len(sought):
                    break
                places = part.locate(sought, version)
                found = places >= 0
                struck.append((part, sought[found], places[found]))
                sought = sought[~found]
            if len(sought):
                raise BoxNumberError(f"no such box numbers: {sought[:5].tolist()}")
            for holder, *where in struck:
                if len(where[0]):
                    holder.strike(*where, version + 1)
            self._state = State(parts, fresh, version + 1)
        self._containing.removed(numbers)
        self._merge_if_due(len(numbers))

    def overlap(self, queries: Queries) -> Pairs:
        """Ask every part, and sort what they answer by row."""
        self.statistics.notice(queries)
        if self.statistics.seen >= self._review_from:
            self._review_soon()
        state = self._state
        low = readable(queries.low)
        high = low if queries.are_points else readable(queries.high)
        if self._pool is None or queries.rows < 2 * self._threads:
            pairs = answer(state, low, high, 0, queries.rows, self._pairs_a_row)
            self._pairs_a_row = max(2.0, 1.25 * len(pairs.rows) / max(1, queries.rows))
            return pairs
        ends = np.linspace(0, queries.rows, self._threads + 1).astype(np.int64).tolist()
        some = [self._pool.submit(answer, state, low, high, *piece, self._pairs_a_row) for piece in pairwise(ends)]
        found = [piece.result() for piece in some]
        return Pairs(
            np.concatenate([piece.rows for piece in found]), np.concatenate([piece.numbers for piece in found])
        )

    def moved(self, old: Queries, new: Queries) -> Moved:
        """Follow the bounds on the way, or compare two answers, as is cheaper for each segment."""
        from tocsin.index.segments.steps import moved_in

        checked(old, new)
        self.statistics.notice(new)
        return moved_in(self._state, old, new)

    def contain(self, boxes: Boxes, k: int | None = None) -> Pairs:
        """Return for each of these boxes up to k of the boxes held that contain it; see `containment.Containment`."""
        return self._containing.index().contain(boxes, k)

    def contained(self, boxes: Boxes, k: int | None = None) -> Pairs:
        """Return for each of these boxes up to k of the boxes held that lie inside it."""
        return self._containing.index().contained(boxes, k)

    def contents(self) -> tuple[Int32s, Boxes]:
        """Take the boxes out of the parts and sort them by number."""
        numbers, boxes = contents_of(self._state)
        order = np.argsort(numbers)
        return numbers[order], boxes.take(order)

    def stats(self) -> Mapping[str, Any]:
        """Say what the planner chose for each segment and what it costs."""
        parts, fresh, version = self._state
        segments = [
            {"boxes": part.boxes, "removed": part.boxes - part.live, "bytes": part.nbytes, **part.info}
            for part in parts
        ]
        return {
            "engine": self.name,
            "boxes": len(self),
            "bytes": self._bytes(),
            "segments": segments,
            "fresh": sum(young.live for young, _ in fresh),
            "candidates": round(sum(part.info["candidates"] for part in parts), 4),
            "queries": self.statistics.seen,
            "merges": self._merges,
            "merging": self._is_merging(),
            "version": version,
        }

    def observe(self, queries: Queries) -> None:
        """Take note of queries asked elsewhere, so that the next plan suits them."""
        self.statistics.observe(queries)

    def settle(self) -> None:
        """Merge everything into one segment, planned for the queries seen so far, and wait for it."""
        with self._replacing:
            state = self._state
            self._merge(Work(None, list(state.parts), [young for young, count in state.fresh if count]))

    def review(self) -> bool:
        """Plan the largest segment anew if that would spare the queries seen lately much; return whether it did."""
        from tocsin.index.segments.reviewing import accept, is_outdated

        with self._replacing:
            part = max(self._state.parts, key=lambda part: part.live, default=None)
            if part is None or not is_outdated(part, self.statistics):
                return False
            self._merge(Work(None, [part], []))
            accept(max(self._state.parts, key=lambda part: part.live), self.statistics)
            return True

    def close(self) -> None:
        """Start no more merges and wait for the one under way."""
        self._closed = True
        self._await_merge()
        if self._pool is not None:
            self._pool.shutdown()

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the index as a description and named arrays; what is in the fresh part becomes a segment first."""
        if any(count for _, count in self._state.fresh):
            self.settle()
        state = self._state
        described: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {}
        for place, part in enumerate(state.parts):
            said, named = part.to_arrays(f"segment{place}.", state.version)
            described.append(said)
            arrays.update(named)
        return {"engine": self.name, "segments": described}, arrays

    @classmethod
    def from_arrays(cls, manifest: dict[str, Any], arrays: dict[str, Any], **options: Any) -> Adaptive:
        """Open an index from what `to_arrays` returned; the arrays may be mapped files and are not copied."""
        index = cls(**options)
        described = manifest["segments"]
        parts = [Part.from_arrays(f"segment{place}.", said, arrays) for place, said in enumerate(described)]
        index._state = State(tuple(parts), ((fresh_part(tuple(parts)), 0),), 0)
        return index

    def highest(self) -> int:
        """Return the greatest box number in segments, -1 if there is none."""
        return max((part.highest for part in self._state.parts), default=-1)

    def __len__(self) -> int:
        parts, fresh, _ = self._state
        return sum(part.live for part in parts) + sum(young.live for young, _ in fresh)

    def _is_bulk(self, count: int) -> bool:
        """Return whether so many boxes become a segment at once: not where the fresh part would soon be merged with
        far more anyway."""
        return count >= self._fresh_room(self._state.parts)

    def _fresh_room(self, parts: tuple[Part, ...]) -> int:
        """Return how many boxes the fresh part may hold; few until there is a segment to learn its tables from."""
        live = sum(part.live for part in parts)
        return max(min(self._fresh_limit, max(FIRST, live // 2)), min(live // SHARE, MOST))

    def _bytes(self) -> int:
        parts, fresh, _ = self._state
        return sum(part.nbytes for part in parts) + sum(young.nbytes for young, _ in fresh) + self._containing.nbytes

    def _refuse_clashes(self, numbers: Int32s) -> None:
        _refuse_repeats(numbers)
        parts, fresh, version = self._state
        listed = numbers.tolist()
        held = [young.slot_of.keys() & listed for young, count in fresh if count]
        clash = [number for some in held if some for number in listed if number in some]
        for part in parts:
            clash += numbers[part.locate(numbers, version) >= 0].tolist()
        if clash:
            raise BoxNumberError(f"box numbers given twice: {clash[:5]}")

    def _refuse_too_much(self, more: int) -> None:
        if self._memory_limit is not None and self._bytes() + more > self._memory_limit:
            raise MemoryLimitError(
                f"{more:,} bytes more would exceed the limit of {self._memory_limit:,} bytes, of which "
                f"{self._bytes():,} are in use; raise memory_limit or remove boxes"
            )

    def _is_merging(self) -> bool:
        return self._merging is not None and self._merging.is_alive()

    def _merge_if_due(self, removed: int = 0) -> None:
        """Merge if that is worth it: which is asked where there are other parts than before, or fewer boxes by far."""
        self._unasked += removed
        shape = self._state.parts, len(self._state.fresh)
        if not self._background or self._closed or (shape == self._asked and self._unasked < self._ask_after):
            return
        if self._is_merging():
            return
        if due(self._state):
            self._work_beside(self._merge_while_due)
        else:
            self._asked, self._unasked, self._ask_after = shape, 0, sum(part.boxes for part in shape[0]) // 64

    def _review_soon(self) -> None:
        """Review beside the readers, if it is time: less often as long as there is nothing to do."""
        self._review_from = self.statistics.seen + REVIEW
        now = time.monotonic()
        if self._background and not self._closed and now >= self._review_at and not self._is_merging():
            self._review_at = now + self._review_pause
            self._work_beside(self._review_and_merge)

    def _work_beside(self, work: Callable[[], None]) -> None:
        """Work in a thread, unless there is one: readers and who changes may both want to begin one just now."""
        with self._starting:
            if not self._is_merging():
                self._merging = threading.Thread(target=_after_others, args=(work,), name=MERGING, daemon=True)
                self._merging.start()

    def _review_and_merge(self) -> None:
        with suppress(MemoryLimitError):
            self._review_pause = 1.0 if self.review() else min(2 * self._review_pause, LONGEST_PAUSE)
        self._merge_while_due()

    def _await_merge(self) -> None:
        if self._merging is not None:
            self._merging.join()

    def _merge_while_due(self) -> None:
        with self._replacing, suppress(MemoryLimitError):
            while not self._closed and (found := due(self._state)):
                self._merge(found)
                if self._taken_in * TURN > sum(part.live for part in self._state.parts):
                    self._taken_in = 0
                    self.review()

    def _merge(self, work: Work) -> None:
        """Replace some parts by one. Boxes removed meanwhile are struck in it before it shows. The caller, who chose
        them, has the right to replace parts: two merges of one part would each know of some of its removals."""
        base, parts, fresh = work
        merged: list[Any] = [*([base] if base else []), *parts, *fresh]
        with self._changing:
            state = self._state
            if fresh and state.fresh[-1][0] in fresh:
                state = state._replace(fresh=(*state.fresh, (fresh_part(state.parts), 0)))
                self._state = state
            for part in merged:
                part.struck = []
        chosen = State(tuple(parts), tuple((young, young.count) for young in fresh), state.version)
        numbers, boxes = contents_of(chosen)
        more = len(numbers) + (base.live if base else 0)
        self._refuse_too_much(more * 32 + (len(boxes.axis) * 28 if base is None else base.nbytes))
        new = self._merged(base, numbers, boxes, state.version)
        if new is None:
            return
        done = _strike_again(merged, new, [0] * len(merged), self._state.version)  # while nobody waits
        with self._changing:
            state = self._state
            _strike_again(merged, new, done, state.version)
            kept = tuple(part for part in state.parts if part not in merged)
            young = tuple(pair for pair in state.fresh if pair[0] not in fresh)
            self._state = State((*kept, *new), young, state.version)
            self._merges += 1
            self._taken_in += len(numbers) if base is not None else 0

    def _merged(self, base: Part | None, numbers: Int32s, boxes: Boxes, version: int) -> list[Part] | None:
        """Return the parts that take the place of others; None if the plan of the base does not suit the boxes."""
        if base is None:
            return [Part.of(numbers, boxes, self.statistics)] if len(numbers) else []
        found = base.with_boxes(numbers, boxes, version)
        if found is None:
            return None
        part, left = found
        return [part, Part.of(numbers[left], boxes.take(left), self.statistics)] if len(left) else [part]


def _after_others(work: Callable[[], None]) -> None:
    """Work so that threads which match and change go first where there are fewer cores than threads: on Linux each has
    a priority of its own."""
    if sys.platform == "linux":
        with suppress(OSError):
            thread = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, max(NICE, os.getpriority(os.PRIO_PROCESS, thread)))
    work()


def _strike_again(merged: list[Any], new: list[Part], done: list[int], version: int) -> list[int]:
    """Strike in the new parts what was removed from the merged ones since; ``done`` of it before, of each. Return how
    much is done now."""
    now = [len(part.struck) for part in merged]
    gone = [number for part, begin, end in zip(merged, done, now, strict=True) for number in part.struck[begin:end]]
    if gone:
        numbers = np.array(gone, np.int32)
        for part in new:
            places = part.locate(numbers, version)
            part.strike(numbers[places >= 0], places[places >= 0], version)
    return now


def _refuse_repeats(numbers: Int32s) -> None:
    if len(numbers) > 1 and not (np.diff(np.sort(numbers)) > 0).all():
        raise BoxNumberError("a box number is given twice within one call")


ENGINE = Adaptive
