"""What an operator is: a Python function with declared arguments and outputs, cost, limit and policy on failure."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from tocsin.errors import ExpressionError, OperatorError
from tocsin.language.parser import parse
from tocsin.language.tree import Call

OnFailure = Literal["false", "error"]
Isolate = Literal["none", "process", "fresh"]
Form = Literal["scalar", "vector", "bulk"]

_EVERYTHING = (-np.inf, np.inf)


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by name where another process can find the operator by it, and else by value."""
        module, path = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        if module != "__main__" and find(module, path) is self:
            return find, (module, path)
        return Operator, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*arguments, **named)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    def refuse(self, constants: tuple[Any, ...]) -> str | None:
        """Return what is wrong with the constants of a call, or None."""
        if self.check is None:
            return None
        try:
            return self.check(*constants)
        except Exception as error:  # a check that raises has found something
            return f"{type(error).__name__}: {error}"

    def bounds(self, constants: list[tuple[Any, ...]], position: int) -> npt.NDArray[np.float64]:
        """Return the least and greatest value at a position that can satisfy each call: float64[calls, 2]."""
        if self.bounding is None:
            return np.tile(np.array(_EVERYTHING), (len(constants), 1))
        return np.asarray(self.bounding(constants, position), np.float64).reshape(len(constants), 2)


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


class Prepared:
    """The constants of all calls of one family, prepared once each; grows at its end only.

    ``memo`` is for whatever an operator derives from all of them, such as a tree; it is the operator's to keep right
    as the number of constants grows.
    """

    def __init__(self) -> None:
        self.constants: list[tuple[Any, ...]] = []
        self.values: list[Any] = []
        self.memo: dict[str, Any] = {}
        self._array: npt.NDArray[np.object_] = np.empty(0, object)

    def __len__(self) -> int:
        return len(self.values)

    def add(self, constants: tuple[Any, ...], value: Any) -> int:
        """Add prepared constants; return their number."""
        self.constants.append(constants)
        self.values.append(value)
        return len(self.values) - 1

    @property
    def array(self) -> npt.NDArray[np.object_]:
        """What was prepared, as an array of objects."""
        held = len(self._array)
        if held < len(self.values):
            grown = np.empty(len(self.values), object)
            grown[:held] = self._array
            for at in range(held, len(grown)):
                grown[at] = self.values[at]
            self._array = grown
        return self._array


@dataclass(frozen=True)
class Asked:
    """What a bulk operator is asked: pairs of an event and a set of constants.

    ``columns`` are the values of the fields, one array each; pair ``i`` is the event ``rows[i]`` of them with the
    constants ``which[i]`` of ``prepared``. The answer is an array with an entry for each pair: a truth (or int8, -1
    for unknown) or, of an operator with an output, a value (NaN for none).
    """

    columns: tuple[npt.NDArray[Any], ...]
    prepared: Prepared
    rows: npt.NDArray[np.int64]
    which: npt.NDArray[np.int64]


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
        called = (name or given.__name__).lower()
        own, further = (
            _parameters(given, reads, called, resource is not None)
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
        _check(made, typed)
        return made

    return declare if function is None else declare(function)


def _parameters(
    function: Callable[..., Any], reads: Sequence[str], name: str, skip: bool
) -> tuple[tuple[str, ...], bool]:
    """Return the parameters that a call gives, and whether it may give more."""
    found = inspect.signature(function).parameters
    names = [key for key, each in found.items() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    names = names[1:] if skip else names
    read = [field.replace(".", "_") for field in reads]
    if names[: len(read)] != read:
        raise OperatorError(
            f"{name} reads {', '.join(reads)}: its first parameters must be {', '.join(read)}, not {', '.join(names)}"
        )
    variadic = any(each.kind is each.VAR_POSITIONAL for each in found.values())
    return tuple(names[len(read) :]), variadic


def _is_free(name: str) -> bool:
    """Return whether a call of this name means nothing else in the language."""
    try:
        found = parse(f"{name}(1)")
    except ExpressionError:
        return False
    return isinstance(found, Call) and found.name == name


def _check(made: Operator, typed: bool) -> None:
    """Refuse settings that do not go together."""
    if not made.name.isidentifier():
        raise OperatorError(f"an operator is called by a name such as word_count, not {made.name!r}")
    if not _is_free(made.name):
        raise OperatorError(f"SQL has a function or a word {made.name}; call the operator something else: name='...'")
    if made.form not in ("scalar", "vector", "bulk"):
        raise OperatorError(f"{made.name}: form is 'scalar', 'vector' or 'bulk', not {made.form!r}")
    if made.on_failure not in ("false", "error"):
        raise OperatorError(f"{made.name}: on_failure is 'false' or 'error', not {made.on_failure!r}")
    if made.isolate not in ("none", "process", "fresh"):
        raise OperatorError(f"{made.name}: isolate is 'none', 'process' or 'fresh', not {made.isolate!r}")
    if made.isolate != "none" and (made.is_async or made.form == "bulk"):
        raise OperatorError(f"{made.name}: an operator in a process of its own is scalar or vector, and not async")
    if made.resource is not None and made.form == "bulk":
        raise OperatorError(f"{made.name}: an operator with a resource is scalar or vector")
    if made.is_async and made.form != "scalar":
        raise OperatorError(f"{made.name}: an async operator is scalar")
    if inspect.isasyncgenfunction(made.function):
        raise OperatorError(f"{made.name}: an async operator returns what it finds, it does not yield")
    if made.form == "bulk" and len(made.outputs) > 1:
        raise OperatorError(f"{made.name}: a bulk operator has at most one output")
    if made.form == "bulk" and not set(made.kinds) <= {int, float, None}:
        raise OperatorError(f"{made.name}: the output of a bulk operator is a number, of type int or float")
    for what, value in (("limit", made.limit), ("cost", made.cost)):
        if value is not None and not value > 0:
            raise OperatorError(f"{made.name}: {what} is a number of seconds above 0, not {value!r}")
    if typed and not all(isinstance(kind, type) for kind in made.kinds):
        raise OperatorError(f"{made.name}: outputs are given as a mapping of names to types, such as {{'n': int}}")
