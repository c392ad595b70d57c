"""Independent evaluation: every subscription by itself, from the definition, over all substitutions of its variables.

It knows nothing of the matcher: expressions are drawn as small trees together with their text, and evaluated here by
trying every substitution of values that any call returned, in Kleene's three-valued logic.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

OPERATORS = {"p": 0, "q": 1, "r": 1, "s": 2}
"""The name of each operator and how many outputs it has; each takes one constant, 0 to 2."""

FAILED = "failed"
World = dict[tuple[str, int], Any]
"""What each call comes to for an event: a truth, None, a list of tuples, or FAILED."""


@dataclass(frozen=True)
class Node:
    """A part of an expression: call, constraint, price, not, and, or."""

    kind: str
    parts: tuple[Any, ...]

    def text(self) -> str:
        """Return it as an expression."""
        if self.kind == "call":
            name, constant, outputs = self.parts
            return f"{name}({', '.join([str(constant), *(_shown(each) for each in outputs)])})"
        if self.kind == "compare":
            left, sign, right = self.parts
            return f":{left} {sign} {right}"
        if self.kind == "price":
            return f"price > {self.parts[0]}"
        if self.kind == "not":
            return f"NOT ({self.parts[0].text()})"
        return "(" + f" {self.kind.upper()} ".join(part.text() for part in self.parts) + ")"

    def names(self) -> list[str]:
        """Return the variables of the calls in it, with repetitions."""
        if self.kind == "call":
            return [each for each in self.parts[2] if isinstance(each, str)]
        if self.kind == "compare":
            return [self.parts[0], *([self.parts[2].split(":")[1]] if ":" in str(self.parts[2]) else [])]
        return [name for part in self.parts if isinstance(part, Node) for name in part.names()]


def _shown(output: Any) -> str:
    return f":{output}" if isinstance(output, str) else str(output)


def truth(node: Node, price: Any, world: World, bound: dict[str, Any]) -> bool | None:
    """Return the truth of an expression under a substitution; variables not in it are existential where they stand."""
    if node.kind == "price":
        return None if price is None else price > node.parts[0]
    if node.kind == "compare":
        left, sign, right = node.parts
        values = [bound[left], _value(right, bound)]
        if None in values:
            return None
        return {"<": values[0] < values[1], ">": values[0] > values[1], "=": values[0] == values[1]}[sign]
    if node.kind == "call":
        return _called(node, world, bound)
    if node.kind == "not":
        return _negated(node.parts[0], price, world, bound)
    found = [truth(part, price, world, bound) for part in node.parts]
    decisive = node.kind == "or"
    return decisive if decisive in found else None if None in found else not decisive


def _value(right: Any, bound: dict[str, Any]) -> Any:
    text = str(right)
    if ":" not in text:
        return int(text)
    factor, _, name = text.partition(":")
    value = bound[name]
    return None if value is None else (int(factor.split("*")[0]) if factor else 1) * value


def _called(node: Node, world: World, bound: dict[str, Any]) -> bool | None:
    """Return whether a binding of the call fits the substitution; of its variables that are free, any will do."""
    name, constant, outputs = node.parts
    result = world[name, constant]
    if result is None or result == FAILED:
        return None
    if isinstance(result, bool):
        return result
    for binding in result:
        more = dict(bound)
        for output, value in zip(outputs, binding, strict=True):
            if isinstance(output, int):
                if output != value:
                    break
            elif output in more:
                if more[output] != value:
                    break
            else:
                more[output] = value
        else:
            return True
    return False


def _negated(inner: Node, price: Any, world: World, bound: dict[str, Any]) -> bool | None:
    """Return the negation: over the variables that only the inside has, no substitution makes it TRUE."""
    free = sorted(set(inner.names()) - bound.keys())
    found = [truth(inner, price, world, bound | some) for some in substitutions(free, world)]
    if True in found:
        return False
    return None if None in found else True


def substitutions(names: list[str], world: World) -> list[dict[str, Any]]:
    """Return every substitution of values that some call returned; of no value at all, one that fits nothing.

    None stands for what a call that failed might have returned: it fits no other, and its comparisons are unknown.
    """
    values = {value for result in world.values() if isinstance(result, list) for each in result for value in each}
    domain: list[Any] = [*(sorted(values) or [-1])]
    if any(result is None or result == FAILED for result in world.values()):
        domain.append(None)
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(domain, repeat=len(names))]


def matches(node: Node, price: Any, world: World) -> bool:
    """Return whether some substitution of the outer variables makes the expression TRUE."""
    outer = sorted(outer_names(node))
    return any(truth(node, price, world, bound) is True for bound in substitutions(outer, world))


def outer_names(node: Node) -> set[str]:
    """Return the variables that occur outside NOT."""
    if node.kind == "not":
        return set()
    if node.kind in ("call", "compare"):
        return set(node.names())
    return {name for part in node.parts if isinstance(part, Node) for name in outer_names(part)}


constants = st.integers(0, 2)
variables = st.sampled_from(["a", "b", "c"])


@st.composite
def calls(draw: st.DrawFn) -> Node:
    """Draw a call whose outputs are variables, now and then the same one twice or a constant."""
    name = draw(st.sampled_from(sorted(OPERATORS)))
    outputs = tuple(draw(st.one_of(variables, variables, variables, constants)) for _ in range(OPERATORS[name]))
    return Node("call", (name, draw(constants), outputs))


@st.composite
def conjunctions(draw: st.DrawFn) -> Node:
    """Draw calls joined by AND with constraints over what they bind, prices, and negations."""
    parts = draw(st.lists(calls(), min_size=1, max_size=3))
    bound = sorted({name for part in parts for name in part.names()})
    if bound:
        for _ in range(draw(st.integers(0, 2))):
            right = draw(st.one_of(constants.map(str), st.sampled_from(bound).map(lambda name: f"2 * :{name}")))
            parts.append(Node("compare", (draw(st.sampled_from(bound)), draw(st.sampled_from("<>=")), right)))
    if draw(st.booleans()):
        parts.append(Node("price", (draw(constants),)))
    if draw(st.booleans()):
        parts.append(Node("not", (draw(calls()),)))
    if draw(st.integers(0, 3)) == 0:  # a group of its own: variables that occur nowhere else
        call = draw(calls())
        renamed = tuple(f"{each}z" if isinstance(each, str) else each for each in call.parts[2])
        inside = [Node("call", (*call.parts[:2], renamed))]
        own = [each for each in renamed if isinstance(each, str)]
        if own:
            inside.append(Node("compare", (own[0], draw(st.sampled_from("<>=")), str(draw(constants)))))
            parts.append(Node("not", (Node("and", tuple(inside)),)))
    return parts[0] if len(parts) == 1 else Node("and", tuple(draw(st.permutations(parts))))


@st.composite
def expressions(draw: st.DrawFn) -> Node:
    """Draw one conjunction or several joined by OR, each with variables of its own names."""
    drawn = draw(st.lists(conjunctions(), min_size=1, max_size=3))
    several = [_renamed(each, str(at)) for at, each in enumerate(drawn)]
    return several[0] if len(several) == 1 else Node("or", tuple(several))


def _renamed(node: Node, suffix: str) -> Node:
    if node.kind == "call":
        name, constant, outputs = node.parts
        return Node("call", (name, constant, tuple(f"{o}{suffix}" if isinstance(o, str) else o for o in outputs)))
    if node.kind == "compare":
        left, sign, right = node.parts
        return Node("compare", (f"{left}{suffix}", sign, f"{right}{suffix}" if ":" in right else right))
    return Node(node.kind, tuple(_renamed(part, suffix) if isinstance(part, Node) else part for part in node.parts))


def worlds() -> st.SearchStrategy[World]:
    """Draw what every call comes to."""
    value = st.integers(0, 4)
    truths = st.sampled_from([True, True, False, False, None, FAILED])

    def results(outputs: int) -> st.SearchStrategy[Any]:
        if not outputs:
            return truths
        bindings = st.lists(st.tuples(*[value] * outputs), max_size=3, unique=True)
        return st.one_of(bindings, bindings, bindings, st.just(FAILED))

    return st.fixed_dictionaries(
        {(name, constant): results(outputs) for name, outputs in OPERATORS.items() for constant in range(3)}
    )
