"""Text: regular expressions in linear time, and many keywords in one pass."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import re2

from tocsin.language.patterns import regex_problem
from tocsin.operators.operator import Asked, operator
from tocsin.operators.patterns import NEEDED, blocks_of

_WORD = re.compile(r"\w+")
_WORTH = 64  # asking one pattern costs as much as having this many of them in blocks


def _pattern_check(text: Any, pattern: Any) -> str | None:
    if text is not None:
        return "the text is a field"
    if not isinstance(pattern, str):
        return "a pattern is a text"
    problem = regex_problem(pattern)
    return None if problem is None else problem.replace("the regular expression", "the pattern", 1)


def _compiled(pattern: str) -> Any:
    """Return a pattern that RE2 has compiled, without what it would say about a bad one itself."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options=options)


@operator(form="bulk", parameters=("text", "pattern"), prepare=_compiled, check=_pattern_check)
def matches(asked: Asked) -> npt.NDArray[np.int8]:
    """``matches(text, pattern)``: the pattern, in RE2 syntax, is found somewhere in the text.

    A text is read once, however many patterns are asked about. Of a repeated field, one of its texts is enough.

    >>> from tocsin import Matcher, Space, Text
    >>> matcher = Matcher(Space({"body": Text()}))
    >>> matcher.subscribe("order", r"matches(body, '(?i)order #[0-9]{5}')")
    >>> matcher.match({"body": "Where is ORDER #12345?"}), matcher.match({"body": "order"})
    (['order'], [])
    """
    texts, patterns = [_texts(value) for value in asked.columns[0]], asked.prepared.values
    found = np.zeros(len(asked.rows), np.int8)
    worth = max(NEEDED, len(patterns) // _WORTH)
    many = np.bincount(asked.rows, minlength=len(texts)) >= worth
    singly = ~many[asked.rows]
    if many.any():
        with asked.prepared.lock:
            blocks = blocks_of(asked.prepared.memo, patterns)
        singly |= asked.which >= (blocks[-1].stop if blocks else 0)
        order = np.argsort(asked.rows, kind="stable")
        bounds = np.searchsorted(asked.rows[order], np.arange(len(texts) + 1))
        holds = np.zeros(len(patterns), bool)
        for row in np.flatnonzero(many).tolist():
            pairs = order[bounds[row] : bounds[row + 1]]
            hits = [number for text in texts[row] for block in blocks for number in block.found(text)]
            holds[hits] = True
            found[pairs] = holds[asked.which[pairs]]
            holds[hits] = False
    for pair in np.flatnonzero(singly).tolist():
        search = patterns[asked.which[pair]].search
        found[pair] = any(search(text) is not None for text in texts[asked.rows[pair]])
    return _or_unknown(found, asked)


def _texts(value: Any) -> list[str]:
    """Return the texts of a field: its one, or those of a repeated one."""
    return [each for each in value if each is not None] if isinstance(value, list) else [value]


def _or_unknown(found: npt.NDArray[np.int8], asked: Asked) -> npt.NDArray[np.int8]:
    """Return what was found, but unknown where it was not and a repeated field has a NULL among its texts."""
    unknown = np.array([isinstance(value, list) and None in value for value in asked.columns[0]], bool)
    return np.where((found == 0) & unknown[asked.rows], -1, found).astype(np.int8)


def words_of(text: str) -> list[str]:
    """Return the words of a text without regard to case.

    >>> words_of("Money-back, please!")
    ['money', 'back', 'please']
    """
    return _WORD.findall(text.casefold())


def _keywords_check(*constants: Any) -> str | None:
    if constants[0] is not None:
        return "the text is a field"
    for keyword in constants[1:]:
        if not isinstance(keyword, str) or not words_of(keyword):
            return f"a keyword is a text with at least one word, not {keyword!r}"
    return None


@operator(
    form="bulk",
    parameters=("text", "keyword"),
    prepare=lambda *keywords: tuple(tuple(words_of(keyword)) for keyword in keywords),
    check=_keywords_check,
    variadic=True,
)
def mentions(asked: Asked) -> npt.NDArray[np.int8]:
    """``mentions(text, keyword, ...)``: one of the keywords, each a word or several in a row, is in the text.

    A text is read once, however many keywords are asked about. Of a repeated field, one of its texts is enough.

    >>> from tocsin import Matcher, Space, Text
    >>> matcher = Matcher(Space({"body": Text()}))
    >>> matcher.subscribe("refunds", "mentions(body, 'refund', 'money back')")
    >>> matcher.match({"body": "I want my money back!"}), matcher.match({"body": "moneyback"})
    (['refunds'], [])
    """
    phrases = _phrases(asked)
    hits: list[set[int]] = []
    for value in asked.columns[0]:
        found: set[int] = set()
        for text in _texts(value):
            words = words_of(text)
            for at, word in enumerate(words):
                for phrase, which in phrases.get(word, ()):
                    if which not in found and tuple(words[at : at + len(phrase)]) == phrase:
                        found.add(which)
        hits.append(found)
    pairs = zip(asked.rows.tolist(), asked.which.tolist(), strict=True)
    return _or_unknown(np.array([which in hits[row] for row, which in pairs], np.int8), asked)


def _phrases(asked: Asked) -> dict[str, list[tuple[tuple[str, ...], int]]]:
    """Return the phrases of all calls by their first word, with the calls added since the last time."""
    prepared = asked.prepared
    with prepared.lock:
        phrases: dict[str, list[tuple[tuple[str, ...], int]]] = prepared.memo.setdefault("phrases", {})
        start, stop = prepared.memo.get("read", 0), len(prepared)  # others may be added meanwhile
        for which in range(start, stop):
            for phrase in prepared.values[which]:
                phrases.setdefault(phrase[0], []).append((phrase, which))
        prepared.memo["read"] = stop
    return phrases
