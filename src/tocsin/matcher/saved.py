"""A matcher as a directory: its index, and beside it the books, programs, ids and texts as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tocsin.errors import OperatorError, SavedIndexError, TocsinError
from tocsin.index import Index
from tocsin.index import saved as saved_index
from tocsin.index.shared import Shared
from tocsin.language.printer import to_text
from tocsin.language.symbolic import AxisKey
from tocsin.matcher.subscriptions import Subscriptions
from tocsin.matcher.tables import from_bytes, to_bytes
from tocsin.operators.conditions import Conditions
from tocsin.operators.operator import Operator
from tocsin.operators.programs import Programs
from tocsin.operators.registry import Registry
from tocsin.space.axes import Axes
from tocsin.space.books import Book
from tocsin.space.filling import Planner
from tocsin.space.space import Space

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Opened:
    """What a saved matcher consists of."""

    index: Index
    axes: Axes
    programs: Programs
    subscriptions: Subscriptions


def save(
    index: Index, space: Space, axes: Axes, programs: Programs, subscriptions: Subscriptions, path: str | Path
) -> None:
    """Write all of it in one step."""
    notes = {
        "tocsin_matcher": FORMAT,
        "space": space.to_json(),
        "axes": [[list(key.path), key.derivation] for key in axes.keys],
        "atoms": [to_text(programs.atoms.leaf(number)) for number in range(len(programs.atoms))],
        "operators": programs.conditions.to_operators(),
    }
    beside = {f"subscriptions.{name}": array for name, array in subscriptions.to_arrays().items()}
    beside |= {f"programs.{name}": array for name, array in programs.to_arrays().items()}
    beside["conditions.texts"] = to_bytes(pa.array(programs.conditions.texts(), pa.string()))
    for number, codec in axes.listed():
        beside |= {f"book{number}.{name}": array for name, array in codec.book.to_arrays().items()}
    for number, concepts in axes.concepts():
        beside |= {f"concepts{number}.{name}": array for name, array in concepts.to_arrays().items()}
    if isinstance(index, Shared):
        beside |= {f"sharing.{name}": array for name, array in index.to_sharing().items()}
        index = index.engine
    saved_index.save(index, path, notes, beside)


def load(path: str | Path, *, verify: bool = False, operators: Iterable[Operator] = (), **options: Any) -> Opened:
    """Open what `save` wrote; SavedIndexError if it is damaged or something else."""
    opened = saved_index.open_saved(path, verify=verify, **options)
    if opened.notes.get("tocsin_matcher") != FORMAT:
        raise SavedIndexError(f"{path}: an index, but no matcher of format {FORMAT} as Matcher.save writes it")

    def part(name: str) -> dict[str, Any]:
        return {key.removeprefix(name): array for key, array in opened.beside.items() if key.startswith(name)}

    try:
        axes = Axes(Space.from_json(opened.notes["space"]), Registry(operators))
        for path_, derivation in opened.notes["axes"]:
            axes.number(AxisKey(tuple(path_), derivation))
        for number, codec in axes.listed():
            codec.book = Book.from_arrays(part(f"book{number}."))
        for number, concepts in axes.concepts():
            concepts.load(part(f"concepts{number}."))
        planner = Planner(axes)
        atoms = [planner.check(text) for text in opened.notes["atoms"]]
        programs = Programs.from_arrays(part("programs."), atoms)  # type: ignore[arg-type]
        programs.conditions = _conditions(opened.notes["operators"], axes, from_bytes(part("conditions.")["texts"]))
        index: Any = Shared.from_sharing(opened.index, part("sharing."))
        return Opened(index, axes, programs, Subscriptions.from_arrays(part("subscriptions.")))
    except OperatorError:
        raise
    except (KeyError, TypeError, ValueError, TocsinError) as error:
        raise SavedIndexError(f"{path}: damaged: {error}") from None


def _conditions(versions: dict[str, str], axes: Axes, texts: pa.Array) -> Conditions:
    """Return the conditions of their texts, whose operators must be there as they were."""
    for name, version in versions.items():
        found = axes.operators.get(name)
        if found is None:
            raise OperatorError(f"subscriptions call the operator {name}, which is not there; pass operators=[{name}]")
        if found.version != version:
            raise OperatorError(
                f"the operator {name} has version {found.version}, but subscriptions were saved with {version}; "
                "load them with that one, or subscribe anew"
            )
    filled = Planner(axes).fill(texts)
    held = {int(filled.rows[box]): (one, at) for one in filled.conditions for at, box in enumerate(one.boxes)}
    conditions = Conditions()
    for row in range(len(texts)):
        if row in held:
            one, at = held[row]
            conditions.number(one.checks(int(one.text_of[at])))
        else:
            conditions.add_empty()
    return conditions
