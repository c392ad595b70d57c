"""From tree to normal form: a disjunction of conjunctions of per-axis sets, symbolic in the constants.

Negation is pushed down to the leaves, where SQL's three-valued logic is settled: a leaf is *true* on one set of values
and *false* on another, and NULL is usually in neither. What is left are AND and OR over membership tests, which need
no third value. A conjunction becomes one box: a set an axis, several tests of one axis intersected, a wide OR over one
axis united. What no interval can say (patterns in the middle of a text, the second test of a repeated field), and what
would blow the normal form up, is kept as the conjunction's *rest*, to be verified on the few candidates.
"""

from __future__ import annotations

from typing import NamedTuple

from tocsin.errors import ExpressionLimitError
from tocsin.kernels.language import literals as shapes
from tocsin.language.least import least_apart
from tocsin.language.patterns import split_pattern
from tocsin.language.shares import share
from tocsin.language.symbolic import (
    AllOf,
    AnyOf,
    AxisKey,
    Below,
    Check,
    Compared,
    Complement,
    Every,
    Implied,
    Intersection,
    Listed,
    Node,
    Nulls,
    Prefixed,
    Set,
    Test,
    Union,
    Values,
)
from tocsin.language.tree import (
    Affix,
    And,
    Between,
    Call,
    Comparison,
    Constant,
    Expression,
    Field,
    Fixed,
    InNetwork,
    IsA,
    IsNull,
    IsTruth,
    Leaf,
    Like,
    Matches,
    Membership,
    Not,
    Operator,
    Or,
    Truth,
)
from tocsin.language.variables import names_in

MAX_BOXES = 1024
"""The most boxes that one subscription may need."""

FEW_BOXES = 4
"""Alternatives are multiplied out into so many boxes whatever they let through."""

SELECTIVE = 1 / 8
"""Alternatives that let through no more of all events are multiplied out as far as the leaves allow."""

_NEGATED: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


_NOTHING = Complement(Values())

ALWAYS = AllOf(())
NEVER = AnyOf(())


class Conjunction(NamedTuple):
    """One box, and what remains to be verified of an event inside it."""

    sets: dict[AxisKey, Set]
    rest: tuple[Node, ...] = ()


def positive(
    expression: Expression, repeated: frozenset[tuple[str, ...]], opaque: frozenset[Leaf] = frozenset()
) -> Node:
    """Return the expression without negation: what makes it TRUE.

    ``repeated`` are the paths of repeated fields; ``opaque`` the leaves to be verified although a set could say them.

    >>> from tocsin.language.parser import parse
    >>> positive(parse("NOT (x > 3)"), frozenset()).inside.operator
    '<='
    """
    return _Positive(repeated, opaque).node(expression, True)


