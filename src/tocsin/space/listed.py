"""Codecs of listed axes: texts as they are or derived, addresses, decimals of more than 18 digits."""

from __future__ import annotations

import sys
from abc import abstractmethod
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import HIGHEST, LOWEST, NULL
from tocsin.language.arrays import bytes_array
from tocsin.language.literals import Literals
from tocsin.language.symbolic import Derivation
from tocsin.language.tree import Constant
from tocsin.space.books import Book
from tocsin.space.codes import (
    NUMERIC,
    Codec,
    Codes,
    Cuts,
    Ends,
    ValueProblem,
    codes_of_all,
    cut_scaled,
    distinct_texts,
    unscaled_decimals,
    unscaled_value,
)
from tocsin.space.scalars import brief

_MAPPED = int(IPv6Address("::ffff:0:0"))
_OFFSET = 2**127
_BOUND = 10**38


class Listed(Codec):
    """A codec that looks codes up in a book."""

    least_key: bytes = b""
    """The least value of the domain."""
    greatest_key: bytes | None = None
    """The greatest value of the domain, None if there is none."""

    def __init__(self) -> None:
        self.book = Book()

    def code(self, value: Any) -> int:  # noqa: D102
        return self.book.find_one(self._key_of(value))

    def check(self, value: Any) -> None:  # noqa: D102
        self._key_of(value)

    def place(self, value: Any) -> int:
        """Return the code of a value that is a key from now on, so that later keys do not change it."""
        return int(self.book.place([self._key_of(value)])[0])

    def holds(self, low: int, high: int) -> bool:
        """Return whether a value of the domain lies between two bounds of subscriptions: labels of keys, their
        neighbours, the ends of the axis."""
        least: bytes | None = self.least_key
        if low > LOWEST:
            key, beyond = self.book.key_near(low)
            least = self._above(key) if beyond > 0 else self._from(key)
        if least is None or high == HIGHEST:
            return least is not None
        if high != low:
            key, beyond = self.book.key_near(high)
        return least < key or (least == key and beyond >= 0)

    def doubtful(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:
        """Return which intervals may be without a value: not those that begin with a key of the domain or with the
        domain itself."""
        first = self.book.find_one(self.least_key)
        last = HIGHEST if self.greatest_key is None else self.book.find_one(self.greatest_key)
        sure = self.book.are_labels(low) & (low >= first) & (low <= last)
        if self.greatest_key is None:
            sure |= high == HIGHEST
        doubts: npt.NDArray[np.bool_] = ~(sure | ((low == LOWEST) & (high >= first)))
        return doubts

    def span(self, ends: Ends, *, keep: bool = False) -> tuple[int, int]:
        """Return the codes of a range: its lower bound is the least value in it, and so is its upper bound the
        greatest, where there is one."""
        least, most, below = self.bounds(ends)
        alone = least == most and not below
        low = LOWEST if ends.low is None and not alone else self._code_of(least, keep)
        if most is None:
            return low, HIGHEST
        high = self._code_of(most, keep)
        return low, high - 1 if below and self.book.are_labels(np.array([high]))[0] else high

    def bounds(self, ends: Ends) -> tuple[bytes, bytes | None, bool]:
        """Return the least value of a range, its upper bound, and whether only what is below that bound belongs to it:
        then there is no greatest. ValueProblem if the range holds no value."""
        low, high = (None if end is None else self._bound(end) for end in (ends.low, ends.high))
        least = self.least_key if low is None else self._above(low) if ends.left_open else self._from(low)
        most, below = (self.greatest_key if high is None and least == self.greatest_key else high), False
        if high is not None and ends.right_open:
            most = self._below(high)
            most, below = (high, True) if most is None else (most, False)
        if least is None or (most is not None and (least > most or (below and least == most))):
            if low is not None and high is not None and low > high:
                raise ValueProblem(f"the lower bound of {ends} is above the upper")
            raise ValueProblem(f"{ends} holds no value")
        return least, most, below

    def _code_of(self, key: bytes, keep: bool) -> int:
        return int(self.book.place([key])[0]) if keep else self.book.find_one(key)

    def _bound(self, value: Any) -> bytes:
        """Return the key of a bound of a range."""
        return self._key_of(value)

    def _from(self, key: bytes) -> bytes | None:
        """Return the least value not below a key; None if there is none."""
        return key

    @abstractmethod
    def _above(self, key: bytes) -> bytes | None:
        """Return the least value above a key; None if there is none."""

    @abstractmethod
    def _below(self, key: bytes) -> bytes | None:
        """Return the greatest value below a key; None if there is none."""

    @abstractmethod
    def _key_of(self, value: Any) -> bytes:
        """Return the key of one Python value that is not None; raise ValueProblem if it does not fit."""


class Numbered(Listed):
    """A listed codec whose keys are whole numbers of 16 bytes, each the neighbour of the next."""

    least_key: bytes
    greatest_key: bytes

    def _from(self, key: bytes) -> bytes | None:
        return max(key, self.least_key) if key <= self.greatest_key else None

    def _above(self, key: bytes) -> bytes | None:
        if key >= self.greatest_key:
            return None
        return max(self.least_key, (int.from_bytes(key, "big") + 1).to_bytes(16, "big"))

    def _below(self, key: bytes) -> bytes | None:
        if key <= self.least_key:
            return b""  # before every value
        return min(self.greatest_key, (int.from_bytes(key, "big") - 1).to_bytes(16, "big"))


class Texts(Listed):
    """Texts by their UTF-8 bytes, whose order is that of code points; or their reversal or change of case."""

    kinds = frozenset({"string"})
    expects = "text"

    def __init__(self, derivation: Derivation = "", synonyms: tuple[tuple[str, str], ...] | None = None) -> None:
        super().__init__()
        self.derivation = derivation
        self._meanings = dict(synonyms or ())
        self._own = Texts("", synonyms) if derivation else self

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        encoded = distinct_texts(values)
        if not len(encoded.dictionary):
            return np.full(len(values), NULL)
        found = self.book.find(derive(self._meant(encoded.dictionary), self.derivation))
        return codes_of_all(found, encoded.indices)

    def place_all(self, values: pa.Array) -> Codes:
        """Return the codes of texts that are keys from now on."""
        encoded = distinct_texts(values)
        if not len(encoded.dictionary):
            return np.full(len(values), NULL)
        placed = np.asarray(self.book.place(derive(self._meant(encoded.dictionary), self.derivation)))
        return codes_of_all(placed, encoded.indices)

    def _meant(self, texts: pa.Array) -> pa.Array:
        """Return what texts mean, where some have synonyms."""
        if not self._meanings:
            return texts
        return pa.array([self._meanings.get(text, text) for text in texts.to_pylist()], pa.large_string())

    def _bound(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise ValueProblem(f"{brief(value)} is not text")
        try:
            return self._meanings.get(value, value).encode()
        except UnicodeEncodeError:
            raise ValueProblem(f"{brief(value)} is not valid text") from None

    def _key_of(self, value: Any) -> bytes:
        key = self._bound(value)
        return derive_one(key.decode(), self.derivation).encode() if self.derivation else key

    def span(self, ends: Ends, *, keep: bool = False) -> tuple[int, int]:
        """Return the codes of a range of texts. What it becomes in another case or reversed is no range: unless it is
        one text, it counts as everything there, and candidates are verified (see `witnesses`)."""
        if not self.derivation:
            return super().span(ends, keep=keep)
        text = self.only(ends)
        if text is None:
            return LOWEST, HIGHEST
        code = self._code_of(derive_one(text, self.derivation).encode(), keep)
        return code, code

    def only(self, ends: Ends) -> str | None:
        """Return the text that a range holds if it holds one and no other."""
        least, most, below = self._own.bounds(ends)
        return least.decode() if least == most and not below else None

    def doubtful(self, low: Codes, high: Codes) -> npt.NDArray[np.bool_]:
        """Return which intervals may be without a text: a key may be in a case that nothing derived is in."""
        return np.ones(len(low), bool) if self._fixed else super().doubtful(low, high)

    @property
    def _fixed(self) -> str:
        """The change of case that leaves every text on the axis as it is; empty if there is none."""
        return self.derivation.split()[0] if self.derivation not in ("", "reversed") else ""

    def _from(self, key: bytes) -> bytes | None:
        if not self._fixed:
            return key
        text = key.decode()
        for at, character in enumerate(text):
            if derive_one(character, self._fixed) != character:  # type: ignore[arg-type]
                following = ord(character) + 1
                while 0xD800 <= following < 0xE000 or derive_one(chr(following), self._fixed) != chr(following):  # type: ignore[arg-type]
                    following += 1
                return (text[:at] + chr(following)).encode()
        return key

    def _above(self, key: bytes) -> bytes | None:
        return self._from(key + b"\0")

    def _below(self, key: bytes) -> bytes | None:
        return key[:-1] if key.endswith(b"\0") else None

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        text = constants.texts if "reversed" not in self.derivation else pc.utf8_reverse(constants.texts)
        if self._meanings and not self.derivation:
            text = pa.array([self._meanings.get(word, word) for word in text.to_pylist()], pa.string())
        labels = np.asarray(self.book.place(text))
        return Cuts(labels, labels, np.zeros(len(labels), bool))

    def cut_alone(self, constant: Constant) -> tuple[int, int] | None:  # noqa: D102
        if self.derivation:
            return None
        word = str(constant.value)
        (label,) = self.book.place([self._meanings.get(word, word).encode()])
        return label, label

    def prefix(self, constants: Literals, cut: tuple[int, int], fold: bool, whole: bool) -> tuple[Codes, Codes]:
        """Return the intervals of the texts that begin with the constants, or are them."""
        text = constants.texts
        if fold:
            text = derive(text, "lower")
        if cut != (0, 0):
            text = pc.utf8_slice_codeunits(text, cut[0], -cut[1] if cut[1] else None)
        if "reversed" in self.derivation:
            text = pc.utf8_reverse(text)
        low = np.asarray(self.book.place(text))
        if whole:
            return low, low
        following = _successors(text)
        if not following.null_count:
            return low, np.asarray(self.book.place(following)) - 1
        high = np.asarray(self.book.place(following.fill_null(b""))) - 1
        return low, np.where(np.array(following.is_null()), HIGHEST, high)


class Addresses(Numbered):
    """Addresses by their 128 bits, version 4 as mapped into version 6."""

    kinds = frozenset({"string"})
    expects = "an IP address"
    least_key, greatest_key = bytes(16), b"\xff" * 16

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        encoded = distinct_texts(values)
        keys = []
        for position, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                keys.append(_address(value))
            except ValueProblem as problem:
                raise ValueProblem(problem.reason, pc.index(encoded.indices, position).as_py()) from None
        if not keys:
            return np.full(len(values), NULL)
        return codes_of_all(self.book.find(bytes_array(keys)), encoded.indices)

    def _key_of(self, value: Any) -> bytes:
        return _address(value)

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        keys = [self._key(text, row) for row, text in enumerate(constants.texts.to_pylist())]
        labels = np.asarray(self.book.place(bytes_array(keys)))
        return Cuts(labels, labels, np.zeros(len(labels), bool))

    def networks(self, constants: Literals) -> tuple[Codes, Codes]:
        """Return the intervals of the addresses inside these networks; an address is a network of one."""
        bounds = [self._network(text, row) for row, text in enumerate(constants.texts.to_pylist())]
        labels = np.asarray(self.book.place(bytes_array([key for pair in bounds for key in pair])))
        return labels[0::2], labels[1::2]

    @staticmethod
    def _key(text: str, row: int) -> bytes:
        try:
            return _address(text)
        except ValueProblem as problem:
            raise ValueProblem(problem.reason, row) from None

    @staticmethod
    def _network(text: str, row: int) -> tuple[bytes, bytes]:
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            raise ValueProblem(
                f"{text!r} is no IP address or network; write '10.0.0.0/8' or '2001:db8::/32'", row
            ) from None
        return _address(network.network_address), _address(network.broadcast_address)


class LongDecimals(Numbered):
    """Decimals of 19 to 38 digits, by their 128 bits."""

    kinds = NUMERIC
    expects = "a decimal number"

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__()
        self.precision, self.scale = precision, scale
        self.least_key, self.greatest_key = _wide(1 - 10**precision), _wide(10**precision - 1)

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        unscaled = unscaled_decimals(values, self.precision, self.scale)
        halves = np.frombuffer(unscaled.buffers()[1], np.uint64)[
            unscaled.offset * 2 : (unscaled.offset + len(values)) * 2
        ]
        swapped = (halves.reshape(-1, 2)[:, ::-1] ^ np.array([2**63, 0], np.uint64)).astype(">u8")
        keys = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(values), [None, pa.py_buffer(swapped.tobytes())])
        found = self.book.find(keys)
        return np.where(np.array(pc.is_null(unscaled)), NULL, found) if unscaled.null_count else found

    def _key_of(self, value: Any) -> bytes:
        return _wide(unscaled_value(value, self.precision, self.scale))

    def cut(self, constants: Literals) -> Cuts:  # noqa: D102
        which, distinct = constants.distinct()
        cuts = [cut_scaled(constant, 10**self.scale) for constant in distinct]
        floor, ceil = (
            np.array(self.book.place([_wide(min(max(pair[side], -_BOUND), _BOUND)) for pair in cuts]), np.int64)
            for side in (0, 1)
        )
        return Cuts(floor[which], ceil[which], np.zeros(len(which), bool))


def derive(values: pa.Array, derivation: Derivation) -> pa.Array:
    """Return texts (none null) changed in case and direction."""
    for step in derivation.split():
        if step == "reversed":
            values = pc.utf8_reverse(values)
        elif pc.all(pc.string_is_ascii(values)).as_py():
            values = (pc.ascii_lower if step == "lower" else pc.ascii_upper)(_rebased(values))
        else:
            values = pa.array([derive_one(value, step) for value in values.to_pylist()], pa.large_string())  # type: ignore[arg-type]
    return values


def _rebased(values: pa.Array) -> pa.Array:
    """Return texts whose bytes begin where the array does.

    A cast of a slice leaves an array without an offset whose bytes begin later; Arrow then folds other bytes.
    """
    if not len(values) or values.offset:
        return values
    width = 8 if pa.types.is_large_string(values.type) else 4
    begins = int.from_bytes(memoryview(values.buffers()[1])[:width], sys.byteorder)
    return pa.concat_arrays([values, values.slice(0, 0)]) if begins else values


def derive_one(value: str, derivation: Derivation) -> str:
    """Return one text changed in case and direction.

    >>> derive_one("Abc", "lower reversed")
    'cba'
    """
    for step in derivation.split():
        value = value[::-1] if step == "reversed" else value.lower() if step == "lower" else value.upper()
    return value


def successor(prefix: str) -> str | None:
    """Return the least text above everything that begins with a prefix; None if there is none.

    >>> successor("ab"), successor("a\U0010ffff"), successor("")
    ('ac', 'b', None)
    """
    while prefix:
        following = ord(prefix[-1]) + 1
        following = 0xE000 if following == 0xD800 else following
        if following <= 0x10FFFF:
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return None


def _successors(prefixes: pa.Array) -> pa.Array:
    """Return the successors of texts: their last byte raised, but where that would be no text."""
    array = prefixes.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    raised: npt.NDArray[np.uint8] = np.frombuffer(data or b"", np.uint8)[: starts[-1]].copy()
    last = raised[np.maximum(starts[1:] - 1, 0)] if len(raised) else np.full(len(array), 0x7F, np.uint8)
    if (np.diff(starts) == 0).any() or np.isin(last, [0x7F, 0xBF]).any():
        return pa.array([successor(each) for each in prefixes.to_pylist()], pa.large_string()).cast(pa.large_binary())
    raised[starts[1:] - 1] += 1
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [None, pa.py_buffer(starts.copy()), pa.py_buffer(raised)]
    )


def _address(value: Any) -> bytes:
    if not isinstance(value, (IPv4Address, IPv6Address)):
        if not isinstance(value, str):
            raise ValueProblem(f"{brief(value)} is no IP address")
        try:
            value = ip_address(value.strip())
        except ValueError:
            raise ValueProblem(f"{brief(value)} is no IP address") from None
    number = int(value) + (_MAPPED if isinstance(value, IPv4Address) else 0)
    return number.to_bytes(16, "big")


def _wide(unscaled: int) -> bytes:
    return (unscaled + _OFFSET).to_bytes(16, "big")
