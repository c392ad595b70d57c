"""What operators must decide, in arrays: calls, literals over them, and the conditions of boxes.

A *call* is an operator with its inputs; two calls that differ only in what they bind are one. A *literal* is a call and
what is wanted of it: TRUE or FALSE, and the tests that concern only what it binds. A *condition* is a set of literals,
and a residue where variables join several calls. Calls that differ only in their constants are a *family*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.index.boxes import Int32s
from tocsin.language.printer import to_text
from tocsin.language.symbolic import Check
from tocsin.language.tree import And, Call, Constant, Constraint, Exists, Expression, Field, Not, Variable
from tocsin.language.variables import filled as renamed_in
from tocsin.language.variables import names_in, parts_of
from tocsin.operators.events import Input
from tocsin.operators.growing import Growing
from tocsin.operators.operator import Operator, Prepared
from tocsin.space.declared import inputs_of, is_null_call
from tocsin.space.filling import Filled, FilledCondition

Condition = tuple[Check, ...]

NEVER_MADE = -1
"""The member of its family that a call is which has a NULL constant: none, it is unknown."""

_SIGNS = {"=": 1, "<>": 2, "<": 3, "<=": 4, ">": 5, ">=": 6}


class Family(NamedTuple):
    """Calls of one operator on the same fields: ``inputs`` are the fields of a call and, as None, its constants;
    ``fields`` what the operator receives, that is the fields it reads, then those of the call."""

    operator: Operator
    inputs: tuple[Input | None, ...]
    fields: tuple[Input, ...]
    prepared: Prepared


class Literal(NamedTuple):
    """A call and what is wanted of it. ``tests`` are the call and the constraints on what it binds, or empty where
    the call's truth is all; it ``binds`` if it has variables. ``sign`` and ``bound`` are the test if that is one
    comparison with a number."""

    call: int
    wanted: bool
    tests: Condition
    binds: bool
    sign: int = 0
    bound: float = 0.0


class Conditions:
    """All conditions of a matcher, by number: append-only, so that readers need no lock."""

    def __init__(self) -> None:
        self.families: list[Family] = []
        self.literals: list[Literal] = []
        self.residues: list[Condition] = []
        self.sources: list[Condition] = []
        self.paths: list[tuple[str, ...]] = []
        """The fields that operators receive and constraints compare, each once; readers may look while it grows."""
        self._family_of: dict[tuple[Any, ...], int] = {}
        self._call_of: dict[tuple[Any, ...], int] = {}
        self._literal_of: dict[tuple[Any, ...], int] = {}
        self._condition_of: dict[tuple[Any, ...], int] = {}
        self.call_family = Growing(np.int32)
        self.call_member = Growing(np.int32)
        self.call_leaf: list[Call] = []
        self.literal_call = Growing(np.int32)
        self.literal_wanted = Growing(np.int8)
        self.literal_binds = Growing(np.bool_)
        self.literal_sign = Growing(np.int8)
        self.literal_bound = Growing(np.float64)
        self.literals_of_call: list[list[int]] = []
        self.offsets = Growing(np.int64, 0)
        self.members = Growing(np.int32)
        self.bulk_offsets = Growing(np.int64, 0)
        self.bulk_members = Growing(np.int32)
        self.tried, self.held = np.zeros(0), np.zeros(0)

    def __len__(self) -> int:
        return len(self.residues)

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.sources)

    def add_all(self, filled: Filled) -> Int32s:
        """Add the conditions of filled texts; return the number of the condition of each box, -1 for none."""
        numbers = np.full(len(filled.rows), -1, np.int32)
        for condition in filled.conditions:
            numbers[condition.boxes] = self.add(condition)
        return numbers

    def add(self, given: FilledCondition) -> Int32s:
        """Add the conditions of some texts; return the number of the condition of each of their boxes."""
        used = np.unique(given.text_of)
        numbers = np.full(given.texts, -1, np.int32)
        for text in used.tolist():
            numbers[text] = self.number(given.checks(text))
        return numbers[given.text_of]

    def number(self, checks: Condition) -> int:
        """Return the number of a condition, a new one if it is new."""
        key = _key(checks)
        found = self._condition_of.get(key)
        if found is None:
            found = self._condition_of[key] = self._append(checks)
        return found

    def keep(self, checks: Condition) -> None:
        """Add a condition under the next number, whether or not it is there under another one."""
        self._condition_of.setdefault(_key(checks), self._append(checks))

    def _append(self, checks: Condition) -> int:
        for each in checks:
            if not isinstance(each.leaf, Call):
                self._note(field.path for field in parts_of(each.leaf, Field))
        literals, residue = self._split(checks)
        bulk = [each for each in literals if self._is_bulk(each)]
        ordered = [each for each in literals if each not in bulk]
        self.members.extend(np.array(ordered, np.int32))
        self.bulk_members.extend(np.array(bulk, np.int32))
        self.bulk_offsets.extend(np.array([len(self.bulk_members)]))
        self.residues.append(residue)
        self.sources.append(checks)
        self.offsets.extend(np.array([len(self.members)]))
        return len(self.residues) - 1

    def call(self, leaf: Call) -> int:
        """Return the number of a call, a new one if it is new."""
        operator: Operator = leaf.operator
        inputs = inputs_of(leaf)
        key = operator.token, inputs, _zeros(inputs)
        found = self._call_of.get(key)
        if found is None:
            family = self._family(operator, inputs)
            member = NEVER_MADE
            if not is_null_call(leaf):
                constants = tuple(each.value for each in inputs if isinstance(each, Constant))
                member = self.families[family].prepared.add(constants, operator.prepared(constants))
            self.call_member.extend(np.array([member]))
            self.call_leaf.append(leaf)
            self.literals_of_call.append([])
            self.call_family.extend(np.array([family]))
            found = self._call_of[key] = len(self.call_leaf) - 1
        return found

    def only(self, live: Int32s) -> Conditions:
        """Return the live conditions under their old numbers, the others emptied."""
        kept = Conditions()
        wanted = set(live.tolist())
        for number, checks in enumerate(self.sources):
            if number in wanted:
                kept.keep(checks)
            else:
                kept.add_empty()
        return kept

    def texts(self) -> list[str]:
        """Return each condition as an expression that gives it again when it is parsed; of an empty one, TRUE."""
        return [to_text(_joined(checks)) if checks else "TRUE" for checks in self.sources]

    def to_operators(self) -> dict[str, str]:
        """Return the name and version of every operator in use."""
        return {family.operator.name: family.operator.version for family in self.families}

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        held = self.call_family, self.call_member, self.literal_call, self.members, self.offsets, self.bulk_members
        return sum(array.nbytes for array in held)

    def add_empty(self) -> None:
        """Add a condition that nothing uses, to keep the numbers of the others."""
        self.bulk_offsets.extend(np.array([len(self.bulk_members)]))
        self.offsets.extend(np.array([len(self.members)]))
        self.residues.append(())
        self.sources.append(())

    def _note(self, paths: Iterable[tuple[str, ...]]) -> None:
        self.paths += [path for path in dict.fromkeys(paths) if path not in self.paths]

    def _is_bulk(self, literal: int) -> bool:
        return self.families[int(self.call_family.array[self.literals[literal].call])].operator.form == "bulk"

    def _family(self, operator: Operator, inputs: tuple[Any, ...]) -> int:
        given = tuple(Input(each.path, each.transform) if isinstance(each, Field) else None for each in inputs)
        key = operator.token, given
        if key not in self._family_of:
            reads = tuple(Input(tuple(name.split("."))) for name in operator.reads)
            fields = reads + tuple(each for each in given if each is not None)
            self._note(each.path for each in fields)
            self.families.append(Family(operator, given, fields, Prepared()))
            self._family_of[key] = len(self.families) - 1
        return self._family_of[key]

    def _split(self, checks: Condition) -> tuple[list[int], Condition]:
        """Return the literals of a condition, and its residue if variables join several calls."""
        calls = [each for each in checks if isinstance(each.leaf, Call)]
        shared = _shared_names(checks)
        left: list[Check] = [each for each in checks if not isinstance(each.leaf, Call)]
        literals: list[int] = []
        joined = any(isinstance(each.leaf, Exists) for each in left)
        for each in calls:
            own = names_in(each.leaf)
            if not each.wanted and own & shared:
                joined = True  # tested against what others bind
                for leaf in parts_of(each.leaf, Call):
                    self.call(leaf)
                continue
            local = [test for test in left if isinstance(test.leaf, Constraint) and own and names_in(test.leaf) <= own]
            literals.append(self._literal(each, local if each.wanted else []))
            left = [test for test in left if test not in local] if each.wanted and not own & shared else left
            joined |= bool(own & shared)
        for each in left:
            for leaf in parts_of(each.leaf, Call):
                self.call(leaf)
        return list(dict.fromkeys(literals)), checks if joined or left else ()

    def _literal(self, check: Check, local: list[Check]) -> int:
        """Return the number of a literal, a new one if it is new; names of variables make no difference."""
        leaf = check.leaf
        assert isinstance(leaf, Call)
        call = self.call(leaf)
        outputs = leaf.arguments[len(leaf.operator.parameters) :] if leaf.operator.outputs else ()
        names = list(dict.fromkeys(each.name for each in outputs if isinstance(each, Variable)))
        renamed = {Variable(name): Variable(str(at)) for at, name in enumerate(names)}
        is_plain = len(names) == len(outputs) and not local
        tests = (
            () if is_plain else tuple(Check(renamed_in(each.leaf, renamed), each.wanted) for each in (check, *local))
        )
        if tests:
            tests = (Check(tests[0].leaf, True), *tests[1:])
        key = call, check.wanted, tests, bool(names)
        found = self._literal_of.get(key)
        if found is None:
            sign, bound = _comparison(tests) if check.wanted and len(outputs) == 1 else (0, 0.0)
            self.literals.append(Literal(call, check.wanted, tests, bool(names), sign, bound))
            self.literal_wanted.extend(np.array([check.wanted], np.int8))
            self.literal_binds.extend(np.array([bool(names)]))
            self.literal_sign.extend(np.array([sign], np.int8))
            self.literal_bound.extend(np.array([bound]))
            self.literal_call.extend(np.array([call], np.int32))
            found = self._literal_of[key] = len(self.literals) - 1
            self.literals_of_call[call].append(found)
        return found


def _key(checks: Condition) -> tuple[Any, ...]:
    """Return what is the same of conditions that are."""
    return checks, _zeros(parts_of(tuple(each.leaf for each in checks), Constant))


def _zeros(parts: Iterable[Any]) -> tuple[bool, ...]:
    """Return which of the constants that are doubles and 0 are -0.0: equal, but an operator may tell them apart."""
    values = (each.value for each in parts if isinstance(each, Constant))
    return tuple(math.copysign(1.0, value) < 0 for value in values if type(value) is float and value == 0.0)


def _shared_names(checks: Iterable[Check]) -> frozenset[str]:
    """Return the variables that occur in more than one call, or in a group or a constraint that joins calls."""
    seen: set[str] = set()
    shared: set[str] = set()
    calls = [names_in(each.leaf) for each in checks if isinstance(each.leaf, Call)]
    for names in calls:
        shared |= seen & names
        seen |= names
    for each in checks:
        inside = names_in(each.leaf)
        if isinstance(each.leaf, Exists) or (
            isinstance(each.leaf, Constraint) and not any(inside <= names for names in calls)
        ):
            shared |= inside
    return frozenset(shared)


def _comparison(tests: Condition) -> tuple[int, float]:
    """Return the sign and number of a literal whose one test compares its variable with a number that doubles hold."""
    if len(tests) != 2 or not tests[1].wanted or not isinstance(tests[1].leaf, Constraint):
        return 0, 0.0
    leaf = tests[1].leaf
    if not isinstance(leaf.left, Variable) or not isinstance(leaf.right, Constant) or leaf.operator not in _SIGNS:
        return 0, 0.0
    value = leaf.right.value
    if leaf.right.kind == "double" and value == value:
        return _SIGNS[leaf.operator], float(value)  # type: ignore[arg-type]
    if leaf.right.kind == "integer" and abs(value) <= 2**53:  # type: ignore[arg-type, operator]
        return _SIGNS[leaf.operator], float(value)  # type: ignore[arg-type]
    return 0, 0.0


def _joined(checks: Condition) -> Expression:
    terms = tuple(each.leaf if each.wanted else Not(each.leaf) for each in checks)
    return terms[0] if len(terms) == 1 else And(terms)


def signs_hold(
    sign: npt.NDArray[np.int8], bound: npt.NDArray[np.float64], value: npt.NDArray[np.float64] | float
) -> npt.NDArray[np.bool_]:
    """Return the truth of comparisons, each of a value with the bound of a literal.

    >>> signs_hold(np.array([3, 6], np.int8), np.array([2.0, 2.0]), 2.0).tolist()
    [False, True]
    """
    outcomes: Any = [value == bound, value != bound, value < bound, value <= bound, value > bound, value >= bound]
    found: npt.NDArray[np.bool_] = np.choose(sign - 1, outcomes)
    return found
