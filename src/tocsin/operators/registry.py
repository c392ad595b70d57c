"""Which operators a name may mean: those given to a matcher, then those of its space, of packages, and ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from tocsin.arguments import brief, expect_several
from tocsin.errors import OperatorError
from tocsin.operators.operator import Operator
from tocsin.operators.processes import Processes, processes_of
from tocsin.operators.resources import Loaded, loaded_of
from tocsin.operators.serving import told
from tocsin.operators.values import shown

T = TypeVar("T")

GROUP = "tocsin.operators"
"""The group of entry points under which a package offers its operators."""

SHIPPED = {
    "within": "tocsin.operators.geometry",
    "intersects": "tocsin.operators.geometry",
    "distance": "tocsin.operators.geometry",
    "nearby": "tocsin.operators.geometry",
    "matches": "tocsin.operators.text",
    "mentions": "tocsin.operators.text",
    "resembles": "tocsin.operators.embeddings",
    "similarity": "tocsin.operators.embeddings",
}
_EXTRAS = {"shapely": "geo", "re2": "text", "rdflib": "ontology"}

_provided: dict[str, Operator] = {}
_kept: dict[str, tuple[Processes | None, Loaded | None]] = {}
_installed: dict[str, Any] | None = None
_finding = threading.Lock()


class Registry(Mapping[str, Operator]):
    """Operators by name. Those of packages, and ours, are loaded when they are first asked for.

    >>> "mentions" in Registry(), "conjure" in Registry()
    (True, False)
    """

    def __init__(self, *given: Iterable[Operator]) -> None:
        self._given: dict[str, Operator] = {}
        self._found: dict[str, Operator] = {}
        for group in given:
            own: dict[str, Operator] = {}
            expect_several(group, "operators", "a list of operators")
            for each in group:
                if not isinstance(each, Operator):
                    raise OperatorError(f"{brief(each)} is no operator; decorate the function with @tocsin.operator")
                if own.setdefault(each.name, each) is not each:
                    raise OperatorError(f"there are two operators {each.name}; call one something else: name='...'")
            self._given |= own

    @property
    def given(self) -> tuple[Operator, ...]:
        """The operators that were given, not found."""
        return tuple(self._given.values())

    def __getitem__(self, name: str) -> Operator:
        if name in self._given:
            return self._given[name]
        if name not in self._found:  # what a name meant once it goes on meaning here, whatever is provided later
            self._found[name] = _looked_up(name)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._given, *_provided, *installed(), *SHIPPED)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._given or name in _provided or name in installed() or name in SHIPPED


def provide(operators: Iterable[Operator]) -> None:
    """Make operators known to every matcher of this process; workers of Spark are told so of theirs.

    Their processes, if they have some of their own, and their resources stay until another operator of that name is
    provided, whatever matchers come and go: what they have loaded is loaded once.
    """
    for each in operators:
        _provided[each.name] = each
        _kept[each.name] = processes_of(each), None if each.resource is None else loaded_of(each)


def with_operators(operators: Iterable[Operator], function: Callable[..., T], *arguments: Any) -> T:
    """Provide operators and call a function, in a worker.

    >>> with_operators([], max, 1, 2)
    2
    """
    provide(operators)
    return function(*arguments)


def installed() -> dict[str, Any]:
    """Return the entry points of operators, looked up once a process."""
    global _installed
    with _finding:
        if _installed is None:
            _installed = {point.name.lower(): point for point in entry_points(group=GROUP)}
        return _installed


def _looked_up(name: str) -> Operator:
    if name in _provided:
        return _provided[name]
    found = installed()
    return _loaded(name, found[name]) if name in found else _shipped(name)


def _loaded(name: str, point: Any) -> Operator:
    """Return the operator of an entry point; one that is broken is refused where it is asked for, and only there."""
    try:
        made = point.load()
    except (Exception, SystemExit) as error:  # whatever a package does when it is imported
        raise OperatorError(f"the operator {name} is offered by {point.value}, which fails: {told(error)}") from error
    if not isinstance(made, Operator):
        raise OperatorError(f"the operator {name} is offered by {point.value}, which is no operator: {shown(made)}")
    if made.name != name:
        raise OperatorError(f"the operator {name} is offered by {point.value}, whose name is {made.name}; call it so")
    return made


def _shipped(name: str) -> Operator:
    try:
        made: Operator = getattr(import_module(SHIPPED[name]), name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(str(error.name).partition(".")[0])
        if extra is None:
            raise
        raise OperatorError(f"{name} needs {error.name}; install it with: pip install 'tocsin[{extra}]'") from None
    return made
