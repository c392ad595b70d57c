"""What an operator is: a Python function with declared arguments and outputs, cost, limit and policy on failure."""

from __future__ import annotations

import importlib
import inspect
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from tocsin.errors import OperatorError
from tocsin.operators.declaring import called_of, check_declared, check_given, parameters_of
from tocsin.operators.keys import Made
from tocsin.operators.prepared import Asked as Asked
from tocsin.operators.prepared import Prepared as Prepared
from tocsin.operators.serving import told
from tocsin.operators.values import shown

OnFailure = Literal["false", "error"]
Isolate = Literal["none", "process", "fresh"]
Form = Literal["scalar", "vector", "bulk"]

_EVERYTHING = (-np.inf, np.inf)
_MOST_MADE = 2**17
"""So many prepared constants are kept between the check of a subscription and its taking effect."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator as `operator` declares it. Calling it calls the function.

    ``form`` says how the function is called: ``scalar`` with the values of one event; ``vector`` with a list of values
    for each field, one an event of the batch, and one set of constants; ``bulk`` with all (event, constants) pairs of
    a batch at once (see `Asked`).
    """

    function: Callable[..., Any]
    name: str
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[str, ...] = ()
    version: str = "1"
    kinds: tuple[type | None, ...] = ()
    form: Form = "scalar"
    variadic: bool = False
    cost: float | None = None
    limit: float | None = None
    on_failure: OnFailure = "false"
    retries: int = 0
    isolate: Isolate = "none"
    takes_null: bool = False
    remember: int = 0
    prepare: Callable[..., Any] | None = None
    check: Callable[..., str | None] | None = None
    bounding: Callable[..., Any] | None = None
    bounded: frozenset[int] = field(default_factory=frozenset)
    resource: Callable[[], Any] | None = None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells operators apart, whatever their names and versions; it travels with the operator to other processes."""
    _made: Made = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.function.__doc__)
        object.__setattr__(self, "_made", Made(_MOST_MADE))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by name where another process can find the operator by it, and else by value."""
        module, path = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        if module != "__main__" and find(module, path) is self:
            return arrived, (module, path)
        return Operator, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*arguments, **named)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    def refuse(self, arguments: tuple[Any, ...], constants: tuple[Any, ...]) -> str | None:
        """Return what is wrong with the arguments of a call, or None: ``arguments`` has None in place of each field,
        ``constants`` are the constants alone.

        What `prepare` raises is wrong with them too; what it makes is kept for the call that is about to be added.
        """
        try:
            problem = self.check(*arguments) if self.check is not None else None
            if problem is None and self.prepare is not None and constants not in self._made:
                self._made.put(constants, self.prepare(*constants))
        except Exception as error:  # a check that raises has found something
            return told(error)
        return problem

    def prepared(self, constants: tuple[Any, ...]) -> Any:
        """Return what a call uses of its constants; OperatorError if it cannot be prepared."""
        if self.prepare is None:
            return constants
        made = self._made.take(constants)
        if made is not None:
            return made[0]
        try:
            return self.prepare(*constants)
        except Exception as error:
            raise OperatorError(f"{self.name}: {shown(constants)} cannot be prepared: {told(error)}") from error

    def bounds(self, constants: list[tuple[Any, ...]], position: int) -> npt.NDArray[np.float64]:
        """Return the least and greatest value at a position that can satisfy each call: float64[calls, 2].

        OperatorError if ``bounding`` fails or gives something else.
        """
        if self.bounding is None:
            return np.tile(np.array(_EVERYTHING), (len(constants), 1))
        try:
            found = np.asarray(self.bounding(constants, position), np.float64)
        except Exception as error:
            raise OperatorError(f"{self.name}: its bounding fails: {told(error)}") from error
        if found.shape != (len(constants), 2):
            raise OperatorError(f"{self.name}: its bounding gives {found.shape} bounds for {len(constants)} calls")
        return found


