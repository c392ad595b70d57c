"""The types of dimensions as the documentation has them: reading a value, comparing it, and what lies next to it.

A value that was read is a plain Python value: int, float, Decimal, str, bool, date, datetime (in UTC, or without zone)
or, of an address, the whole number of its IPv6 form. A constant is compared as Spark compares it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

import tocsin
from tests.models.kind import Kind, Misfit, order


class Truth(Kind):
    """True and false."""

    name = "boolean"
    finite = True

    def declare(self) -> Any:
        return tocsin.Boolean()

    def read(self, given: Any) -> bool:
        if not isinstance(given, bool):
            raise Misfit(given)
        return given

    def near(self, constant: Any) -> Iterable[bool]:
        return ()

    def ends(self) -> Iterable[bool]:
        return (False, True)

    def arrow(self) -> list[Any]:
        return [pa.bool_()]


@cache
def unfolded() -> dict[tuple[str, str], list[str]]:
    """Return what becomes a text of one to three characters when it is folded, for the letters below U+3000."""
    found: dict[tuple[str, str], list[str]] = {}
    for number in range(0x3000):
        letter = chr(number)
        for fold in ("lower", "upper"):
            image = folded(letter, fold)
            if image != letter:
                found.setdefault((fold, image), []).append(letter)
    return found


@cache
def cased() -> list[str]:
    """Return all letters that have another case."""
    letters = (chr(number) for number in range(0x20000))  # beyond there is none
    return [letter for letter in letters if letter.lower() != letter or letter.upper() != letter]


def folded(text: str, fold: str | None) -> str:
    """Return a text in small or capital letters."""
    return text if fold is None else text.lower() if fold == "lower" else text.upper()


class Words(Kind):
    """Texts by code points. A synonym is read as what it means."""

    name = "text"

    def __init__(self, synonyms: Mapping[str, str] | None = None) -> None:
        self.synonyms = dict(synonyms or {})

    def declare(self) -> Any:
        return tocsin.Text(synonyms=self.synonyms or None)

    def read(self, given: Any) -> str:
        if not isinstance(given, str):
            raise Misfit(given)
        return self.synonyms.get(given, given)

    def near(self, constant: Any) -> Iterator[str]:
        """The text after any other is that text and a NUL; there is none directly before, unless it ends in one."""
        yield constant
        yield constant + "\0"
        yield constant + "\0\0\0"
        if constant:
            yield constant[:-1]
            if ord(constant[-1]) > 0xE000 or 0 < ord(constant[-1]) < 0xD800:
                yield constant[:-1] + chr(ord(constant[-1]) - 1) + "\U0010ffff"

    def ends(self) -> Iterable[str]:
        return ("", "\0", "\U0010ffff\U0010ffff")

    def arrow(self) -> list[Any]:
        return [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


class Days(Kind):
    """Dates of the years 1 to 9999."""

    name = "date"

    def __init__(self, zone: str = "UTC") -> None:
        self.zone = ZoneInfo(zone)

    def declare(self) -> Any:
        return tocsin.Time("date")

    def read(self, given: Any) -> date:
        if isinstance(given, str):
            return date.fromisoformat(given)
        if isinstance(given, datetime) or not isinstance(given, date):
            raise Misfit(given)
        return given

    def constant(self, given: Any) -> Any:
        return date.fromisoformat(given) if isinstance(given, str) else given

    def compare(self, value: Any, constant: Any) -> int:
        if not isinstance(constant, datetime):
            return order(value, constant)
        first = datetime(value.year, value.month, value.day)
        if constant.tzinfo is not None:
            return order(first.replace(tzinfo=self.zone).astimezone(UTC), constant.astimezone(UTC))
        return order(first, constant)

    def near(self, constant: Any) -> Iterator[date]:
        day = constant.date() if isinstance(constant, datetime) else constant
        for step in (-2, -1, 0, 1, 2):
            if date.min.toordinal() <= day.toordinal() + step <= date.max.toordinal():
                yield date.fromordinal(day.toordinal() + step)

    def ends(self) -> Iterable[date]:
        return (date.min, date(1970, 1, 1), date.max)

    def arrow(self) -> list[Any]:
        return [pa.date32(), pa.date64(), pa.string(), pa.large_string()]


TICK = timedelta(microseconds=1)


class Moments(Kind):
    """Moments with a zone, held in UTC, or wall-clock times without one; microseconds."""

    def __init__(self, zoned: bool, zone: str = "UTC") -> None:
        self.zoned, self.zone = zoned, ZoneInfo(zone)
        self.name = "timestamp" if zoned else "timestamp_ntz"

    def declare(self) -> Any:
        return tocsin.Time(self.name)  # type: ignore[arg-type]

    def read(self, given: Any) -> datetime:
        if isinstance(given, str):
            given = datetime.fromisoformat(given)
        if not isinstance(given, datetime):
            raise Misfit(given)
        if self.zoned:
            return (given if given.tzinfo else given.replace(tzinfo=self.zone)).astimezone(UTC)
        if given.tzinfo:
            raise Misfit(given)
        return given

    def constant(self, given: Any) -> Any:
        if isinstance(given, str):
            given = datetime.fromisoformat(given)
        elif not isinstance(given, datetime):
            given = datetime(given.year, given.month, given.day)
        if not self.zoned:
            return given.replace(tzinfo=None)
        return (given if given.tzinfo else given.replace(tzinfo=self.zone)).astimezone(UTC)

    def near(self, constant: Any) -> Iterator[datetime]:
        for step in (-TICK, timedelta(0), TICK):
            try:
                yield constant + step
            except OverflowError:
                continue

    def ends(self) -> Iterable[datetime]:
        zone = UTC if self.zoned else None
        return (datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone))

    def arrow(self) -> list[Any]:
        return [pa.timestamp("us", "UTC" if self.zoned else None), pa.string(), pa.large_string()]


MAPPED = 0xFFFF << 32


class Hosts(Kind):
    """Addresses as the whole numbers of their IPv6 form."""

    name = "address"

    def declare(self) -> Any:
        return tocsin.Address()

    def read(self, given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, (str, ipaddress.IPv4Address, ipaddress.IPv6Address)):
            raise Misfit(given)
        try:
            address = ipaddress.ip_address(given)
        except ValueError as error:
            raise Misfit(given) from error
        return int(address) + (MAPPED if address.version == 4 else 0)

    def near(self, constant: Any) -> Iterator[int]:
        for value in (constant - 1, constant, constant + 1):
            if 0 <= value < 2**128:
                yield value

    def ends(self) -> Iterable[int]:
        return (0, MAPPED - 1, MAPPED, MAPPED + 2**32 - 1, MAPPED + 2**32, 2**128 - 1)

    def arrow(self) -> list[Any]:
        return [pa.string(), pa.large_string()]


def network(text: str) -> tuple[int, int]:
    """Return the first and the last address of a network, or of a single address."""
    found = ipaddress.ip_network(text, strict=False)
    base = MAPPED if found.version == 4 else 0
    return base + int(found.network_address), base + int(found.broadcast_address)


class Tree:
    """Names and their parents, walked one by one."""

    def __init__(self, parents: Mapping[str, Iterable[str]], synonyms: Mapping[str, str] | None = None) -> None:
        self.parents = {name: list(above) for name, above in parents.items()}
        self.synonyms = dict(synonyms or {})

    def meaning(self, word: str) -> str:
        return self.synonyms.get(word, word)

    def is_a(self, name: str, concept: str) -> bool:
        """Return whether a name is a concept or below it."""
        return name == concept or any(self.is_a(above, concept) for above in self.parents.get(name, ()))

    def grow(self, additions: Mapping[str, Iterable[str]], synonyms: Mapping[str, str]) -> None:
        """Add names below others, and further words."""
        for above, names in additions.items():
            for name in names:
                known = self.parents.setdefault(self.meaning(name), [])
                if self.meaning(above) not in known:
                    known.append(self.meaning(above))
        self.synonyms |= {word: self.meaning(name) for word, name in synonyms.items()}


class Concepts(Kind):
    """Names in a hierarchy, without order; words that are none are refused, or texts beside it."""

    name = "concept"
    ordered = False

    def __init__(self, tree: Tree, texts: bool = False) -> None:
        self.tree, self.texts = tree, texts

    def declare(self) -> Any:
        parents = {name: list(above) for name, above in self.tree.parents.items()}
        unknown: Any = "text" if self.texts else "error"
        return tocsin.Concept(
            tocsin.Hierarchy.of(parents, dict(self.tree.synonyms)), unknown_terms=unknown, unknown_values=unknown
        )

    def read(self, given: Any) -> str:
        if not isinstance(given, str):
            raise Misfit(given)
        name = self.tree.meaning(given)
        if name not in self.tree.parents and not self.texts:
            raise Misfit(given)
        return name

    def compare(self, value: Any, constant: Any) -> int:
        return int(value != constant)

    def near(self, constant: Any) -> Iterable[str]:
        return (constant,)

    def ends(self) -> Iterable[str]:
        return [*self.tree.parents, *(["no such word"] if self.texts else [])]

    def arrow(self) -> list[Any]:
        return [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
