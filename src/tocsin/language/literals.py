"""From texts to templates: which texts differ only in their constants, and what those constants are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import ExpressionError, ExpressionLimitError, ExpressionSyntaxError
from tocsin.kernels.language import literals as kernels
from tocsin.kernels.language.conjuncts import split_conjuncts
from tocsin.language.arrays import number_array, numbers_of, text_array
from tocsin.language.tree import Constant, Kind

MAX_LENGTH = 1_000_000
"""The longest text of an expression, in bytes of UTF-8."""

MAX_DEPTH = 200
"""The deepest nesting of parentheses."""

MAX_DIGITS = 38
"""The digits of Spark's widest decimal."""

KINDS: dict[int, Kind] = {
    kernels.INTEGER: "integer",
    kernels.LONG_INTEGER: "integer",
    kernels.DECIMAL: "decimal",
    kernels.LONG_DECIMAL: "decimal",
    kernels.DOUBLE: "double",
    kernels.PLAIN: "string",
    kernels.STARTS: "string",
    kernels.ENDS: "string",
    kernels.CONTAINS: "string",
    kernels.INTRICATE: "string",
    kernels.RAW: "string",
}
"""The kind of constant that each class of literal is."""

_REFUSALS = {
    kernels.OPEN_STRING: "this string is never closed",
    kernels.OPEN_COMMENT: "this comment is never closed",
    kernels.OPEN_NAME: "this quoted name is never closed",
    kernels.CONTROL: "control characters are not allowed outside strings",
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_SUFFIXES = b"lsyLSY"
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True)
class Literals:
    """The constants of one slot, a row each: what was written for it in texts of one template.

    ``text`` holds strings unescaped and without quotes, numerals without suffix and with their sign; integers that fit
    are in ``integers`` instead.
    """

    kind: Kind
    text: pa.StringArray | None = None
    integers: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts if self.integers is None else self.integers)

    @property
    def texts(self) -> pa.StringArray:
        """The texts, made from the integers if need be."""
        if self.text is not None:
            return self.text
        assert self.integers is not None  # one of both is there
        return number_array(self.integers).cast(pa.string())

    def constant(self, row: int) -> Constant:
        """Return one of them as a constant of the tree."""
        if self.integers is not None:
            return Constant(int(self.integers[row]), self.kind)
        return read_constant(self.texts[row].as_py(), self.kind)

    def distinct(self) -> tuple[npt.NDArray[np.int32], list[Constant]]:
        """Return for each row which of the distinct constants it has, and those constants."""
        if self.integers is not None:
            values, which = np.unique(self.integers, return_inverse=True)
            return which.astype(np.int32), [Constant(int(value), self.kind) for value in values]
        encoded = self.texts.dictionary_encode()
        constants = [read_constant(text, self.kind) for text in encoded.dictionary.to_pylist()]
        return numbers_of(encoded.indices).astype(np.int32), constants


class SplitTexts(NamedTuple):
    """A batch of texts, split: ``template_of`` gives each row its position in ``templates`` (-1 for a refused text)."""

    text_bytes: npt.NDArray[np.uint8]
    split: kernels.Split
    templates: list[str]
    template_of: npt.NDArray[np.int32]

    def literals(self, rows: npt.NDArray[np.int64], slot: int, literal_class: int, negative: bool = False) -> Literals:
        """Return what these rows, all of one template, say in one slot."""
        which = self.split.literal_offsets[rows] + slot
        start, end = self.split.literal_start[which], self.split.literal_end[which]
        kind = KINDS[literal_class]
        if literal_class == kernels.INTEGER:
            if len(rows) == 1:  # nothing that were worth loading a kernel
                integers = np.array([int(bytes(self.text_bytes[start[0] : end[0]]).rstrip(_SUFFIXES))], np.int64)
            else:
                integers = kernels.parse_integers(self.text_bytes, start, end)
            return Literals(kind, integers=-integers if negative else integers)
        if kind == "string":
            opening = 2 if literal_class == kernels.RAW else 1
            inner = _spans(self.text_bytes, start + opening, end - 1)
            if literal_class == kernels.INTRICATE:
                quotes = self.text_bytes[start]
                inner = pa.array(
                    [unescape(text, chr(quote)) for text, quote in zip(inner.to_pylist(), quotes, strict=True)],
                    pa.string(),
                )
            return Literals(kind, inner)
        written = _spans(self.text_bytes, start, end)
        numerals = pc.replace_substring_regex(written, "(?i)(BD|[DFLSY])$", "")
        if pc.any(pc.match_substring_regex(written, "(?i)F$")).as_py():
            numerals = pa.array([_single(text) for text in written.to_pylist()], pa.string())
        if negative:
            numerals = pc.binary_join_element_wise("-", numerals, "")
        return Literals(kind, numerals)


