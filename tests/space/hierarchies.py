"""Random hierarchies for property tests, and the definition of `is_a` by walking parents."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["", " ", "b", "ab", "ä", "台式机", "it's", "x\\y", "NULL", "0", "A", "Desktop PC", "%", "a\nb"]


def name_of(number: int) -> str:
    """Return a name, awkward ones first."""
    return f"{NAMES[number % len(NAMES)]}{number}"


@st.composite
def parents(draw: st.DrawFn, most: int = 24, several: bool = True) -> dict[str, list[str]]:
    """Draw the parents of each of some names: trees and forests, or with several parents a name."""
    count = draw(st.integers(1, most))
    found: dict[str, list[str]] = {}
    for number in range(count):
        width = draw(st.sampled_from([0, 1, 1, 1, 1, 2, 3] if several else [0, 1, 1, 1])) if number else 0
        above = draw(
            st.lists(st.integers(0, max(0, number - 1)), min_size=width, max_size=width, unique=number >= width)
        )
        found[name_of(number)] = list(dict.fromkeys(name_of(each) for each in above))
    return found


def is_a(parents: dict[str, list[str]], name: str, concept: str) -> bool:
    """Return whether a name is a concept or below it: the definition."""
    return name == concept or any(is_a(parents, each, concept) for each in parents[name])
