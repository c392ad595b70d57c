"""Whatever a public function is given, what it refuses it refuses with an error of ours, never one from deep inside.

Every parameter of every public name is given every odd value, the other parameters being right. A parameter that is
added without a place in this table fails `test_every_parameter_is_tried`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tocsin
from tocsin import Concept, Hierarchy, Matcher, Number, Rates, Region, Space, Subjects, Text, TocsinError, Units
from tocsin.errors import ArgumentTypeError, OptionError, SpaceError

ODD: list[Any] = [
    3,
    -1,
    True,
    float("nan"),
    10**400,
    "a",
    "",
    "\ud800",
    "\0",
    b"x",
    None,
    object(),
    object,
    [1],
    ["a"],
    [None],
    (),
    ("a", "b"),
    {},
    {1: 2},
    {"a": 3},
    {"a": "b"},
    {"a": ["b"]},
    {"a": {"b": 3}},
    [("a",)],
    frozenset({"a"}),
    range(3),
    len,
    np.array([1, 2]),
    np.float32(1),
    pa.table({"a": [1]}),
    pa.array([1]),
    Path("nowhere"),
    Number(),
    Space({"a": Number()}),
    Hierarchy.of({"a": []}),
]

EVENTS = pa.table({"price": [1.0], "city": ["a"], "kind": ["b"]})
TREE = {"a": [], "b": ["a"]}


def space() -> Space:
    return Space({"price": Number(), "city": Text(), "kind": Concept(Hierarchy.of(TREE))})


def matcher() -> Matcher:
    made = Matcher(space(), "scan")
    made.subscribe("x", "price < 5")
    return made


def subjects() -> Subjects:
    made = Subjects(space())
    made.subscribe("x", {"price": (1, 2)})
    made.put("k", {"price": 1})
    return made


def rates() -> Rates:
    return Rates("USD", [("EUR", "1.1", "2026-01-01")])


def priced(price: float) -> bool:
    return price > 1


def declared(function: Any = priced, **settings: Any) -> Any:
    return tocsin.operator(function, **settings)


def tree() -> Hierarchy:
    return Hierarchy.of(TREE)


_REGION = {"region": {"price": 1}, "regions": None, "space": None, "filter": "all"}
_OPERATOR: dict[str, Any] = {
    "function": priced, "name": "dear", "reads": ("price",), "outputs": (), "version": "1", "form": "scalar",
    "parameters": None, "cost": None, "limit": None, "on_failure": "false", "retries": 0, "isolate": "none",
    "takes_null": False, "remember": 0, "prepare": None, "check": None, "bounding": None, "bounded": (),
    "variadic": False, "resource": None,
}  # fmt: skip

CASES: dict[str, tuple[Callable[[], Callable[..., Any]], dict[str, Any]]] = {
    "Address": (lambda: tocsin.Address, {}),
    "Boolean": (lambda: tocsin.Boolean, {}),
    "Concept": (
        lambda: Concept,
        {"tree": TREE, "synonyms": {}, "unknown_terms": "text", "unknown_values": "text"},
    ),
    "Derived": (lambda: tocsin.Derived, {"formula": "price * 2", "of": Number()}),
    "Hierarchy": (lambda: Hierarchy, {"names": ["a"], "parents": [[]], "synonyms": {}}),
    "Hierarchy.above": (lambda: tree().above, {"row": 0}),
    "Hierarchy.below": (lambda: tree().below, {"row": 0}),
    "Hierarchy.from_json": (lambda: Hierarchy.from_json, {"data": tree().to_json()}),
    "Hierarchy.grown": (lambda: tree().grown, {"parents": {"c": ["a"]}, "synonyms": {}}),
    "Hierarchy.is_a": (lambda: tree().is_a, {"word": "b", "concept": "a"}),
    "Hierarchy.nearest": (lambda: tree().nearest, {"word": "b"}),
    "Hierarchy.of": (lambda: Hierarchy.of, {"parents": TREE, "synonyms": {}}),
    "Hierarchy.path": (lambda: tree().path, {"word": "b", "concept": "a"}),
    "Hierarchy.root": (lambda: tree().root, {"word": "b"}),
    "Hierarchy.row": (lambda: tree().row, {"word": "b"}),
    "Hierarchy.to_json": (lambda: tree().to_json, {}),
    "Hierarchy.with_synonyms": (lambda: tree().with_synonyms, {"synonyms": {}}),
    "Interval": (
        lambda: lambda **given: subjects().put("z", {"price": tocsin.Interval(**given)}),
        {"low": 1, "high": 2, "closed": "both"},
    ),
    "Matcher": (
        lambda: Matcher,
        {"space": space(), "engine": "adaptive", "threads": 1, "operators": (), "order": "adaptive",
         "memory_limit": None, "background": False, "fresh": 64},
    ),
    "Matcher.explain": (lambda: matcher().explain, {"event": {"price": 1}, "id": "x"}),
    "Matcher.grow": (lambda: matcher().grow, {"field": "kind", "additions": {"a": ["d"]}, "synonyms": {}}),
    "Matcher.load": (
        lambda: Matcher.load,
        {"path": "matcher", "verify": True, "threads": 1, "operators": (), "order": "adaptive"},
    ),
    "Matcher.match": (lambda: matcher().match, {"event": {"price": 1}, "unknown": "ignore"}),
    "Matcher.match_batch": (
        lambda: matcher().match_batch,
        {"events": EVENTS, "missing": "error", "unknown": "ignore", "problems": None},
    ),
    "Matcher.match_json": (lambda: matcher().match_json, {"source": '{"price": 1}'}),
    "Matcher.moved_batch": (lambda: matcher().moved_batch, {"old": EVENTS, "new": EVENTS, "missing": "error"}),
    "Matcher.never": (lambda: matcher().never, {}),
    "Matcher.observe": (lambda: matcher().observe, {"events": EVENTS}),
    "Matcher.save": (lambda: matcher().save, {"path": "again", "note": None}),
    "Matcher.stats": (lambda: matcher().stats, {}),
    "Matcher.subscribe": (
        lambda: matcher().subscribe,
        {"id": "y", "expression": "price < 5", "duplicates": "error"},
    ),
    "Matcher.subscribe_json": (
        lambda: matcher().subscribe_json,
        {"source": '{"id": "y", "expression": "price < 5"}', "duplicates": "error", "problems": None},
    ),
    "Matcher.subscribe_many": (
        lambda: matcher().subscribe_many,
        {"subscriptions": pa.table({"id": ["y"], "expression": ["price < 5"]}), "duplicates": "error",
         "problems": None},
    ),
    "Matcher.unsubscribe": (lambda: matcher().unsubscribe, {"id": "x"}),
    "Matcher.unsubscribe_many": (lambda: matcher().unsubscribe_many, {"ids": ["x"]}),
    "Number": (
        lambda: lambda **given: Space(
            {"n": Number(**given), "a": Text(), "b": tocsin.Time()}, units=Units(rates=rates())
        ),
        {"kind": "double", "unit": "USD", "unit_field": "a", "at": "b"},
    ),
    "Rates": (lambda: Rates, {"base": "USD", "rows": [("EUR", "1.1", "2026-01-01")]}),
    "Rates.between": (lambda: rates().between, {"unit": "EUR", "target": "USD", "day": None}),
    "Rates.read": (lambda: Rates.read, {"path": "rates.csv", "base": "USD"}),
    "Rates.starts": (lambda: rates().starts, {}),
    "Rates.to_json": (lambda: rates().to_json, {}),
    "Region": (lambda: lambda **given: subjects().put("z", Region(**given)), {"of": {"price": 1}, "space": None}),
    "Repeated": (lambda: tocsin.Repeated, {"of": Number()}),
    "Space": (
        lambda: Space,
        {"dimensions": {"price": Number()}, "unspecified": "null", "timezone": "UTC", "operators": (),
         "units": None, "attributes": None, "synonyms": None},
    ),
    "Space.domain": (lambda: space().domain, {"name": "price"}),
    "Space.family": (lambda: space().family, {"path": ("price",)}),
    "Space.find": (lambda: space().find, {"path": ("price",)}),
    "Space.from_arrow": (lambda: Space.from_arrow, {"arrow_schema": pa.schema([("a", pa.int64())])}),
    "Space.from_json": (lambda: Space.from_json, {"data": space().to_json()}),
    "Space.infer": (lambda: Space.infer, {"events": EVENTS}),
    "Space.load": (lambda: Space.load, {"path": "space.json"}),
    "Space.nearest": (lambda: space().nearest, {"name": "price"}),
    "Space.paths": (lambda: space().paths, {}),
    "Space.root": (lambda: space().root, {"name": "price"}),
    "Space.save": (lambda: space().save, {"path": "again.json"}),
    "Space.scalar": (lambda: space().scalar, {"path": ("price",)}),
    "Space.to_json": (lambda: space().to_json, {}),
    "Space.with_tree": (lambda: space().with_tree, {"old": tree(), "new": tree()}),
    "Subjects": (
        lambda: Subjects,
        {"spaces": space(), "properties": None, "engine": None, "operators": ()},
    ),
    "Subjects.change": (lambda: subjects().change, {"id": "x", **_REGION, "properties": None}),
    "Subjects.delete": (lambda: subjects().delete, {"key": "k"}),
    "Subjects.delete_many": (lambda: subjects().delete_many, {"keys": ["k"]}),
    "Subjects.matches": (lambda: subjects().matches, {}),
    "Subjects.publish": (lambda: subjects().publish, {"key": "y", **_REGION, "audience": None}),
    "Subjects.put": (lambda: subjects().put, {"key": "y", "region": {"price": 1}}),
    "Subjects.put_many": (
        lambda: subjects().put_many,
        {"publications": pa.table({"key": ["y"], "price": [1.0]}), "key": "key", "space": None},
    ),
    "Subjects.stats": (lambda: subjects().stats, {}),
    "Subjects.subscribe": (lambda: subjects().subscribe, {"id": "y", **_REGION, "properties": None}),
    "Subjects.subscribe_many": (
        lambda: subjects().subscribe_many,
        {"subscriptions": pa.table({"id": ["y"], "expression": ["price < 5"]}), "space": None, "tell": True},
    ),
    "Subjects.unsubscribe": (lambda: subjects().unsubscribe, {"id": "x"}),
    "Subjects.update": (lambda: subjects().update, {"key": "k", **_REGION, "audience": None}),
    "Text": (lambda: Text, {"synonyms": {"a": "b"}}),
    "Text.meaning": (lambda: Text({"a": "b"}).meaning, {"word": "a"}),
    "Time": (lambda: tocsin.Time, {"kind": "date"}),
    "Transitions.to_arrow": (lambda: subjects().put("z", {"price": 1}).to_arrow, {"encoded": False}),
    "Units": (lambda: Units, {"rates": rates(), "names": {}}),
    "Units.check": (lambda: Units().check, {"unit": "km"}),
    "Units.conversion": (lambda: Units().conversion, {"unit": "m", "target": "km", "day": None}),
    "Units.from_json": (lambda: Units.from_json, {"data": Units(rates=rates()).to_json()}),
    "Units.is_currency": (lambda: Units().is_currency, {"unit": "EUR"}),
    "Units.resolved": (lambda: Units().resolved, {"unit": "EUR"}),
    "Units.to_json": (lambda: Units().to_json, {}),
    "operator": (lambda: declared, _OPERATOR),
    "read_ontology": (
        lambda: tocsin.read_ontology,
        {"path": "tree.ttl", "format": "turtle", "language": "en", "ambiguous": "error", "properties": False},
    ),
}  # fmt: skip
"""By public name: how the callable is made anew, and arguments that it takes."""

RESULTS = {"Problem", "Transitions", "TocsinError"}
"""What users are given and do not make."""


@pytest.fixture(autouse=True, scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("arguments"))
        matcher().save("matcher")
        space().save("space.json")
        Path("rates.csv").write_text("currency,rate,from\nEUR,1.1,2026-01-01\n")
        Path("tree.ttl").write_text("@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n<http://x/a> a s:Concept .\n")
        yield


def public() -> Iterator[tuple[str, Any]]:
    for name in tocsin.__all__:
        found = getattr(tocsin, name)
        if callable(found) and name not in RESULTS:
            yield name, found
        if inspect.isclass(found) and name not in RESULTS - {"Transitions"}:
            for method, function in inspect.getmembers(found, callable):
                if not method.startswith("_"):
                    yield f"{name}.{method}", function


def test_every_parameter_is_tried() -> None:
    missing = []
    for name, found in public():
        parameters = inspect.signature(found).parameters.values()
        named = {each.name for each in parameters if each.name != "self" and each.kind is not each.VAR_KEYWORD}
        missing += [f"{name}: {each}" for each in sorted(named - set(CASES.get(name, (None, {}))[1]))]
        missing += [] if name in CASES else [name]
    assert missing == []


@pytest.mark.parametrize("name", CASES)
def test_the_right_arguments_are_taken(name: str) -> None:
    make, right = CASES[name]
    make()(**right)


@pytest.mark.parametrize("name", [name for name, (_, right) in CASES.items() if right])
def test_odd_arguments_are_taken_or_refused_by_name(name: str) -> None:
    make, right = CASES[name]
    escaped = []
    for parameter in right:
        for odd in ODD:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    make()(**{**right, parameter: odd})
                except TocsinError as error:
                    if not str(error):
                        escaped.append(f"{parameter}={odd!r}: an error that says nothing")
                except Exception as error:
                    escaped.append(f"{parameter}={odd!r}: {error!r}")
    assert escaped == []


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Space("a"), "dimensions is a mapping of names to types, such as {'price': Number()}, not 'a'"),  # type: ignore[arg-type]
        (lambda: Space(3), "dimensions is a mapping"),  # type: ignore[arg-type]
        (lambda: Space({"a": Number()}, timezone=3), "timezone is the name of a time zone"),  # type: ignore[arg-type]
        (lambda: Space({"a": Number()}, units=3), "units is tocsin.Units"),  # type: ignore[arg-type]
        (lambda: Hierarchy.of(3), "parents is a mapping of each name to a list of its parents"),  # type: ignore[arg-type]
        (lambda: Hierarchy.of({"a": 3}), "parents of 'a' is a list of names, not 3"),  # type: ignore[dict-item]
        (lambda: Hierarchy.of({"a": [], "b": "a"}), "parents of 'b' is a list of names, not 'a'"),
        (lambda: Number(3), "kind is 'double', 'int64' or 'decimal(precision, scale)', not 3"),  # type: ignore[arg-type]
        (lambda: Number(unit=3), "unit is the name of a unit such as 'GB', not 3"),  # type: ignore[arg-type]
        (lambda: Text("ab"), "synonyms is a mapping of words to what they mean"),
        (lambda: Matcher({"price": Number()}), "space is a tocsin.Space, made with"),  # type: ignore[arg-type]
        (lambda: Matcher(space(), thread=2), "the engine adaptive has no option 'thread'; its options are"),
        (lambda: Matcher(space(), memory_limit="1 GB"), "memory_limit is a whole number of at least 0"),
        (lambda: Matcher(space()).save(3), "path is the path of a file or directory"),  # type: ignore[arg-type]
        (lambda: Matcher(space()).match_batch(EVENTS, problems=()), "problems is a list"),  # type: ignore[arg-type]
        (lambda: declared(reads="price"), "priced: reads is a list of names of fields, not 'price'"),
        (lambda: declared(bounded=3), "priced: bounded is a list of places"),
        (lambda: tocsin.operator(3), "an operator is a function, not 3"),  # type: ignore[call-overload]
    ],
)
def test_a_wrong_type_is_a_type_error_that_names_the_argument(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        call()
    assert says in str(caught.value)
    assert isinstance(caught.value, (TypeError, TocsinError))


def test_a_wrong_word_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="missing is 'error' or 'unspecified', not 'all'"):
        matcher().moved_batch(EVENTS, EVENTS, missing="all")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="ambiguous is 'error' or 'drop', not 'keep'"):
        tocsin.read_ontology("tree.ttl", ambiguous="keep")  # type: ignore[arg-type]


def test_operators_of_a_space_are_operators() -> None:
    with pytest.raises(SpaceError, match="is no operator; decorate the function"):
        Space({"price": Number()}, operators=[priced])


def test_problems_of_an_earlier_batch_stay_in_their_places() -> None:
    problems: list[Any] = ["noted before"]
    made = matcher()
    made.subscribe("b", "kind = 'b'")
    made.match_batch(EVENTS.set_column(2, "kind", pa.array(["nothing"])), problems=problems)
    assert problems[0] == "noted before"
    assert [problem.row for problem in problems[1:]] == [0]