class TextBytes(NamedTuple):
    """Texts as bytes: text ``i`` is ``data[starts[i]:ends[i]]``."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]


def bytes_of(texts: pa.StringArray) -> TextBytes:
    """Return the bytes of texts (no NULL among them), without copying them."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return TextBytes(
        bounds[:-1], bounds[1:], np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    )


def conjuncts_of(texts: pa.StringArray) -> tuple[npt.NDArray[np.int64], TextBytes]:
    """Return the pieces of each text between its outermost ANDs: where those of each text begin, and the pieces.

    >>> offsets, pieces = conjuncts_of(pa.array(["a = 1 AND b BETWEEN 2 AND 3", "c = 4 AND d = 5 OR e"]))
    >>> offsets.tolist(), pieces.starts.tolist(), pieces.ends.tolist()
    ([0, 2, 3], [0, 9, 27], [6, 27, 47])
    """
    whole = bytes_of(texts)
    if not len(whole.starts):
        return np.zeros(1, np.int64), whole
    offsets, starts, ends = split_conjuncts(np.append(whole.starts, whole.ends[-1]), whole.data)
    return offsets, TextBytes(starts, ends, whole.data)


def split_texts(texts: pa.StringArray | TextBytes) -> SplitTexts:
    """Split a batch of texts (no NULL among them).

    >>> batch = split_texts(pa.array(["price < 400", "price <  5", "price < 5"]))
    >>> batch.template_of.tolist()
    [0, 1, 0]
    >>> batch.literals(np.array([0, 2]), 0, 1).integers.tolist()
    [400, 5]
    """
    starts, ends, text_bytes = texts if isinstance(texts, TextBytes) else bytes_of(texts)
    split = kernels.Split(*kernels.split_texts(starts, ends, text_bytes))
    shapes = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(starts),
        [None, pa.py_buffer(split.template_offsets), pa.py_buffer(split.template_bytes)],
    ).dictionary_encode()
    template_of = numbers_of(shapes.indices).astype(np.int32)
    refused = (split.status != kernels.FINE) | (split.depth > MAX_DEPTH) | (ends - starts > MAX_LENGTH)
    template_of[refused] = -1
    templates = [shape.decode("utf-8", "replace") for shape in shapes.dictionary.to_pylist()]
    return SplitTexts(text_bytes, split, templates, template_of)


def whole_texts(
    pieces: SplitTexts, offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> SplitTexts:
    """Return texts, of these rows and lengths, whose pieces between outermost ANDs are split already: their bytes are
    not read again. A text one of whose pieces is refused is.

    >>> offsets, pieces = conjuncts_of(pa.array(["a = 1 AND b = 2", "a = 3 and b = 4"]))
    >>> whole = whole_texts(split_texts(pieces), offsets, np.array([1, 0]), np.array([15, 15]))
    >>> len(whole.templates), whole.template_of.tolist(), whole.literals(np.array([0, 1]), 1, 1).integers.tolist()
    (1, [0, 0], [4, 2])
    """
    counts = np.diff(offsets)[rows]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    order = np.repeat(offsets[rows] - bounds[:-1], counts) + np.arange(bounds[-1])
    numbers = np.ascontiguousarray(pieces.template_of[order])
    shapes = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(rows), [None, pa.py_buffer(numbers.itemsize * bounds), pa.py_buffer(numbers)]
    ).dictionary_encode()
    kinds = [np.frombuffer(shape, numbers.dtype) for shape in shapes.dictionary.to_pylist()]
    refused = np.array([bool((kind < 0).any()) for kind in kinds], bool)
    template_of = numbers_of(shapes.indices).astype(np.int32)
    template_of[refused[template_of] | (lengths > MAX_LENGTH)] = -1
    split = pieces.split._replace(literal_offsets=pieces.split.literal_offsets[offsets[rows]])
    templates = ["AND".join(pieces.templates[piece] for piece in kind.tolist()) for kind in kinds]
    return SplitTexts(pieces.text_bytes, split, templates, template_of)


