"""Codecs of listed axes: texts as they are or derived, addresses, decimals of more than 18 digits."""

from __future__ import annotations

from abc import abstractmethod
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.index.boxes import HIGHEST, NULL
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
    ValueProblem,
    codes_of_all,
    cut_scaled,
    distinct_texts,
    unscaled_decimals,
    unscaled_value,
)

_MAPPED = int(IPv6Address("::ffff:0:0"))
_OFFSET = 2**127
_BOUND = 10**38


class Listed(Codec):
    """A codec that looks codes up in a book."""

    def __init__(self) -> None:
        self.book = Book()

    def code(self, value: Any) -> int:  # noqa: D102
        return self.book.find_one(self._key_of(value))

    def place(self, value: Any) -> int:
        """Return the code of a value that is a key from now on, so that later keys do not change it."""
        return int(self.book.place([self._key_of(value)])[0])

    @abstractmethod
    def _key_of(self, value: Any) -> bytes:
        """Return the key of one Python value that is not None; raise ValueProblem if it does not fit."""


class Texts(Listed):
    """Texts by their UTF-8 bytes, whose order is that of code points; or their reversal or change of case."""

    kinds = frozenset({"string"})
    expects = "text"

    def __init__(self, derivation: Derivation = "", synonyms: tuple[tuple[str, str], ...] | None = None) -> None:
        super().__init__()
        self.derivation = derivation
        self._meanings = dict(synonyms or ())

    def codes(self, values: pa.Array) -> Codes:  # noqa: D102
        encoded = distinct_texts(values)
        if not len(encoded.dictionary):
            return np.full(len(values), NULL)
        found = self.book.find(derive(encoded.dictionary, self.derivation))
        return codes_of_all(found, encoded.indices)

    def _key_of(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise ValueProblem(f"{value!r} is not text")
        try:
            return derive_one(value, self.derivation).encode()
        except UnicodeEncodeError:
            raise ValueProblem(f"{value!r} is not valid text") from None

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
        if pc.min(pc.binary_length(text)).as_py():
            following = _successors(text)
        else:
            following = pa.array([_successor(key.encode()) for key in text.to_pylist()], pa.large_binary())
        if not following.null_count:
            return low, np.asarray(self.book.place(following)) - 1
        high = np.asarray(self.book.place(following.fill_null(b""))) - 1
        return low, np.where(np.array(following.is_null()), HIGHEST, high)


class Addresses(Listed):
    """Addresses by their 128 bits, version 4 as mapped into version 6."""

    kinds = frozenset({"string"})
    expects = "an IP address"

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


class LongDecimals(Listed):
    """Decimals of 19 to 38 digits, by their 128 bits."""

    kinds = NUMERIC
    expects = "a decimal number"

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__()
        self.precision, self.scale = precision, scale

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
            values = pc.ascii_lower(values) if step == "lower" else pc.ascii_upper(values)
        else:
            values = pa.array([derive_one(value, step) for value in values.to_pylist()], pa.large_string())  # type: ignore[arg-type]
    return values


def derive_one(value: str, derivation: Derivation) -> str:
    """Return one text changed in case and direction.

    >>> derive_one("Abc", "lower reversed")
    'cba'
    """
    for step in derivation.split():
        value = value[::-1] if step == "reversed" else value.lower() if step == "lower" else value.upper()
    return value


def _successor(prefix: bytes) -> bytes | None:
    """Return the least byte string above everything that begins with the prefix; None for the empty prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def _successors(prefixes: pa.Array) -> pa.Array:
    """Return the successors of texts that are not empty: the last byte of UTF-8 is below 255, so it can be raised."""
    array = prefixes.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    raised: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)[: starts[-1]].copy()
    raised[starts[1:] - 1] += 1
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [None, pa.py_buffer(starts.copy()), pa.py_buffer(raised)]
    )


def _address(value: Any) -> bytes:
    if not isinstance(value, (IPv4Address, IPv6Address)):
        if not isinstance(value, str):
            raise ValueProblem(f"{value!r} is no IP address")
        try:
            value = ip_address(value.strip())
        except ValueError:
            raise ValueProblem(f"{value!r} is no IP address") from None
    number = int(value) + (_MAPPED if isinstance(value, IPv4Address) else 0)
    return number.to_bytes(16, "big")


def _wide(unscaled: int) -> bytes:
    return (unscaled + _OFFSET).to_bytes(16, "big")