class _Positive:
    def __init__(self, repeated: frozenset[tuple[str, ...]], opaque: frozenset[Leaf]) -> None:
        self._repeated = repeated
        self._opaque = opaque

    def node(self, expression: Expression, wanted: bool) -> Node:
        """Return what makes the expression TRUE (``wanted``) or FALSE."""
        while isinstance(expression, Not):
            expression, wanted = expression.term, not wanted
        if isinstance(expression, (And, Or)):
            terms = tuple(self.node(term, wanted) for term in expression.terms)
            return _all_of(terms) if isinstance(expression, And) == wanted else _any_of(terms)
        if isinstance(expression, Fixed):
            return ALWAYS if expression.value is wanted else NEVER
        if expression in self._opaque:
            comparison = (Comparison, Between, Membership)
            if isinstance(expression, comparison) and expression.field.path not in self._repeated:
                return least_apart(expression, _true_set(expression) if wanted else _false_set(expression), wanted)
            checked = self._checked(expression, wanted)
            if wanted and isinstance(
                expression, comparison
            ):  # some element has a value: those are looked at, ranges too
                return _all_of((Test(AxisKey(expression.field.path), Values()), checked))
            return checked
        return self._leaf(expression, wanted)

    def _leaf(self, leaf: Leaf, wanted: bool) -> Node:
        if isinstance(leaf, IsNull) and leaf.field.path in self._repeated:
            return Test(AxisKey(leaf.field.path, "presence"), Nulls() if wanted else Values())
        if isinstance(leaf, (Like, Affix, Matches)):
            return self._text(leaf, wanted)
        if isinstance(leaf, Call) and wanted and leaf.operator is not None:
            bounded = [(at, each) for at, each in enumerate(leaf.arguments) if at in leaf.operator.bounded]
            tests = [
                Test(AxisKey(each.path), Implied(leaf, at))
                for at, each in bounded
                if isinstance(each, Field) and each.path not in self._repeated and not each.transform
            ]
            return _all_of((*tests, Check(leaf, True)))
        if not isinstance(
            leaf,
            (
                Comparison,
                Between,
                Membership,
                InNetwork,
                IsA,
                IsNull,
                IsTruth,
                Truth,
            ),
        ):
            return Check(leaf, wanted)
        inside = _true_set(leaf) if wanted else _false_set(leaf)
        if inside is None and (wanted or leaf.field.path not in self._repeated):
            return NEVER
        inside = inside or _NOTHING
        return self._test(leaf.field, wanted, AxisKey(leaf.field.path, leaf.field.transform), inside)

    def _test(self, field: Field, wanted: bool, axis: AxisKey, inside: Set) -> Node:
        """Return the test; a negated test of a repeated field speaks of every element."""
        if not wanted and field.path in self._repeated:
            return Every(axis, inside)
        return Test(axis, inside)

    def _text(self, leaf: Like | Affix | Matches, wanted: bool) -> Node:
        """Return the intervals that say a text test; where they do not say all of it, verify the rest."""
        field = leaf.field
        transform = "lower" if isinstance(leaf, Like) and leaf.case_blind else field.transform
        forward = AxisKey(field.path, transform)
        backward = AxisKey(field.path, f"{transform} reversed".strip())  # type: ignore[arg-type]
        exact: Test | None = None
        if isinstance(leaf, Affix) and leaf.function != "contains":
            exact = Test(forward if leaf.function == "startswith" else backward, Prefixed(leaf.constant))
        elif isinstance(leaf, Like) and not (leaf.case_blind and field.transform == "upper"):
            exact = _one_interval(leaf, forward, backward)
            intricate = exact is None and isinstance(leaf.pattern, Constant)
            if intricate and wanted and field.path not in self._repeated:
                return _all_of((*_hints(leaf, forward, backward), Check(leaf, True)))
        if exact is None:
            return self._checked(leaf, wanted)
        return self._test(field, wanted, exact.axis, exact.inside if wanted else Complement(exact.inside))

    def _checked(self, leaf: Leaf, wanted: bool) -> Node:
        field = getattr(leaf, "field", None)
        if not isinstance(field, Field) or field.path in self._repeated:
            return Check(leaf, wanted)
        return _all_of((Test(AxisKey(field.path), Values()), Check(leaf, wanted)))


def _one_interval(leaf: Like, forward: AxisKey, backward: AxisKey) -> Test | None:
    """Return the test that a pattern comes to whose only wildcard is a % at one end, or that has none."""
    fold = leaf.case_blind
    if leaf.shape == shapes.PLAIN:
        return Test(forward, Prefixed(leaf.pattern, fold=fold, whole=True))
    if leaf.shape == shapes.STARTS:
        return Test(forward, Prefixed(leaf.pattern, (0, 1), fold))
    if leaf.shape == shapes.ENDS:
        return Test(backward, Prefixed(leaf.pattern, (1, 0), fold))
    if not isinstance(leaf.pattern, Constant):
        return None
    pieces, wildcards = split_pattern(_folded(leaf), leaf.escape)
    if not wildcards:
        return Test(forward, Prefixed(Constant(pieces[0], "string"), whole=True))
    if set(wildcards) != {"%"} or any(pieces[1:-1]) or (pieces[0] and pieces[-1]):
        return None
    if pieces[-1]:
        return Test(backward, Prefixed(Constant(pieces[-1], "string")))
    return Test(forward, Prefixed(Constant(pieces[0], "string")))