def arrived(module: str, path: str) -> Operator:
    """Return the operator that has come by name from another process; OperatorError if its module is not here."""
    found = find(module, path)
    if not isinstance(found, Operator):
        raise OperatorError(
            f"the operator {path} of the module {module} is not to be found in this process; its module must be "
            "importable wherever it runs, on Spark by spark.addArtifact('my_operators.py', pyfile=True)"
        )
    return found


def find(module: str, path: str) -> Any:
    """Return what a module has under a dotted path, None if it has no such thing."""
    found: Any = sys.modules.get(module)
    if found is None and module:
        try:
            found = importlib.import_module(module)
        except ImportError:
            return None
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


@overload
def operator(function: Callable[..., Any], **settings: Any) -> Operator: ...


@overload
def operator(**settings: Any) -> Callable[[Callable[..., Any]], Operator]: ...


def operator(  # type: ignore[misc]
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    reads: Sequence[str] = (),
    outputs: Sequence[str] | Mapping[str, type] = (),
    version: str = "1",
    form: Form = "scalar",
    parameters: Sequence[str] | None = None,
    cost: float | None = None,
    limit: float | None = None,
    on_failure: OnFailure = "false",
    retries: int = 0,
    isolate: Isolate = "none",
    takes_null: bool = False,
    remember: int = 0,
    prepare: Callable[..., Any] | None = None,
    check: Callable[..., str | None] | None = None,
    bounding: Callable[..., Any] | None = None,
    bounded: Iterable[int] = (),
    variadic: bool = False,
    resource: Callable[[], Any] | None = None,
) -> Any:
    """Declare a function to be an operator that subscriptions may call.

    The function's parameters that ``reads`` names are fields of the event; the others are what a call gives it, fields
    or constants, in their order; after those a call names the ``outputs``. Without outputs the function returns True,
    False or None (unknown). With one it returns a value, or a list of values; with several a tuple, or a list of
    tuples; what it yields is a list too. None or an empty list is no binding, and the call is false.

    ``cost`` in seconds is measured unless given. A call that raises, returns something else or takes longer than
    ``limit`` seconds is tried ``retries`` times more and then, by ``on_failure``, counts as neither true nor false
    ("false") or makes the event an error ("error"). ``isolate="process"`` runs it in a process that is killed at the
    limit; ``"fresh"`` does too, for modules that do something on import that does not bear a fork. ``remember`` results
    are kept over events. ``resource``, a model perhaps, is loaded once a process and handed to the function as its
    first argument. A new ``version`` never meets what was learned of an old one.

    >>> @operator(reads=["text"], outputs={"words": int})
    ... def word_count(text):
    ...     return len(text.split())
    >>> from tocsin import Matcher, Space, Text
    >>> matcher = Matcher(Space({"text": Text()}), operators=[word_count])
    >>> matcher.subscribe("long", "word_count(:n) AND :n > 2 * 2")
    >>> matcher.match({"text": "a text of five words"}), matcher.match({"text": "short"})
    (['long'], [])
    """

    def declare(given: Callable[..., Any]) -> Operator:
        called = called_of(given, name)
        check_given(called, reads, outputs, parameters, bounded, form, variadic, version)
        own, further = (
            parameters_of(given, reads, called, resource is not None)
            if parameters is None and form != "bulk"
            else (tuple(parameters or ()), variadic)
        )
        typed = isinstance(outputs, Mapping)
        made = Operator(
            given,
            called,
            own,
            tuple(outputs),
            tuple(reads),
            str(version),
            tuple(outputs.values()) if isinstance(outputs, Mapping) else (None,) * len(tuple(outputs)),
            form,
            further,
            cost,
            limit,
            on_failure,
            retries,
            isolate,
            takes_null,
            remember,
            prepare,
            check,
            bounding,
            frozenset(bounded),
            resource,
        )
        check_declared(made, typed)
        return made

    return declare if function is None else declare(function)
