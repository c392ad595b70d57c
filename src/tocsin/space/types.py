"""The types of dimensions: what a field of an event may hold. Declared by the user, frozen, written as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from tocsin.arguments import brief, expect_text, expect_words, is_one_of
from tocsin.errors import SpaceError
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.trees import hierarchy_of

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)\Z")


@dataclass(frozen=True, slots=True)
class Number:
    """A number: ``double`` (the default), ``int64`` or ``decimal(precision, scale)``.

    With a ``unit`` it takes quantities in other units too. ``unit_field`` names the field of an event that says which
    unit its number is in; ``at`` the field that says for which day rates of currencies are taken.

    >>> Number("decimal(10, 2)").decimal
    (10, 2)
    """

    type: ClassVar[str] = "number"
    kind: str = "double"
    unit: str | None = None
    unit_field: str | None = field(default=None, repr=False)
    at: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        expect_text(self.kind, "kind", "'double', 'int64' or 'decimal(precision, scale)'")
        expect_text(self.unit, "unit", "the name of a unit such as 'GB'", optional=True)
        expect_text(self.unit_field, "unit_field", "the name of a field", optional=True)
        expect_text(self.at, "at", "the name of a field", optional=True)
        if self.unit is None and (self.unit_field or self.at):
            raise SpaceError("a number with unit_field or at has a unit that quantities are converted to: unit='...'")
        if self.kind not in ("double", "int64"):
            precision, scale = self.decimal
            if not (1 <= precision <= 38 and 0 <= scale <= precision):
                raise SpaceError(f"{self.kind}: a decimal has 1 to 38 digits and at most as many after the point")

    @property
    def decimal(self) -> tuple[int, int]:
        """The precision and scale of a decimal."""
        found = _DECIMAL.match(self.kind)
        if found is None:
            raise SpaceError(f"a number is 'double', 'int64' or 'decimal(precision, scale)', not {self.kind!r}")
        return int(found[1]), int(found[2])

    @property
    def is_decimal(self) -> bool:
        """Whether this is a decimal."""
        return self.kind.startswith("decimal")


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    type: ClassVar[str] = "boolean"


@dataclass(frozen=True, slots=True)
class Text:
    """Text, ordered by code points as Spark orders it. ``synonyms`` map words to what they mean, in events and in
    constants that a field is compared with.

    >>> Text(synonyms={"US": "United States", "USA": "United States"}).meaning("US")
    'United States'
    """

    type: ClassVar[str] = "text"
    synonyms: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.synonyms is None:
            return
        pairs = dict(self.synonyms) if _are_pairs(self.synonyms) else self.synonyms
        expect_words(pairs, "synonyms", "a mapping of words to what they mean, such as {'USA': 'United States'}")
        for word, meaning in pairs.items():
            if pairs.get(meaning, meaning) != meaning:
                raise SpaceError(f"{word!r} means {meaning!r}, which is itself a synonym of {pairs[meaning]!r}")
        object.__setattr__(self, "synonyms", tuple(pairs.items()) or None)

    def meaning(self, word: str) -> str:
        """Return what a word means: itself, unless it is a synonym."""
        expect_text(word, "word")
        return dict(self.synonyms).get(word, word) if self.synonyms else word


@dataclass(frozen=True, slots=True)
class Time:
    """A moment (``timestamp``), a wall-clock time without zone (``timestamp_ntz``) or a ``date``; microseconds."""

    type: ClassVar[str] = "time"
    kind: Literal["timestamp", "timestamp_ntz", "date"] = "timestamp"

    def __post_init__(self) -> None:
        if not is_one_of(self.kind, ("timestamp", "timestamp_ntz", "date")):
            raise SpaceError(f"a time is 'timestamp', 'timestamp_ntz' or 'date', not {brief(self.kind)}")


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address, version 4 or 6, written as text; a version 4 address equals its mapped version 6 form."""

    type: ClassVar[str] = "address"


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept of a hierarchy, see `tocsin.Hierarchy`: ``tree`` is one, or nested mappings, indented text, a
    `pathlib.Path` of a file (CSV, RDF, ...), or a list of those.

    ``synonyms`` are further words for its names. A term of a subscription that is no concept is an error or a plain
    text (``unknown_terms``), and so is a value of an event (``unknown_values``).

    >>> Concept({"computer": ["laptop", "desktop"]}, synonyms={"notebook": "laptop"}).tree.is_a("notebook", "computer")
    True
    """

    type: ClassVar[str] = "concept"
    tree: Hierarchy
    unknown_terms: Literal["error", "text"] = "error"
    unknown_values: Literal["error", "text"] = "error"

    def __init__(
        self,
        tree: Any,
        *,
        synonyms: Mapping[str, str] | None = None,
        unknown_terms: Literal["error", "text"] = "error",
        unknown_values: Literal["error", "text"] = "error",
    ) -> None:
        hierarchy = hierarchy_of(tree)
        object.__setattr__(self, "tree", hierarchy if synonyms is None else hierarchy.with_synonyms(synonyms))
        for name, value in (("unknown_terms", unknown_terms), ("unknown_values", unknown_values)):
            if not is_one_of(value, ("error", "text")):
                raise SpaceError(f"{name} is 'error' or 'text', not {brief(value)}")
            object.__setattr__(self, name, value)


Scalar: TypeAlias = Number | Boolean | Text | Time | Address | Concept


@dataclass(frozen=True, slots=True)
class Repeated:
    """Several values: a predicate holds if it holds for any of them.

    >>> Repeated(Text()).of
    Text()
    """

    type: ClassVar[str] = "repeated"
    of: Scalar

    def __post_init__(self) -> None:
        if not isinstance(self.of, Scalar):
            raise SpaceError(f"repeated values are numbers, texts, times, concepts, ... and not {brief(self.of)}")


Dimension: TypeAlias = Scalar | Repeated


@dataclass(frozen=True, slots=True)
class Derived:
    """A field computed from others by a formula of Spark SQL (see `tocsin.language.formulas`), and the type it has.

    >>> Derived("year(now()) - graduation_year", Number("int64")).formula
    'year(now()) - graduation_year'
    """

    formula: str
    of: Scalar

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) or not isinstance(self.of, Scalar):
            raise SpaceError("a derived field has a formula and a type: Derived('a + b', Number())")


def _are_pairs(given: object) -> bool:
    """Return whether synonyms are given as pairs, as a `Text` keeps them."""
    several = (list, tuple)
    return isinstance(given, several) and all(isinstance(each, several) and len(each) == 2 for each in given)


_TYPES: dict[str, type[Any]] = {each.type: each for each in (Number, Boolean, Text, Time, Address, Concept, Repeated)}


def to_json(dimension: Dimension, trees: list[Hierarchy] | None = None) -> dict[str, Any]:
    """Return a dimension as JSON values; a tree is written by its place in the list of trees, to which it is added.

    >>> to_json(Repeated(Number("int64")))
    {'type': 'repeated', 'of': {'type': 'number', 'kind': 'int64'}}
    """
    if isinstance(dimension, Repeated):
        return {"type": dimension.type, "of": to_json(dimension.of, trees)}
    fields = {name: getattr(dimension, name) for name in dimension.__dataclass_fields__}
    if isinstance(dimension, Concept):
        trees = [] if trees is None else trees
        fields["tree"] = next((at for at, tree in enumerate(trees) if tree is dimension.tree), len(trees))
        if fields["tree"] == len(trees):
            trees.append(dimension.tree)
    return {"type": dimension.type} | {name: value for name, value in fields.items() if value is not None}


def from_json(data: Any, trees: Sequence[Hierarchy] = ()) -> Dimension:
    """Return the dimension that `to_json` wrote, with its list of trees."""
    if not isinstance(data, dict) or data.get("type") not in _TYPES:
        raise SpaceError(f"a dimension is an object with a type among {', '.join(_TYPES)}, not {data!r}")
    values = {name: value for name, value in data.items() if name != "type"}
    if data["type"] == "repeated" and "of" in values:
        values["of"] = from_json(values["of"], trees)
    if data["type"] == "concept":
        if values.get("tree") not in range(len(trees)):
            raise SpaceError(f"the tree of a concept is one of the {len(trees)} saved, not {values.get('tree')!r}")
        values["tree"] = trees[values["tree"]]
    try:
        dimension: Dimension = _TYPES[data["type"]](**values)
    except TypeError:
        raise SpaceError(f"a {data['type']} dimension does not have these settings: {values!r}") from None
    return dimension