def _hints(leaf: Like, forward: AxisKey, backward: AxisKey) -> list[Node]:
    """Return what the fixed ends of an intricate pattern say."""
    (first, *_, last), _ = split_pattern(_folded(leaf), leaf.escape)
    found: list[Node] = [Test(forward, Values())]
    if first:
        found.append(Test(forward, Prefixed(Constant(first, "string"))))
    if last:
        found.append(Test(backward, Prefixed(Constant(last, "string"))))
    return found


def _folded(leaf: Like) -> str:
    """Return a pattern that is known; in small letters, as Spark has it before it looks for escapes, if case does not
    count."""
    assert isinstance(leaf.pattern, Constant)
    return str(leaf.pattern.value).lower() if leaf.case_blind else str(leaf.pattern.value)


def conjunctions(node: Node, repeated: frozenset[tuple[str, ...]], *, multiply: bool = False) -> list[Conjunction]:
    """Return the conjunctions whose disjunction is the node: at most as many as it has leaves, unless all is to
    ``multiply``.

    An AND of ORs is multiplied out only that far, and beyond a few boxes only by ORs that leave few candidates; the
    other ORs are verified instead, on the candidates of the rest.

    >>> from tocsin.language.parser import parse
    >>> text = "(a = 1 OR a = 2) AND (b = 3 OR c = 4)"
    >>> [len(found.sets) for found in conjunctions(positive(parse(text), frozenset()), frozenset())]
    [2, 2]
    """
    found = _Conjunctions(repeated, None if multiply else min(_leaves(node), MAX_BOXES)).of(node)
    if len(found) > MAX_BOXES:
        raise ExpressionLimitError(
            f"the expression needs {len(found):,} boxes and the limit is {MAX_BOXES:,}; "
            "write fewer alternatives over different fields, or several subscriptions"
        )
    return found


class _Conjunctions:
    def __init__(self, repeated: frozenset[tuple[str, ...]], budget: int | None) -> None:
        self._repeated = repeated
        self._budget = budget

    def of(self, node: Node) -> list[Conjunction]:
        if isinstance(node, AnyOf):
            return [one for term in node.terms for one in self.of(term)]
        if isinstance(node, Test):
            return [Conjunction({node.axis: node.inside})]
        if not isinstance(node, AllOf):
            return [Conjunction({}, (node,))]
        product = [Conjunction({})]
        for term, found, selective in self._in_order(node.terms):
            boxes = len(product) * len(found)
            if self._budget is None and boxes > MAX_BOXES:
                raise ExpressionLimitError(
                    f"the expression needs more than {MAX_BOXES:,} boxes, as an unspecified field spans its domain; "
                    "write fewer alternatives over different fields"
                )
            if self._budget is not None and boxes > (self._budget if selective else min(self._budget, FEW_BOXES)):
                product = [Conjunction(one.sets, (*one.rest, term)) for one in product]
            else:
                product = [self._both(one, other) for one in product for other in found]
        return product

    def _in_order(self, terms: tuple[Node, ...]) -> list[tuple[Node, list[Conjunction], bool]]:
        """Return the terms of an AND with their conjunctions and whether they are selective, those first that are worth
        their boxes most: single ones, then the most selective, then those of few alternatives."""
        known = [(term, self.of(term), share(term)) for term in terms]
        known.sort(key=lambda one: (len(one[1]) > 1, one[2] if one[2] <= SELECTIVE else 1.0, len(one[1]), one[2]))
        return [(term, found, part <= SELECTIVE or len(found) <= 1) for term, found, part in known]

    def _both(self, one: Conjunction, other: Conjunction) -> Conjunction:
        """Return the conjunction of two: a box holds at most one test of a repeated field, further ones are
        verified."""
        sets, rest = dict(one.sets), [*one.rest, *other.rest]
        for axis, inside in other.sets.items():
            if axis.path in self._repeated and any(held.path in self._repeated for held in sets):
                rest.append(Test(axis, inside))
            elif axis in sets:
                held = sets[axis]
                both = (*(held.sets if isinstance(held, Intersection) else (held,)), inside)
                sets[axis] = Intersection(tuple(dict.fromkeys(both)))
            else:
                sets[axis] = inside
        return Conjunction(sets, _each_once(rest))


