"""Splitting expression texts into a template and its literals, a million texts at a time.

The template of a text is the text with every literal replaced by one byte, its class, and every comment by blanks.
Texts with equal templates differ only in their constants, so a template is parsed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import inlined, kernel

# Classes of literals. A class says all about a literal that the shape of an expression may depend on. As a class
# stands for its literal in a template, none may be the code of a blank (9, 10, 13).
INTEGER = 1  # at most 18 digits, with an optional suffix L, S or Y
LONG_INTEGER = 2
DECIMAL = 3  # has a point and no exponent, or the suffix BD; at most 18 digits
LONG_DECIMAL = 4
DOUBLE = 5  # has an exponent, or the suffix D or F
PLAIN = 6  # a string without wildcard or escape
STARTS = 7  # the only wildcard is one % at the end
ENDS = 8  # the only wildcard is one % at the beginning
CONTAINS = 14  # the only wildcards are one % at each end
INTRICATE = 15  # a string with other wildcards, a backslash or a doubled quote
RAW = 16  # r'...': a string in which a backslash is only a backslash

# What a text may be refused for.
FINE = 0
OPEN_STRING = 1
OPEN_COMMENT = 2
OPEN_NAME = 3
CONTROL = 4

_SMALLEST_BLANKS = (9, 10, 13)


class Split(NamedTuple):
    """The templates and literals of a batch of texts.

    ``template_bytes[template_offsets[i]:template_offsets[i + 1]]`` is the template of text ``i``; its literals are
    ``literal_offsets[i]:literal_offsets[i + 1]``, each at ``literal_start:literal_end`` of the text bytes, quotes and
    suffix included. ``status`` is FINE or the reason of refusal, at the byte ``status_at``; ``depth`` is the deepest
    nesting of parentheses.
    """

    template_offsets: npt.NDArray[np.int64]
    template_bytes: npt.NDArray[np.uint8]
    literal_offsets: npt.NDArray[np.int64]
    literal_start: npt.NDArray[np.int64]
    literal_end: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int32]
    status: npt.NDArray[np.int8]
    status_at: npt.NDArray[np.int64]


@inlined
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@inlined
def is_name(byte: int) -> bool:
    """Return whether the byte may stand in a name: letters, digits, underscore and all of non-ASCII text."""
    return (97 <= byte <= 122) or (65 <= byte <= 90) or (48 <= byte <= 57) or byte == 95 or byte >= 128


@kernel
def _number_end(text: npt.NDArray[np.uint8], start: int, stop: int) -> tuple[int, int]:
    """Return where the number at ``start`` ends and its class (0: it runs into a name, so it is no number)."""
    at = start
    points = 0
    while at < stop and (_is_digit(text[at]) or (text[at] == 46 and points == 0)):
        points += text[at] == 46
        at += 1
    digits = at - start - points
    long = digits > 18
    kind = (LONG_DECIMAL if long else DECIMAL) if points else (LONG_INTEGER if long else INTEGER)
    if at < stop and (text[at] == 101 or text[at] == 69):
        after = at + 1
        if after < stop and (text[after] == 43 or text[after] == 45):
            after += 1
        if after < stop and _is_digit(text[after]):
            while after < stop and _is_digit(text[after]):
                after += 1
            at = after
            kind = DOUBLE
    if at < stop:
        upper = text[at] & 0xDF
        if upper == 66 and at + 1 < stop and (text[at + 1] & 0xDF) == 68:
            kind = LONG_DECIMAL if long or kind == DOUBLE else DECIMAL
            at += 2
        elif upper == 68 or upper == 70:
            kind = DOUBLE
            at += 1
        elif (upper == 76 or upper == 83 or upper == 89) and kind <= LONG_INTEGER:
            at += 1
    if at < stop and is_name(text[at]):
        return start, 0
    return at, kind


@kernel
def string_end(text: npt.NDArray[np.uint8], start: int, stop: int) -> tuple[int, int]:
    """Return the byte after the closing quote of the string at ``start`` and its class (0: it is never closed)."""
    quote = text[start]
    at = start + 1
    wildcards = 0
    intricate = False
    while at < stop:
        byte = text[at]
        if byte == 92:
            intricate = True
            at += 1
        elif byte == quote:
            if at + 1 < stop and text[at + 1] == quote:
                intricate = True
                at += 1
            else:
                break
        elif byte == 37:
            wildcards += 1
        elif byte == 95:
            wildcards += 3
        at += 1
    if at >= stop:
        return start, 0
    length = at - start - 1
    if intricate:
        return at + 1, INTRICATE
    if wildcards == 0:
        return at + 1, PLAIN
    first = text[start + 1] == 37
    last = text[at - 1] == 37
    if wildcards == 1 and last:
        return at + 1, STARTS
    if wildcards == 1 and first:
        return at + 1, ENDS
    if wildcards == 2 and first and last and length >= 2:
        return at + 1, CONTAINS
    return at + 1, INTRICATE


@inlined
def begins_raw(text: npt.NDArray[np.uint8], at: int, stop: int) -> bool:
    """Return whether a raw string, r'...' or r"...", begins here; ``at`` must not be inside a name."""
    return (text[at] | 32) == 114 and at + 1 < stop and (text[at + 1] == 39 or text[at + 1] == 34)


@kernel
def raw_end(text: npt.NDArray[np.uint8], start: int, stop: int) -> tuple[int, int]:
    """Return the byte after the closing quote of the raw string at ``start`` and its class (0: it is never closed)."""
    at = start + 2
    while at < stop and text[at] != text[start + 1]:
        at += 1
    return (at + 1, RAW) if at < stop else (start, 0)


@kernel
def skipped_end(text: npt.NDArray[np.uint8], at: int, stop: int) -> int:
    """Return the end of the comment at ``at``: ``at`` itself if there is none, -1 if it is never closed. As in Spark,
    comments between /* and */ nest, and a backslash carries the other kind over the end of its line."""
    if at + 1 < stop and text[at] == 45 and text[at + 1] == 45:
        while at < stop and text[at] != 13 and (text[at] != 10 or text[at - 1] == 92):
            at += 1
        return at
    if at + 1 < stop and text[at] == 47 and text[at + 1] == 42:
        open_comments = 0
        while at + 1 < stop:
            if text[at] == 42 and text[at + 1] == 47:
                open_comments -= 1
                at += 2
                if open_comments == 0:
                    return at
            elif text[at] == 47 and text[at + 1] == 42:
                open_comments += 1
                at += 2
            else:
                at += 1
        return -1
    return at


@kernel
def split_texts(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], text: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[Any], ...]:
    """Split every text, ``text[starts[i]:ends[i]]``, into its template and its literals: the fields of `Split`."""
    rows = len(starts)
    size = np.sum(ends - starts)
    most = size - size // 3 + rows  # the densest text, 1''1''1'', has two literals in three bytes
    out = Split(
        np.zeros(rows + 1, np.int64),
        np.empty(size, np.uint8),
        np.zeros(rows + 1, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.zeros(rows, np.int32),
        np.zeros(rows, np.int8),
        np.zeros(rows, np.int64),
    )
    written = 0
    literals = 0
    for row in range(rows):
        written, literals = _split_one(row, starts[row], ends[row], text, out, written, literals)
        out.template_offsets[row + 1] = written
        out.literal_offsets[row + 1] = literals
    return (  # a plain tuple: making a named one runs Python code, where a pending interrupt would be lost
        out.template_offsets,
        out.template_bytes,
        out.literal_offsets,
        out.literal_start,
        out.literal_end,
        out.depth,
        out.status,
        out.status_at,
    )


@kernel
def _split_one(
    row: int, at: int, stop: int, text: npt.NDArray[np.uint8], out: Split, written: int, literals: int
) -> tuple[int, int]:
    """Append the template and the literals of one text; return the new ends of both."""
    depth = 0
    while at < stop:
        byte = text[at]
        end = at
        kind = 0
        if byte == 39 or byte == 34:
            end, kind = string_end(text, at, stop)
            if kind == 0:
                out.status[row] = OPEN_STRING
        elif begins_raw(text, at, stop):
            end, kind = raw_end(text, at, stop)
            if kind == 0:
                out.status[row] = OPEN_STRING
        elif _is_digit(byte) or (byte == 46 and at + 1 < stop and _is_digit(text[at + 1])):
            end, kind = _number_end(text, at, stop)
        elif byte == 45 or byte == 47:
            end = skipped_end(text, at, stop)
            if end < 0:
                out.status[row] = OPEN_COMMENT
        elif byte < 32 and byte not in _SMALLEST_BLANKS:
            out.status[row] = CONTROL
        if out.status[row] != FINE:
            out.status_at[row] = at
            break
        if kind:
            out.literal_start[literals] = at
            out.literal_end[literals] = end
            literals += 1
            out.template_bytes[written] = kind
            written += 1
            at = end
        elif end > at:
            while at < end:  # a blank for each character, so that places are counted alike in text and template
                if text[at] & 0xC0 != 0x80:
                    out.template_bytes[written] = 32
                    written += 1
                at += 1
        else:
            depth += int(byte == 40) - int(byte == 41)
            out.depth[row] = max(out.depth[row], depth)
            at, written = _copy_word(row, at, stop, text, out, written)
    return written, literals


@kernel
def _copy_word(row: int, at: int, stop: int, text: npt.NDArray[np.uint8], out: Split, written: int) -> tuple[int, int]:
    """Copy one name, quoted name or single byte to the template; return the next byte and the template's end."""
    start = at
    if text[at] == 96:
        at += 1
        while at < stop and text[at] != 96 and (text[at] >= 32 or text[at] in _SMALLEST_BLANKS):
            at += 1
        if at == stop:
            out.status[row] = OPEN_NAME
            out.status_at[row] = start
        elif text[at] != 96:  # in a template it would stand for a literal
            out.status[row] = CONTROL
            out.status_at[row] = at
            at = stop
        at = min(at + 1, stop)
    elif is_name(text[at]):
        while at < stop and is_name(text[at]):
            at += 1
        while at + 1 < stop and text[at] == 46 and is_name(text[at + 1]):  # a.b.c1, where .1 is no number
            at += 1
            while at < stop and is_name(text[at]):
                at += 1
    else:
        at += 1
    for source in range(start, at):
        out.template_bytes[written] = text[source]
        written += 1
    return at, written


@kernel
def gather_spans(
    text: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return the spans of the text one after another, as the offsets and bytes of an Arrow string array."""
    offsets = np.zeros(len(start) + 1, np.int32)
    for span in range(len(start)):
        offsets[span + 1] = offsets[span] + (end[span] - start[span])
    data = np.empty(offsets[len(start)], np.uint8)
    for span in range(len(start)):
        data[offsets[span] : offsets[span + 1]] = text[start[span] : end[span]]
    return offsets, data


@kernel
def parse_integers(
    text: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the values of numerals of at most 18 digits, a suffix letter ignored."""
    values = np.zeros(len(start), np.int64)
    for span in range(len(start)):
        value = 0
        for at in range(start[span], end[span]):
            if _is_digit(text[at]):
                value = value * 10 + (text[at] - 48)
        values[span] = value
    return values
