"""What the dimensions of a space have to do with one another: the attribute tree, synonyms, formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from tocsin.errors import ExpressionError, SpaceError
from tocsin.language.formulas import fields_of, parse_formula
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.scalars import is_text
from tocsin.space.types import Concept, Dimension, Number, Repeated, Scalar, Time

Path = tuple[str, ...]


def families_of(tree: Hierarchy, dimensions: dict[Path, Dimension]) -> dict[Path, tuple[Path, ...]]:
    """Return for each attribute with others below it itself and all of those; it becomes repeated in ``dimensions``.

    An inner attribute need not be declared: it has the type of what is below it.
    """
    families: dict[Path, tuple[Path, ...]] = {}
    for row in tree.order[::-1].tolist():
        name = tree.names[row]
        path = tuple(name.split("."))
        below = sorted(tree.below(row) - {row})
        if not below:
            if path not in dimensions:
                raise SpaceError(f"the attribute tree names {name!r}, which is no dimension; declare it")
            continue
        others = [tuple(tree.names[each].split(".")) for each in below]
        kinds = {other: _scalar(dimensions[other]) for other in others}
        kind = _scalar(dimensions[path]) if path in dimensions else next(iter(kinds.values()))
        for other, found in kinds.items():
            if found != kind:
                raise SpaceError(
                    f"{'.'.join(other)} is below {name} and holds {found.type} of another kind: {found!r}, not {kind!r}"
                )
        dimensions[path] = Repeated(kind)
        families[path] = (path, *others)
    _share_trees({member for family in families.values() for member in family}, dimensions)
    return families


def _share_trees(members: set[Path], dimensions: dict[Path, Dimension]) -> None:
    """Give dimensions of families whose concepts are equal one tree, so that they grow together."""
    held: dict[Concept, Concept] = {}
    for path in sorted(members):
        kind = _scalar(dimensions[path])
        if isinstance(kind, Concept):
            one = held.setdefault(kind, kind)
            dimensions[path] = Repeated(one) if isinstance(dimensions[path], Repeated) else one


def synonyms_of(
    given: Mapping[str, str], tree: Hierarchy | None, dimensions: Mapping[Path, Dimension]
) -> dict[str, Path]:
    """Return the dimension that each synonym means; SpaceError if a word has two meanings or an unknown one."""
    found: dict[str, Path] = {}
    words = {**({} if tree is None else {word: tree.names[row] for word, row in tree.synonyms.items()}), **given}
    for word, name in words.items():
        path = tuple(name.split("."))
        if not word:
            raise SpaceError("a synonym is a word, and not empty")
        if tuple(word.split(".")) in dimensions and tuple(word.split(".")) != path:
            raise SpaceError(f"the synonym {word!r} of {name!r} is a dimension itself; a word has one meaning")
        if tree is not None and word in tree.synonyms and tree.names[tree.synonyms[word]] != name:
            raise SpaceError(f"{word!r} is a synonym of {name!r} and of {tree.names[tree.synonyms[word]]!r}")
        if path not in dimensions:
            advice = f", itself a synonym of {words[name]!r}" if name in words else ""
            raise SpaceError(f"the synonym {word!r} is for {name!r}, which is no dimension{advice}")
        found[word] = path
    return found


class _Fields(Protocol):
    derived: dict[Path, str]
    repeated: frozenset[Path]

    def find(self, path: Path) -> Path | None: ...

    def scalar(self, path: Path) -> Scalar: ...

    def nearest(self, name: str) -> str: ...


def check_formulas(space: _Fields) -> None:
    """Refuse formulas that name unknown or repeated fields, or that need themselves."""
    needs: dict[Path, list[Path]] = {}
    for path, text in space.derived.items():
        name = ".".join(path)
        try:
            fields = fields_of(parse_formula(text))
        except ExpressionError as error:
            raise SpaceError(f"{name}: {error}") from None
        needs[path] = []
        for field in fields:
            found = space.find(field.path)
            if found is None:
                raise SpaceError(f"{name}: there is no field {field.name!r}; {space.nearest(field.name)}")
            if found in space.repeated:
                raise SpaceError(f"{name}: {field.name} has several values; a formula takes fields of one")
            needs[path].append(found)
    for path in needs:
        walked: dict[Path, None] = {}
        waiting = [path]
        while waiting:
            at = waiting.pop()
            for other in needs.get(at, []):
                if other == path:
                    raise SpaceError(f"{'.'.join(path)} is derived from itself, through {'.'.join(at)}")
                if other not in walked:
                    walked[other] = None
                    waiting.append(other)
    for path, text in space.derived.items():
        _check_types(space, path, text)


def _check_types(space: _Fields, path: Path, text: str) -> None:
    """Refuse a formula that applies a function to what it does not take, or comes to another type than its field."""
    from tocsin.space.derived import TypeProblem, compute  # only who has formulas needs what computes them
    from tocsin.space.typed import arrow_type

    formula = parse_formula(text)
    kinds = {field.path: space.find(field.path) for field in fields_of(formula)}
    columns = {name: pa.array([], arrow_type(space.scalar(found))) for name, found in kinds.items() if found}
    try:
        found = compute(formula, columns, 0, "UTC").type
    except TypeProblem as problem:
        raise SpaceError(f"{'.'.join(path)}: the formula {text!r} cannot be computed: {problem}") from None
    kind, wanted = space.scalar(path), arrow_type(space.scalar(path))
    fits = pa.types.is_null(found) or found == wanted or (isinstance(kind, Time) and is_text(found))
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not fits and not (isinstance(kind, Number) and any(each(found) for each in numeric)):
        raise SpaceError(f"{'.'.join(path)}: the formula {text!r} comes to {found}, and the field holds {wanted}")


def _scalar(kind: Dimension) -> Scalar:
    return kind.of if isinstance(kind, Repeated) else kind
