"""Units of measure and currencies: exact factors between them, from pint or from a table of rates with dates."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.arguments import brief, expect, expect_path, expect_several, expect_text, expect_words
from tocsin.errors import UnitError

SYMBOLS = {"$": "USD", "€": "EUR", "£": "GBP"}
"""The signs of money that are read without being declared."""

_UNIT_NAME = "the name of a unit such as 'GB'"
_CODE = re.compile(r"[A-Z]{3}\Z")
_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*(.*?)\s*\Z", re.DOTALL)
_SIGN_FIRST = re.compile(rf"\s*([^\d\s.+-]+)\s*({_NUMBER})\s*\Z")

MOST_QUANTITY = 400
"""How many characters the text of a quantity has at most."""

MOST_UNIT = 100
"""How many characters the name of a unit has at most."""

MOST_MAGNITUDE = 400
"""How many digits before the point, or zeros behind it, a number that is converted has at most."""

MOST_POWER_DIGITS = 2
"""How many digits a power in a unit has at most: with more, pint computes for ever."""

_UPTO = f"{{1,{MOST_POWER_DIGITS}}}"
_POWER = rf"(?:\s*(?:\*\*|\^)\s*(?:[+-]?\d{_UPTO}(?:\.\d)?|\(\s*[+-]?\d{_UPTO}(?:/\d)?\s*\))|[⁺⁻]?[⁰¹²³⁴-⁹]{_UPTO})?"
_FACTOR = rf"(?:1(?!\d)|(?:[^\W\d¹²³⁰⁴-⁹]|[%°'])(?:[^\W¹²³⁰⁴-⁹]|[%°'])*{_POWER})"
_EXPRESSION = re.compile(rf"[\s(]*{_FACTOR}(?:[\s()*/·.]+{_FACTOR})*[\s)]*\Z")
"""What of units pint is shown: names with powers of at most two digits, multiplied and divided."""


class Affine(NamedTuple):
    """A conversion: the value times ``factor`` plus ``offset``, both exact."""

    factor: Fraction
    offset: Fraction

    def __call__(self, value: Fraction) -> Fraction:
        """Return a value converted."""
        return value * self.factor + self.offset


SAME = Affine(Fraction(1), Fraction(0))


class Rate(NamedTuple):
    """What one unit of a currency is worth in the base currency, from a day on, until before another."""

    currency: str
    rate: Fraction
    start: date
    end: date


class Rates:
    """Exchange rates into a base currency: rows of currency, rate and, if they change, the days from and until which
    each holds (the second is excluded; it ends where the next of its currency begins).

    Rates are exact: write them as text, integers or decimals; a float counts as it prints.

    >>> rates = Rates("USD", [("EUR", "1.08", "2026-01-01"), ("EUR", "1.10", "2026-07-01"), ("GBP", "1.25")])
    >>> rates.between("EUR", "USD", date(2026, 3, 1)), rates.between("EUR", "GBP", None)
    (Fraction(27, 25), Fraction(22, 25))
    """

    def __init__(self, base: str, rows: Iterable[Iterable[Any]]) -> None:
        expect_text(base, "base", "the currency that rates are given in, such as 'USD'")
        expect_several(rows, "rows", "a list of rates: (currency, rate), and the days from and until which each holds")
        self.base = base
        found: dict[str, list[tuple[date, date | None, Fraction]]] = {}
        for row in rows:
            expect_several(row, "a row of rates", "currency, rate and, if wanted, two days")
            currency, rate, start, end = _row(tuple(row))
            if currency == base:
                raise UnitError(f"{base} is the base of the rates and worth 1; it has no row")
            found.setdefault(currency, []).append((start, end, rate))
        self._rates = {currency: _periods(currency, sorted(each)) for currency, each in found.items()}

    @classmethod
    def read(cls, path: str | Path, base: str) -> Rates:
        """Read rates from CSV with the columns currency, rate and, if wanted, from and until."""
        expect_path(path)
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as file:
                table = csv.DictReader(file)
                names = [str(name).strip().lower() for name in table.fieldnames or []]
                if not {"currency", "rate"} <= set(names):
                    raise UnitError(f"{path}: the first line names columns currency and rate; it says {names}")
                rows = [[(row.get(name) or None) for name in ("currency", "rate", "from", "until")] for row in table]
        except OSError as error:
            raise UnitError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, csv.Error) as error:  # not UTF-8, or no name of a file
            raise UnitError(f"{path} is not CSV: {error}") from None
        return cls(base, rows)

    def __contains__(self, currency: object) -> bool:
        return currency == self.base or currency in self._rates

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rates) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.base, len(self._rates)))

    def starts(self) -> list[date]:
        """The days at which some rate begins or ends."""
        return sorted({day for each in self._rates.values() for rate in each for day in (rate.start, rate.end)})

    def between(self, unit: str, target: str, day: date | None) -> Fraction:
        """Return what one of a currency is worth in another, on a day; without one, by the latest rates."""
        for name, currency in (("unit", unit), ("target", target)):
            expect_text(currency, name, "a currency such as 'EUR'")
            if currency not in self:
                known = ", ".join(sorted([self.base, *self._rates])[:8])
                raise UnitError(f"there is no rate of {brief(currency)}; there is {known}")
        expect(day, (date, type(None)), "day", "a datetime.date or None")
        return self._worth(unit, day) / self._worth(target, day)

    def _worth(self, currency: str, day: date | None) -> Fraction:
        if currency == self.base:
            return Fraction(1)
        periods = self._rates[currency]
        if day is None:
            return periods[-1].rate
        for period in periods:
            if period.start <= day < period.end:
                return period.rate
        known = f"from {periods[0].start} until before {periods[-1].end}"
        raise UnitError(f"there is no rate of {currency} for {day}; they are known {known}")

    def to_json(self) -> dict[str, Any]:
        """Return the rates as JSON values."""
        rows = [
            [rate.currency, str(rate.rate), rate.start.isoformat(), rate.end.isoformat()]
            for each in self._rates.values()
            for rate in each
        ]
        return {"base": self.base, "rows": rows}


class Units:
    """What units mean in a space: the ``rates`` of currencies, and further ``names`` of units (``{"G": "GB"}``).

    Everything that is no currency is looked up in pint.

    >>> Units(names={"G": "GB"}).conversion("G", "MB", None).factor
    Fraction(1000, 1)
    """

    def __init__(self, *, rates: Rates | None = None, names: Mapping[str, str] | None = None) -> None:
        expect(rates, (Rates, type(None)), "rates", "tocsin.Rates(...) or None")
        if names is not None:
            expect_words(names, "names", "a mapping of names to units, such as {'G': 'GB'}")
        self.rates = rates
        self.names = dict(names or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def resolved(self, unit: str) -> str:
        """Return the name of a unit that a name or sign stands for."""
        expect_text(unit, "unit", _UNIT_NAME)
        bare = unit.removeprefix("units:")
        return self.names.get(unit) or self.names.get(bare) or SYMBOLS.get(bare, bare)

    def is_currency(self, unit: str) -> bool:
        """Return whether a unit is money: one of the rates, or three capital letters that no rate knows."""
        expect_text(unit, "unit", _UNIT_NAME)
        return (self.rates is not None and unit in self.rates) or (bool(_CODE.match(unit)) and not _known(unit))

    def check(self, unit: str) -> None:
        """Refuse a unit that nobody knows."""
        if not isinstance(unit, str) or not unit.strip():
            raise UnitError(f"a unit has a name, such as 'GB'; {unit!r} is none")
        unit = self.resolved(unit)
        if not self.is_currency(unit):
            _dimension(unit)

    def conversion(self, unit: str, target: str, day: date | None) -> Affine:
        """Return how values in a unit become values in another; UnitError if one is unknown or they measure different
        things."""
        expect_text(unit, "unit", _UNIT_NAME)
        expect_text(target, "target", _UNIT_NAME)
        if not unit.strip():
            raise UnitError(f"the unit is empty; leave it out where the number is in {target}")
        unit, target = self.resolved(unit), self.resolved(target)
        if unit == target:
            return SAME
        money = self.is_currency(unit), self.is_currency(target)
        if all(money):
            if self.rates is None or unit not in self.rates or target not in self.rates:
                raise UnitError(f"there is no rate from {unit} to {target}; give the space Units(rates=Rates(...))")
            return Affine(self.rates.between(unit, target, day), Fraction(0))
        if any(money):
            first, second = ("money" if self.is_currency(each) else _dimension(each) for each in (unit, target))
            raise UnitError(f"{unit} measures {first}, and {target} {second}")
        if _dimension(unit) != _dimension(target):
            raise UnitError(f"{unit} measures {_dimension(unit)}, and {target} {_dimension(target)}")
        return _conversion(unit, target)

    def to_json(self) -> dict[str, Any]:
        """Return the units as JSON values."""
        found: dict[str, Any] = {"names": self.names} if self.names else {}
        return found | ({"rates": self.rates.to_json()} if self.rates is not None else {})

    @classmethod
    def from_json(cls, data: Any) -> Units:
        """Return the units that `to_json` wrote."""
        try:
            given = data.get("rates")
            rates = Rates(given["base"], given["rows"]) if given is not None else None
            return cls(rates=rates, names=data.get("names"))
        except (KeyError, TypeError, AttributeError) as error:
            raise UnitError(f"these are not units as they are saved: {error!r}") from None


def read_quantity(text: str) -> tuple[Fraction, str | None]:
    """Return the number and the unit that a text such as '40 GB', '$450' or '7' names.

    >>> read_quantity("2.5e3 kg"), read_quantity("$ 450"), read_quantity("7")
    ((Fraction(2500, 1), 'kg'), (Fraction(450, 1), '$'), (Fraction(7, 1), None))
    """
    if len(text) > MOST_QUANTITY:
        raise UnitError(f"{text[:40]!r}... is no quantity: it has {len(text):,} characters of {MOST_QUANTITY} at most")
    found = _QUANTITY.match(text)
    if found is None:
        turned = _SIGN_FIRST.match(text)
        if turned is None:
            raise UnitError(f"{text!r} is no quantity; write a number and a unit, like '40 GB'")
        return _exact(turned[2], text), turned[1]
    if re.match(r",\d", found[2]):
        raise UnitError(f"{text!r} is no quantity; write the number without commas, like '40000 USD'")
    return _exact(found[1], text), found[2] or None


def _exact(numeral: str, text: str) -> Fraction:
    try:
        return fraction_of(Decimal(numeral))
    except ArithmeticError:
        raise UnitError(f"{text!r} is out of reach of any number") from None


def fraction_of(number: Any) -> Fraction:
    """Return a number exactly; OverflowError if it is so great or so small that computing with it would take long.

    >>> fraction_of(Decimal("1.5")), fraction_of(7)
    (Fraction(3, 2), Fraction(7, 1))
    """
    if isinstance(number, Decimal):
        far = number.is_finite() and number != 0 and abs(number.adjusted()) > MOST_MAGNITUDE
        digits = len(number.as_tuple().digits)
    else:
        far = isinstance(number, int) and number.bit_length() > 4 * MOST_MAGNITUDE
        digits = 0
    if far or digits > 2 * MOST_MAGNITUDE:
        raise OverflowError(f"a number of more than {MOST_MAGNITUDE} digits")
    return Fraction(0) if isinstance(number, Decimal) and number == 0 else Fraction(number)


def _row(row: tuple[Any, ...]) -> tuple[str, Fraction, date, date | None]:
    if not 2 <= len(row) <= 4 or not isinstance(row[0], str) or not row[0].strip():
        raise UnitError(f"a rate is a row of currency, rate and, if wanted, two days, not {row!r}")
    given = repr(row[1]) if isinstance(row[1], float) else row[1]
    try:
        rate = Fraction(given)
    except (ArithmeticError, TypeError, ValueError):
        raise UnitError(f"the rate of {row[0]} is a number, not {brief(row[1])}") from None
    if rate <= 0:
        raise UnitError(f"the rate of {row[0]} is above 0, not {brief(row[1])}")
    start, end = (_day(row[at]) if len(row) > at and row[at] is not None else None for at in (2, 3))
    return row[0].strip(), rate, start or date.min, end


def _day(value: Any) -> date:
    if isinstance(value, datetime) and value == value:  # NaT of pandas is a datetime
        return value.date()
    if isinstance(value, date) and value == value:
        return value
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError:
        raise UnitError(f"a day is written like 2026-01-31, not {brief(value)}") from None


def _periods(currency: str, rows: list[tuple[date, date | None, Fraction]]) -> list[Rate]:
    periods = []
    for at, (start, end, rate) in enumerate(rows):
        following = rows[at + 1][0] if at + 1 < len(rows) else date.max
        if start >= following or (end is not None and (end <= start or end > following)):
            raise UnitError(f"two rates of {currency} hold on {max(start, min(following, end or following))}")
        periods.append(Rate(currency, rate, start, end or following))
    return periods


@lru_cache(maxsize=1)
def _registry() -> Any:
    try:
        import pint
    except ModuleNotFoundError:
        raise UnitError("converting units needs pint: pip install 'tocsin[units]'") from None
    return pint.UnitRegistry(non_int_type=Fraction)


@lru_cache(maxsize=4096)
def _unit(name: str) -> Any:
    if len(name) > MOST_UNIT or not _EXPRESSION.match(name):
        cut = f"{name[:40]!r}..." if len(name) > MOST_UNIT else repr(name)
        raise UnitError(
            f"there is no unit {cut}; a unit has at most {MOST_UNIT} characters: names such as km, with powers of at "
            "most two digits, * and /"
        )
    registry = _registry()
    try:
        return registry.Unit(name)
    except Exception:  # pint raises many kinds for what it cannot read
        raise UnitError(f"there is no unit {name!r}") from None


def _known(name: str) -> bool:
    try:
        _unit(name)
    except UnitError:
        return False
    return True


@lru_cache(maxsize=4096)
def _dimension(name: str) -> str:
    """Return what a unit measures, as pint writes it."""
    parts = sorted((str(base).strip("[]"), Fraction(power)) for base, power in _unit(name).dimensionality.items())
    return " · ".join(base if power == 1 else f"{base}^{power}" for base, power in parts) or "a ratio"


@lru_cache(maxsize=4096)
def _conversion(unit: str, target: str) -> Affine:
    quantity = _registry().Quantity
    try:
        zero, one, two = (
            Fraction(quantity(Fraction(each), _unit(unit)).to(_unit(target)).magnitude) for each in (0, 1, 2)
        )
    except Exception:  # pint raises many kinds: of logarithms, of offsets, of its own printing
        raise UnitError(f"{unit} cannot be converted to {target}") from None
    if two - one != one - zero:
        raise UnitError(f"{unit} cannot be converted to {target}: one is no multiple of the other")
    return Affine(one - zero, zero)
