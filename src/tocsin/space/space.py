"""The space: which dimensions events have, and what a dimension left out means."""

from __future__ import annotations

import copy
import difflib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from tocsin.arguments import (
    brief,
    expect,
    expect_path,
    expect_several,
    expect_text,
    expect_words,
    is_one_of,
)
from tocsin.errors import SpaceError, UnitError
from tocsin.space import schema
from tocsin.space.attributes import check_formulas, families_of, synonyms_of
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.names import path_key
from tocsin.space.trees import hierarchy_of
from tocsin.space.types import Concept, Derived, Dimension, Number, Repeated, Scalar, from_json, to_json
from tocsin.space.units import Units

Unspecified = Literal["null", "any"]
FORMAT = 1


class Space:
    """Named, typed dimensions. Nested fields are nested mappings or dotted names.

    ``unspecified`` says what an event means that leaves a dimension out: ``null`` (no value, as in SQL) or ``any`` (it
    spans its domain). ``timezone`` is the zone of timestamps written without one. ``operators`` may be called in
    expressions over this space; they are not part of its saved form. A space never changes.

    >>> from tocsin.space.types import Number, Text
    >>> space = Space({"price": Number(), "seller": {"city": Text()}})
    >>> list(space)
    ['price', 'seller.city']
    >>> space["seller.city"]
    Text()
    """

    def __init__(
        self,
        dimensions: Mapping[str, Dimension | Derived | Mapping[str, Any]],
        *,
        unspecified: Unspecified = "null",
        timezone: str = "UTC",
        operators: Iterable[Any] = (),
        units: Units | None = None,
        attributes: Any = None,
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        if not is_one_of(unspecified, ("null", "any")):
            raise SpaceError(f"unspecified is 'null' or 'any', not {brief(unspecified)}")
        _check_settings(dimensions, timezone, operators, units, synonyms)
        declared: dict[tuple[str, ...], Dimension | Derived] = {}
        for path, kind in _flattened(dimensions, ()):
            if path in declared:
                raise SpaceError(f"{'.'.join(path)} is declared twice, by its name and as part of another")
            declared[path] = kind
        self.derived = {path: kind.formula for path, kind in declared.items() if isinstance(kind, Derived)}
        self._dimensions: dict[tuple[str, ...], Dimension] = {
            path: kind.of if isinstance(kind, Derived) else kind for path, kind in declared.items()
        }
        self.attributes = None if attributes is None else hierarchy_of(attributes)
        self._families: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}
        if self.attributes is not None:
            self._families = families_of(self.attributes, self._dimensions)
        self.synonyms = synonyms_of(synonyms or {}, self.attributes, self._dimensions)
        if not self._dimensions:
            raise SpaceError("a space needs at least one dimension")
        self._by_folded: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for path in self._dimensions:
            self._by_folded.setdefault(path_key(path), []).append(path)
        self.unspecified: Unspecified = unspecified
        self.timezone = timezone
        self.operators: dict[str, Any] = _operators_by_name(operators)
        self.units = Units() if units is None else units
        for path, kind in self._dimensions.items():
            _check_unit(path, kind, self.units)
        try:
            self.zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise SpaceError(f"there is no time zone {timezone!r}; write it like 'Europe/Paris'") from None
        self.repeated = frozenset(path for path, kind in self._dimensions.items() if isinstance(kind, Repeated))
        check_formulas(self)

    @classmethod
    def from_arrow(cls, arrow_schema: Any, **settings: Any) -> Space:
        """Return the space of a table with this schema; columns whose type has no axis (maps, binary) are left out.

        >>> Space.from_arrow(pa.schema({"price": pa.float64(), "tags": pa.list_(pa.string())}))
        Space({'price': Number(kind='double', unit=None), 'tags': Repeated(of=Text())})
        """
        return cls(schema.dimensions_of(arrow_schema), **settings)

    @classmethod
    def infer(cls, events: Any, **settings: Any) -> Space:
        """Return the space of these events: anything Arrow-shaped, or dictionaries.

        >>> Space.infer([{"price": 3}, {"price": 2.5, "city": "NYC"}])
        Space({'price': Number(kind='double', unit=None), 'city': Text()})
        """
        if isinstance(events, Mapping):
            raise SpaceError("infer takes several events: a list of dictionaries or a table")
        if isinstance(events, Iterable) and not hasattr(events, "__arrow_c_stream__"):
            return cls(schema.dimensions_of_values(events), **settings)
        if not hasattr(events, "__arrow_c_stream__"):
            raise SpaceError(f"infer takes a list of dictionaries or a table, not {brief(events)}")
        return cls.from_arrow(pa.RecordBatchReader.from_stream(events).schema, **settings)

    def __getitem__(self, name: str | tuple[str, ...]) -> Dimension:
        path = tuple(name.split(".")) if isinstance(name, str) else name
        return self._dimensions[path]

    def __iter__(self) -> Iterator[str]:
        return (".".join(path) for path in self._dimensions)

    def __len__(self) -> int:
        return len(self._dimensions)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and tuple(name.split(".")) in self._dimensions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(tuple(self._dimensions))

    def __repr__(self) -> str:
        settings = ""
        if self.unspecified != "null":
            settings += f", unspecified={self.unspecified!r}"
        if self.timezone != "UTC":
            settings += f", timezone={self.timezone!r}"
        return f"Space({ {'.'.join(path): kind for path, kind in self._dimensions.items()} }{settings})"

    def scalar(self, path: tuple[str, ...]) -> Scalar:
        """Return the type of a field's single values."""
        try:
            dimension = self._dimensions[path]
        except (KeyError, TypeError):
            example = next(iter(self._dimensions))
            raise SpaceError(f"{brief(path)} is no path of a field; one is {example!r}") from None
        return dimension.of if isinstance(dimension, Repeated) else dimension

    def find(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the dimension that a name in an expression means: exactly, or else but for its case as Spark does."""
        expect(path, tuple, "path", "the parts of a field's name, such as ('seller', 'city')")
        if path in self._dimensions:
            return path
        if ".".join(path) in self.synonyms:
            return self.synonyms[".".join(path)]
        alike = self._by_folded.get(path_key(path), []) if path else []
        return alike[0] if len(alike) == 1 else None

    def nearest(self, name: str) -> str:
        """Return advice for a name that is not there: the nearest ones that are.

        >>> Space({"price": schema.Number()}).nearest("prise")
        'did you mean price?'
        >>> Space({"items": {"sku": schema.Text(), "count": schema.Number()}}).nearest("items")
        'it holds other fields, test one of those: items.sku, items.count'
        """
        expect_text(name, "name", "the name of a field")
        key = path_key(tuple(name.split(".")))
        inside = [".".join(path) for path in self.paths() if len(path) > len(key) and path_key(path)[: len(key)] == key]
        if inside:
            return f"it holds other fields, test one of those: {', '.join(inside[:8])}"
        return nearest_of(name, list(self))

    def paths(self) -> list[tuple[str, ...]]:
        """Return the paths of all dimensions."""
        return list(self._dimensions)

    def family(self, path: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Return the dimensions whose values count as those of one: itself, and all below it in the attribute tree."""
        expect(path, tuple, "path", "the parts of a field's name, such as ('seller', 'city')")
        return self._families.get(path, (path,))

    def root(self, name: str) -> str:
        """Return the topmost attribute above a dimension; of one that stands alone, itself.

        >>> from tocsin.space.types import Text
        >>> kinds = {"email": Text(), "cellphone": Text(), "name": Text()}
        >>> space = Space(kinds, attributes={"contact": ["email", "cellphone"]})
        >>> space.root("email"), space.root("name"), space["contact"]
        ('contact', 'name', Repeated(of=Text()))
        """
        path = self._known_path(name)
        name = ".".join(path)
        return self.attributes.root(name) if self.attributes is not None and name in self.attributes else name

    def domain(self, name: str) -> str:
        """Return what the values of a dimension are: the root of its tree of concepts, or its type.

        >>> from tocsin.space.types import Concept, Number
        >>> space = Space({"target": Concept({"product": ["computer"]}), "price": Number()})
        >>> space.domain("target"), space.domain("price")
        ('product', 'number')
        """
        kind = self.scalar(self._known_path(name))
        if not isinstance(kind, Concept):
            return kind.type
        roots = [each for each, above in zip(kind.tree.names, kind.tree.parents, strict=True) if not above]
        return roots[0] if len(roots) == 1 else kind.type

    def _known_path(self, name: str) -> tuple[str, ...]:
        expect_text(name, "name", "the name of a field")
        path = self.find(tuple(name.split(".")))
        if path is None:
            raise SpaceError(f"there is no field {name!r}; {self.nearest(name)}")
        return path

    def with_tree(self, old: Hierarchy, new: Hierarchy) -> Space:
        """Return the space in which dimensions of one tree have another, grown from it."""
        for tree, name in ((old, "old"), (new, "new")):
            expect(tree, Hierarchy, name, "a tocsin.Hierarchy")
        space = copy.copy(self)
        space._dimensions = {path: _with_tree(kind, old, new) for path, kind in self._dimensions.items()}
        return space

    def to_json(self) -> dict[str, Any]:
        """Return the space as JSON values."""
        trees: list[Hierarchy] = []
        dimensions = [
            {"path": list(path), **to_json(kind, trees), **_formula(self.derived.get(path))}
            for path, kind in self._dimensions.items()
        ]
        return {
            "tocsin_space": FORMAT,
            "unspecified": self.unspecified,
            "timezone": self.timezone,
            "dimensions": dimensions,
            **({"attributes": self.attributes.to_json()} if self.attributes is not None else {}),
            **({"synonyms": {word: ".".join(path) for word, path in self.synonyms.items()}} if self.synonyms else {}),
            **({"units": self.units.to_json()} if self.units.to_json() else {}),
            **({"trees": [tree.to_json() for tree in trees]} if trees else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Space:
        """Return the space that `to_json` wrote.

        >>> space = Space({"price": schema.Number()}, unspecified="any")
        >>> Space.from_json(space.to_json()) == space
        True
        """
        if not isinstance(data, dict) or data.get("tocsin_space") != FORMAT:
            raise SpaceError(f"this is not a space of format {FORMAT}, as Space.save writes it")
        nested: dict[str, Any] = {}
        try:
            trees = [Hierarchy.from_json(each) for each in data.get("trees", [])]
            for entry in data["dimensions"]:
                *parents, name = entry["path"]
                level = nested
                for parent in parents:
                    level = level.setdefault(parent, {})
                kind = from_json({key: value for key, value in entry.items() if key not in ("path", "formula")}, trees)
                level[name] = Derived(entry["formula"], kind) if "formula" in entry else kind  # type: ignore[arg-type]
            units = Units.from_json(data["units"]) if "units" in data else None
            settings: dict[str, Any] = {"units": units, "synonyms": data.get("synonyms")}
            settings["attributes"] = Hierarchy.from_json(data["attributes"]) if "attributes" in data else None
            return cls(nested, unspecified=data["unspecified"], timezone=data["timezone"], **settings)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SpaceError(f"this is not a space as Space.save writes it: {error!r}") from None

    def save(self, path: str | Path) -> None:
        """Write the space to a JSON file, in one step; SpaceError if that cannot be written, which leaves what was
        there."""
        expect_path(path)
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"
        try:
            target = Path(path).resolve()
            if target.exists() and not target.is_file():  # a device, or what cannot be written to at all
                target.write_text(text, encoding="utf-8")
                return
            written = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            try:
                written.write_text(text, encoding="utf-8")
                written.replace(target)
            finally:
                written.unlink(missing_ok=True)
        except (OSError, ValueError) as error:
            raise SpaceError(f"{path} cannot be written: {_reason(error)}") from None

    @classmethod
    def load(cls, path: str | Path) -> Space:
        """Read a space from a JSON file; SpaceError if it cannot be read or is none."""
        expect_path(path)
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SpaceError(f"{path} is not a space as Space.save writes it: {error}") from None
        except (OSError, ValueError) as error:
            raise SpaceError(f"{path} cannot be read: {_reason(error)}") from None


def _check_settings(
    dimensions: object, timezone: object, operators: Iterable[Any], units: object, synonyms: object
) -> None:
    """Refuse settings of a space that are of wrong types."""
    expect(dimensions, Mapping, "dimensions", "a mapping of names to types, such as {'price': Number()}")
    expect_text(timezone, "timezone", "the name of a time zone such as 'Europe/Paris'")
    expect_several(operators, "operators", "a list of operators")
    expect(units, (Units, type(None)), "units", "tocsin.Units(...) or None")
    if synonyms is not None:
        expect_words(synonyms, "synonyms", "a mapping of words to the names of fields that they mean")


def _operators_by_name(operators: Iterable[Any]) -> dict[str, Any]:
    """Return operators by their names; SpaceError for what is none."""
    found = list(operators)
    for each in found:
        if not isinstance(getattr(each, "name", None), str) or not hasattr(each, "outputs"):
            raise SpaceError(f"{brief(each)} is no operator; decorate the function with @tocsin.operator")
    return {each.name: each for each in found}


def _reason(error: OSError | ValueError) -> str:
    """Return why a file cannot be read or written."""
    return getattr(error, "strerror", None) or str(error)


def nearest_of(name: str, names: list[str]) -> str:
    """Return advice that names the nearest of these names, or all of them if they are few."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(sorted(names)[:8])
    return f"there is {shown}{', ...' if len(names) > 8 else ''}" if names else "there is none"


def _formula(formula: str | None) -> dict[str, str]:
    return {} if formula is None else {"formula": formula}


def _with_tree(kind: Dimension, old: Hierarchy, new: Hierarchy) -> Dimension:
    """Return a dimension with another tree, if it has the one named."""
    if isinstance(kind, Repeated):
        inner = _with_tree(kind.of, old, new)
        return Repeated(inner) if isinstance(inner, Concept) else kind
    if not isinstance(kind, Concept) or kind.tree is not old:
        return kind
    return Concept(new, unknown_terms=kind.unknown_terms, unknown_values=kind.unknown_values)


def _check_unit(path: tuple[str, ...], kind: Dimension, units: Units) -> None:
    """Refuse a unit that nobody knows; where pint is not installed it is found out when one is converted."""
    number = kind.of if isinstance(kind, Repeated) else kind
    if isinstance(number, Number) and number.unit is not None:
        try:
            units.check(number.unit)
        except UnitError as error:
            if "pip install" not in str(error):
                raise UnitError(f"{'.'.join(path)}: {error}") from None


def _flattened(
    dimensions: Mapping[str, Any], parents: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Dimension | Derived]]:
    """Yield every dimension with its path."""
    if len(parents) > schema.MOST_NESTED:
        raise SpaceError(f"{'.'.join(parents[:3])}...: dimensions are nested more than {schema.MOST_NESTED} deep")
    for name, kind in dimensions.items():
        if not isinstance(name, str) or not name:
            raise SpaceError(f"the name of a dimension is text, not {brief(name)}")
        path = parents + (tuple(name.split(".")) if not parents else (name,))
        if isinstance(kind, Mapping):
            yield from _flattened(kind, path)
        elif isinstance(kind, (Dimension, Derived)):
            yield path, kind
        else:
            raise SpaceError(f"{'.'.join(path)}: a dimension is Number(), Text(), ... and not {brief(kind)}")