def _leaves(node: Node) -> int:
    return sum(map(_leaves, node.terms)) if isinstance(node, (AllOf, AnyOf)) else 1


def _true_set(leaf: Leaf) -> Set | None:
    """Return the values on which a leaf is TRUE; None if there are none."""
    match leaf:
        case Comparison("<=>", _, Constant(kind="null")) | IsNull():
            return Nulls()
        case Comparison(_, _, Constant(kind="null")):
            return None
        case Comparison(operator, _, constant):
            return Compared("=" if operator == "<=>" else operator, constant)
        case Between(_, low, high):
            return (
                None if "null" in (low.kind, high.kind) else Intersection((Compared(">=", low), Compared("<=", high)))
            )
        case Membership(_, constants):
            known = tuple(constant for constant in constants if constant.kind != "null")
            return Listed(known) if known else None
        case InNetwork(_, network):
            return None if network.kind == "null" else Listed((network,))
        case IsA(_, concepts):
            known = tuple(concept for concept in concepts if concept.kind != "null")
            return Below(known) if known else None
        case IsTruth(_, value):
            return Compared("=", Constant(value, "boolean"))
        case _:
            return Compared("=", Constant(True, "boolean"))


def _false_set(leaf: Leaf) -> Set | None:
    """Return the values on which a leaf is FALSE; None if there are none."""
    match leaf:
        case Comparison("<=>", _, Constant(kind="null")) | IsNull():
            return Values()
        case Comparison(_, _, Constant(kind="null")) | InNetwork(_, Constant(kind="null")):
            return None
        case Comparison("<=>", _, constant):
            return Union((Nulls(), Compared("<>", constant)))
        case Comparison(operator, _, constant):
            return Compared(_NEGATED[operator], constant)
        case Between(_, low, high):
            outside = (Compared("<", low), Compared(">", high))
            known = tuple(each for each in outside if each.constant.kind != "null")
            return Union(known) if known else None
        case Membership(_, constants):
            if any(constant.kind == "null" for constant in constants):
                return None
            return Complement(Listed(constants))
        case InNetwork(_, network):
            return Complement(Listed((network,)))
        case IsA(_, concepts):
            return None if any(concept.kind == "null" for concept in concepts) else Complement(Below(concepts))
        case IsTruth(_, value):
            return Union((Nulls(), Compared("=", Constant(not value, "boolean"))))
        case _:
            return Compared("=", Constant(False, "boolean"))


def _all_of(terms: tuple[Node, ...]) -> Node:
    """Return the conjunction, flattened, each term once, NEVER if one of them is."""
    flat: list[Node] = []
    for term in terms:
        if term == NEVER:
            return NEVER
        flat += term.terms if isinstance(term, AllOf) else (term,)
    once = _each_once(flat)
    return once[0] if len(once) == 1 else AllOf(once)


def _each_once(terms: list[Node]) -> tuple[Node, ...]:
    """Return terms without repetitions, but for calls that bind variables: those join, and NULL joins nothing."""
    seen: dict[Node, None] = {}
    kept = []
    for term in terms:
        binds = isinstance(term, Check) and term.wanted and isinstance(term.leaf, Call) and bool(names_in(term.leaf))
        if binds or term not in seen:
            kept.append(term)
        seen[term] = None
    return tuple(kept)


def _any_of(terms: tuple[Node, ...]) -> Node:
    """Return the disjunction, flattened, each term once, tests of one axis united, ALWAYS if one of them is."""
    flat: dict[Node, None] = {}
    united: dict[AxisKey, list[Set]] = {}
    for term in terms:
        if term == ALWAYS:
            return ALWAYS
        for part in term.terms if isinstance(term, AnyOf) else (term,):
            if isinstance(part, Test):
                united.setdefault(part.axis, []).append(part.inside)
            else:
                flat[part] = None
    for axis, sets in united.items():
        distinct = tuple(dict.fromkeys(sets))
        flat[Test(axis, distinct[0] if len(distinct) == 1 else Union(distinct))] = None
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat))
