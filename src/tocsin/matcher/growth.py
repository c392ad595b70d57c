"""Growing the tree of a field while subscriptions are stored.

A new concept takes a number from the room of its parent, so that every stored interval of what is above it holds it
already. Two things change stored sets: a concept below a further parent, whose interval joins those of all that is
above that parent, and a plain text that becomes a concept. Then the subscriptions that name such a concept or text are
made anew from their texts, in one step. Events know the new words only after that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tocsin import arrow as pc
from tocsin.errors import SpaceError, TreeError
from tocsin.matcher.ranges import Ranges
from tocsin.matcher.state import encoder_of
from tocsin.space.books import BookFullError
from tocsin.space.concepts import ConceptCodes, Known, words_of
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.scalars import brief
from tocsin.space.space import Space
from tocsin.space.trees import Sketch, additions_of
from tocsin.space.types import Concept

if TYPE_CHECKING:
    from tocsin.matcher.matcher import Matcher

_TOGETHER = 100


def grow(matcher: Matcher, field: str, additions: Any, synonyms: Mapping[str, str]) -> None:
    """Add concepts to the tree of a field; the caller holds the writer's lock."""
    old = tree_of(matcher.space, field)
    sketch = additions_of(additions)
    new = _grown(old, sketch, synonyms)
    space = matcher.space.with_tree(old, new)
    before = {number: codec.known.words for number, codec in _using(matcher, old)}
    learned = _learned(matcher, old, new)
    if learned is None:
        matcher._change_over(matcher._state.tidied(matcher._subscriptions.program, matcher._options, space))
        for number, codec in _using(matcher, new):
            codec.hide(old, before.get(number) or words_of(old))
    else:
        for number, codec in _using(matcher, old):
            codec.learn(_kind(space, matcher, number), learned[number])
        matcher._state.axes.space = space
    texts = {text for _, codec in _using(matcher, new) for text in codec.texts if text in new and text not in old}
    _refill(matcher, {*_touched(old, new, sketch), *texts}, everything=space.unspecified == "any")
    matcher.space = space
    state = matcher._state
    matcher._state = replace(state, encoder=encoder_of(state.axes, state.programs), ranges=Ranges(state.axes))
    for _, codec in _using(matcher, new):
        codec.shown()


def tree_of(space: Space, field: str) -> Hierarchy:
    """Return the tree of a field; SpaceError if it has none."""
    if not isinstance(field, str):
        raise SpaceError(f"a field is named by a text, not {brief(field)}")
    path = space.find(tuple(field.split(".")))
    if path is None:
        raise SpaceError(f"there is no field {field!r}; {space.nearest(field)}")
    kind = space.scalar(path)
    if not isinstance(kind, Concept):
        raise SpaceError(f"{field} is {kind.type} and has no tree to grow")
    return kind.tree


def _grown(old: Hierarchy, sketch: Sketch, synonyms: Mapping[str, str]) -> Hierarchy:
    if not isinstance(synonyms, Mapping) or not all(
        isinstance(each, str) for pair in synonyms.items() for each in pair
    ):
        raise TreeError(f"synonyms are a mapping of words to names of the tree, not {brief(synonyms)}")
    for name, parents in sketch.parents.items():
        if not parents and name not in old:
            raise TreeError(f"there is no {name!r} to put something below; {old.nearest(name)}")
    below = {name: parents for name, parents in sketch.parents.items() if parents}
    return old.grown(below, {**sketch.synonyms, **synonyms})


def _using(matcher: Matcher, tree: Hierarchy) -> Iterator[tuple[int, ConceptCodes]]:
    return ((number, codec) for number, codec in matcher._state.axes.concepts() if codec.kind.tree is tree)


def _kind(space: Space, matcher: Matcher, number: int) -> Concept:
    kind = space.scalar(matcher._state.axes.keys[number].path)
    assert isinstance(kind, Concept)  # the axis of a concept has one
    return kind


def _learned(matcher: Matcher, old: Hierarchy, new: Hierarchy) -> dict[int, Known] | None:
    """Return the new numbers on each axis, None if one of them has no room left."""
    try:
        return {number: codec.known.grown(new) for number, codec in _using(matcher, old)}
    except BookFullError:
        return None


def _touched(old: Hierarchy, new: Hierarchy, sketch: Sketch) -> set[str]:
    """Return the words of all concepts that got an interval from elsewhere."""
    rows: set[int] = set()
    for name in sketch.parents:
        row = new.rows.get(name)
        if row is None:
            continue
        known = len(old.parents[row]) if row < len(old) else 1
        for parent in new.parents[row][known:]:
            rows |= set(new.above(parent))
    if not rows:
        return set()
    return {new.names[row] for row in rows} | {word for word, row in new.synonyms.items() if row in rows}


def _refill(matcher: Matcher, words: Iterable[str], *, everything: bool) -> None:
    """Make the subscriptions anew whose texts name one of the words.

    ``everything``: all of them, where a field that is left out spans its domain: what held of no concept may hold of
    the new one.
    """
    sought = sorted(words)
    if not (sought or everything) or not len(matcher._subscriptions):
        return
    ids, texts = matcher._subscriptions.all_texts()
    named = np.full(len(ids), everything)
    # A word may be written with escapes or doubled quotes: such texts are made anew without a closer look.
    patterns = ["\\\\|''|\"\""] + [
        "|".join(map(_quoted, sought[start : start + _TOGETHER])) for start in range(0, len(sought), _TOGETHER)
    ]
    for pattern in patterns:
        named |= np.array(pc.match_substring_regex(texts, pattern))
    chosen = np.flatnonzero(named)
    if len(chosen):
        again = texts.take(pa.array(chosen)).cast(pa.string())
        filled = matcher._fill(again)
        for error in filled.problems.values():
            raise error
        matcher._apply([ids[row] for row in chosen], again, filled)


def _quoted(word: str) -> str:
    return re.sub(r"([^\w])", lambda found: f"\\x{{{ord(found[1]):x}}}", word, flags=re.ASCII)
