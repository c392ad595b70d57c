"""Taking texts apart at their outermost ANDs, and putting the boxes of the pieces together again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel
from tocsin.kernels.language.literals import begins_raw, is_name, raw_end, skipped_end, string_end

_AND = 0x414E44
_OR = 0x4F52
_BETWEEN = 0x4245545745454E


@kernel
def _word(text: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Return a short word as a number, in upper case; 0 for a longer one."""
    if end - start > 7:
        return 0
    word = 0
    for at in range(start, end):
        byte = text[at]
        word = word << 8 | (byte - 32 if 97 <= byte <= 122 else byte)
    return word


@kernel
def _end_of(text: npt.NDArray[np.uint8], at: int, stop: int) -> int:
    """Return the end of the string, quoted name, comment, word or single byte at ``at``; ``stop`` if it is never
    closed."""
    byte = text[at]
    if byte == 39 or byte == 34:
        end, kind = string_end(text, at, stop)
        return end if kind else stop
    if begins_raw(text, at, stop):
        end, kind = raw_end(text, at, stop)
        return end if kind else stop
    if byte == 96:
        at += 1
        while at < stop and text[at] != 96:
            at += 1
        return min(at + 1, stop)
    if byte == 45 or byte == 47:
        end = skipped_end(text, at, stop)
        return stop if end < 0 else max(end, at + 1)
    if is_name(byte):
        while at < stop and is_name(text[at]):
            at += 1
        return at
    return at + 1


@kernel
def split_conjuncts(
    offsets: npt.NDArray[np.int64], text: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pieces between the outermost ANDs of each text: how they are spread over the texts, their starts and
    ends.

    A text with an outermost OR, or with parentheses that do not match, is one piece. The AND of a BETWEEN splits
    nothing, nor does one beside a point: it may be a name. Pieces of text ``i`` are
    ``piece_offsets[i]:piece_offsets[i + 1]``.
    """
    rows = len(offsets) - 1
    piece_offsets = np.zeros(rows + 1, np.int64)
    capacity = 2 * rows + (offsets[rows] - offsets[0]) // 4 + 1  # an AND takes four bytes, the last of a text three
    starts, ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    count = 0
    for row in range(rows):
        first, at, stop = count, offsets[row], offsets[row + 1]
        depth = between = 0
        whole = False
        starts[count] = at
        while at < stop and not whole:
            end = _end_of(text, at, stop)
            depth += int(text[at] == 40) - int(text[at] == 41)
            whole = depth < 0
            if depth == 0 and is_name(text[at]):
                word = _word(text, at, end)
                if word == _BETWEEN:
                    between += 1
                elif word == _AND and between:
                    between -= 1
                elif (
                    word == _AND
                    and not (end < stop and text[end] == 46)
                    and not (at > offsets[row] and text[at - 1] == 46)
                ):
                    ends[count] = at
                    count += 1
                    starts[count] = end
                whole |= word == _OR
            at = end
        if whole or depth != 0:
            count = first
            starts[count] = offsets[row]
        ends[count] = stop
        count += 1
        piece_offsets[row + 1] = count
    return piece_offsets, starts[:count].copy(), ends[:count].copy()


@kernel
def _intersect(
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    one: tuple[int, int],
    other: tuple[int, int],
    into: int,
) -> int:
    """Write the intersection of two sorted runs of intervals behind ``into``; return its end."""
    at, beside = one[0], other[0]
    while at < one[1] and beside < other[1]:
        bottom, top = max(low[at], low[beside]), min(high[at], high[beside])
        if bottom <= top:
            low[into], high[into] = bottom, top
            into += 1
        if high[at] < high[beside]:
            at += 1
        else:
            beside += 1
    return into


@kernel
def merge_conjuncts(
    piece_offsets: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    axis: npt.NDArray[np.int32],
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return for each row the box that is the intersection of the boxes of its pieces, as the arrays of `Boxes`.

    Row ``r`` has the boxes ``piece_offsets[r]:piece_offsets[r + 1]``. A row whose sets on some axis have nothing in
    common gets the offsets of an empty box, marked by an axis of -1 in a single entry.
    """
    rows = len(piece_offsets) - 1
    out_offsets = np.zeros(rows + 1, np.int64)
    most = 0
    for row in range(rows):
        most = max(most, offsets[piece_offsets[row + 1]] - offsets[piece_offsets[row]])
    out_axis = np.empty(len(axis) + rows, np.int32)
    out_low, out_high = np.empty(len(axis) + rows, np.int64), np.empty(len(axis) + rows, np.int64)
    held_axis, held_box = np.empty(most, np.int32), np.empty(most, np.int64)
    held_low, held_high = np.empty(3 * most, np.int64), np.empty(3 * most, np.int64)
    written = 0
    for row in range(rows):
        start, end = offsets[piece_offsets[row]], offsets[piece_offsets[row + 1]]
        count = end - start
        held_axis[:count], held_low[:count], held_high[:count] = axis[start:end], low[start:end], high[start:end]
        for box in range(piece_offsets[row], piece_offsets[row + 1]):
            held_box[offsets[box] - start : offsets[box + 1] - start] = box
        written = _merge_row(held_axis, held_low, held_high, held_box[:count], written, out_axis, out_low, out_high)
        out_offsets[row + 1] = written
    return out_offsets, out_axis[:written].copy(), out_low[:written].copy(), out_high[:written].copy()


@kernel
def _merge_row(
    held_axis: npt.NDArray[np.int32],
    held_low: npt.NDArray[np.int64],
    held_high: npt.NDArray[np.int64],
    box_of: npt.NDArray[np.int64],
    written: int,
    out_axis: npt.NDArray[np.int32],
    out_low: npt.NDArray[np.int64],
    out_high: npt.NDArray[np.int64],
) -> int:
    """Append the intersection of one row's boxes, axis by axis in order; return the new end of the output.

    ``held_low`` and ``held_high`` have three parts of ``len(box_of)`` each: the entries, then two for intersections in
    turn.
    """
    count = len(box_of)
    begin = written
    last = np.int32(-1)
    while True:
        axis = np.int32(2147483647)
        for entry in range(count):
            if last < held_axis[entry] < axis:
                axis = held_axis[entry]
        if axis == 2147483647:
            return written
        last = axis
        run = (0, 0)
        seen = False
        entry = 0
        while entry < count:
            if held_axis[entry] != axis:
                entry += 1
                continue
            stop = entry
            while stop < count and held_axis[stop] == axis and box_of[stop] == box_of[entry]:
                stop += 1
            if not seen:
                run = (entry, stop)
                seen = True
            else:
                place = 2 * count if count <= run[0] < 2 * count else count
                run = (place, _intersect(held_low, held_high, run, (entry, stop), place))
            entry = stop
        if run[0] == run[1]:
            out_axis[begin], out_low[begin], out_high[begin] = -1, 0, 0
            return begin + 1
        for kept in range(run[0], run[1]):
            out_axis[written], out_low[written], out_high[written] = axis, held_low[kept], held_high[kept]
            written += 1