def refusal(text: str) -> ExpressionError | None:
    """Return why a text is refused before it is parsed, or None.

    >>> print(refusal("a = 'x"))
    this string is never closed (line 1, column 5)
      a = 'x
          ^
    """
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        return ExpressionSyntaxError(
            "this is half of a surrogate pair, not a character", text.encode(errors="replace").decode(), error.start
        )
    if len(encoded) > MAX_LENGTH:
        beyond = len(encoded[:MAX_LENGTH].decode(errors="ignore"))
        return ExpressionLimitError(
            f"the expression has {len(encoded):,} bytes; the limit is {MAX_LENGTH:,}", text, beyond
        )
    batch = split_texts(text_array([text]))
    status = int(batch.split.status[0])
    if status != kernels.FINE:
        at = len(encoded[: int(batch.split.status_at[0])].decode())
        return ExpressionSyntaxError(_REFUSALS[status], text, at)
    if batch.split.depth[0] > MAX_DEPTH:
        return ExpressionLimitError(
            f"the expression nests {batch.split.depth[0]:,} parentheses; the limit is {MAX_DEPTH}",
            text,
            _deepest(batch, text),
        )
    return None


def _deepest(batch: SplitTexts, text: str) -> int:
    """Return where the parenthesis stands that nests beyond the limit; those in strings and comments do not count."""
    depth = 0
    blanks = bytearray(text.encode())
    literals = slice(0, int(batch.split.literal_offsets[1]))
    starts, ends = batch.split.literal_start[literals].tolist(), batch.split.literal_end[literals].tolist()
    for start, end in zip(starts, ends, strict=True):
        blanks[start:end] = b" " * (end - start)
    for found in re.finditer(rb"`[^`]*`|--[^\n]*|/\*.*?\*/|[()]", bytes(blanks), re.DOTALL):
        depth += {b"(": 1, b")": -1}.get(found[0], 0)
        if depth > MAX_DEPTH:
            return len(blanks[: found.start()].decode())
    return 0


def unescape(inner: str, quote: str) -> str:
    r"""Return what Spark reads between the quotes: backslash escapes, and a doubled quote as one.

    >>> unescape(r"it\'s a ''tab\t''", "'")
    "it's a 'tab\t'"
    """
    pieces = [
        piece if piece.startswith("\\") else piece.replace(quote * 2, quote)
        for piece in re.split(r"(\\.)", inner, flags=re.DOTALL)
    ]
    return _ESCAPE.sub(_one_escape, "".join(pieces))


def read_constant(text: str, kind: Kind) -> Constant:
    """Return the constant that a literal's text stands for.

    >>> read_constant("-2.50", "decimal")
    Constant(value=Decimal('-2.50'), kind='decimal', place=-1)
    """
    if kind in ("integer", "decimal"):
        number = Decimal(text)
        if len(number.as_tuple().digits) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
            raise ValueError(f"a number has at most {MAX_DIGITS} digits; write a longer one as a double, like 1e40")
        return Constant(int(number) if kind == "integer" else number, kind)
    if kind == "double":
        return Constant(float(text), kind)
    if kind == "boolean":
        return Constant(text == "True", kind)
    return Constant(text, kind)


def _single(numeral: str) -> str:
    """Return a numeral whose value is what Spark's FLOAT holds, if it has that suffix."""
    bare = numeral.rstrip("dDfF")
    return repr(float(np.float32(bare))) if numeral[-1] in "fF" else bare


def _one_escape(match: re.Match[str]) -> str:
    body = match[1]
    if len(body) > 1 and body[0] in "uU":
        point = int(body[1:], 16)
        return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else "\N{REPLACEMENT CHARACTER}"
    if len(body) == 3:
        return chr(int(body, 8))
    return _ESCAPED.get(body, body)


def _spans(
    text_bytes: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> pa.StringArray:
    """Return these spans of the bytes as an Arrow array."""
    if len(start) == 1:
        offsets, data = np.array([0, end[0] - start[0]], np.int32), text_bytes[start[0] : end[0]]
    else:
        offsets, data = kernels.gather_spans(text_bytes, start, end)
    return pa.StringArray.from_buffers(len(start), pa.py_buffer(offsets), pa.py_buffer(data))
