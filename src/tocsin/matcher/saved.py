"""A matcher as a directory: its index, and beside it the books, programs, ids and texts as plain arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tocsin.errors import OperatorError, SavedIndexError
from tocsin.index import Index
from tocsin.index import saved as saved_index
from tocsin.index.shared import Shared
from tocsin.kernels.checks import check, check_within
from tocsin.language.printer import to_text
from tocsin.language.symbolic import AxisKey
from tocsin.matcher.state import State
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

FORMAT = 2

NOTE_BYTES = 1 << 20
"""The most that a caller's note may take, as JSON: it is part of the manifest, which every load reads."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a saved matcher consists of."""

    index: Index
    axes: Axes
    programs: Programs
    subscriptions: Subscriptions
    note: Any = None


def save(state: State, subscriptions: Subscriptions, path: str | Path, note: Any = None) -> None:
    """Write all of it in one step."""
    index, axes, programs = state.index, state.axes, state.programs
    notes = {
        "tocsin_matcher": FORMAT,
        "note": _checked_note(note),
        "space": axes.space.to_json(),
        "axes": [{"kind": "field", "path": list(key.path), "derivation": key.derivation} for key in axes.keys],
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


def load(
    path: str | Path, *, verify: saved_index.Verify = True, operators: Iterable[Operator] = (), **options: Any
) -> Opened:
    """Open what `save` wrote; SavedIndexError if it is damaged or something else."""
    opened = saved_index.open_saved(path, verify=verify, **options)
    if opened.notes.get("tocsin_matcher") != FORMAT:
        raise SavedIndexError(
            f"{path}: an index, but no matcher of format {FORMAT} as Matcher.save writes it; save again with it"
        )

    def part(name: str) -> dict[str, Any]:
        return {key.removeprefix(name): array for key, array in opened.beside.items() if key.startswith(name)}

    try:
        axes = Axes(Space.from_json(opened.notes["space"]), Registry(operators))
        for described in opened.notes["axes"]:
            axes.number(_axis_key(described))
        for number, codec in axes.listed():
            codec.book = Book.from_arrays(part(f"book{number}."))
        for number, concepts in axes.concepts():
            concepts.load(part(f"concepts{number}."))
        planner = Planner(axes)
        atoms = [planner.check(text) for text in opened.notes["atoms"]]
        programs = Programs.from_arrays(part("programs."), atoms)  # type: ignore[arg-type]
        programs.conditions = _conditions(opened.notes["operators"], axes, from_bytes(part("conditions.")["texts"]))
        subscriptions = Subscriptions.from_arrays(part("subscriptions."))
        numbers = len(subscriptions.owner)
        check(opened.highest < numbers, "boxes that nobody owns")
        check_within("programs of boxes", subscriptions.program, -1, len(programs))
        check_within("conditions of boxes", subscriptions.condition, -1, len(programs.conditions))
        index: Any = Shared.from_sharing(opened.index, part("sharing."), numbers)
        return Opened(index, axes, programs, subscriptions, opened.notes.get("note"))
    except OperatorError:
        raise
    except saved_index.DAMAGE as error:
        raise SavedIndexError(f"{path}: damaged: {error}") from None


def _axis_key(described: dict[str, Any]) -> AxisKey:
    """Return the axis that a manifest describes. Axes of other kinds may come; who does not know them cannot match."""
    if described["kind"] != "field":
        raise SavedIndexError(f"an axis of the kind {described['kind']!r}, which only a newer Tocsin knows")
    return AxisKey(tuple(described["path"]), described["derivation"])


def _checked_note(note: Any) -> Any:
    """Return a caller's note if it is one that comes back as it is."""
    try:
        text = json.dumps(note, allow_nan=False)
        same = json.loads(text) == note
    except (TypeError, ValueError, RecursionError) as error:
        raise SavedIndexError(f"a note is a JSON value, which this is not: {error}") from None
    if not same:
        raise SavedIndexError("a note comes back as JSON has it: with lists, not tuples, and with texts as keys")
    if len(text) > NOTE_BYTES:
        raise SavedIndexError(f"a note of {len(text):,} bytes as JSON; at most {NOTE_BYTES:,} are kept")
    return note


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
            conditions.keep(one.checks(int(one.text_of[at])))
        else:
            conditions.add_empty()
    return conditions
