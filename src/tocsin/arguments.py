"""Checks of what a public function is given: a value of a wrong type is refused before anything is done with it.

Each check names the argument, what it may be and what it is. Any room may import this module; of ours it imports only
`errors`.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from tocsin.errors import ArgumentTypeError, OptionError

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 120
_BRIEF.maxlevel = 3


def brief(value: Any) -> str:
    """Return a value as a message shows it: cut short, however long or deep it is.

    >>> brief([1, 2.5]), len(brief("x" * 10_000))
    ('[1, 2.5]', 120)
    """
    try:
        return _BRIEF.repr(value)
    except Exception:  # an integer of thousands of digits, an object whose repr fails
        return f"a value of type {type(value).__name__}"


def expect(value: object, kinds: type | tuple[type, ...], name: str, expected: str) -> None:
    """Refuse an argument that is of none of these types; ``expected`` says in words what it may be.

    >>> expect(3, str, "timezone", "the name of a time zone such as 'Europe/Paris'")
    Traceback (most recent call last):
    ...
    tocsin.errors.ArgumentTypeError: timezone is the name of a time zone such as 'Europe/Paris', not 3
    """
    if not isinstance(value, kinds):
        raise ArgumentTypeError(f"{name} is {expected}, not {brief(value)}")


def expect_text(value: object, name: str, expected: str = "text", *, optional: bool = False) -> None:
    """Refuse what is no text; None passes where the argument is optional."""
    if not (optional and value is None):
        expect(value, str, name, expected)


def expect_texts(values: object, name: str, expected: str = "a list of names") -> None:
    """Refuse what is no list or other collection of texts; one text is not a list of its letters.

    >>> expect_texts("price", "reads")
    Traceback (most recent call last):
    ...
    tocsin.errors.ArgumentTypeError: reads is a list of names, not 'price'
    """
    if (
        not isinstance(values, (Sequence, Set))
        or isinstance(values, (str, bytes))
        or not all(isinstance(each, str) for each in values)
    ):
        raise ArgumentTypeError(f"{name} is {expected}, not {brief(values)}")


def expect_words(value: object, name: str, expected: str) -> None:
    """Refuse what is no mapping of texts to texts.

    >>> expect_words({"USA": 3}, "synonyms", "a mapping of words to what they mean")
    Traceback (most recent call last):
    ...
    tocsin.errors.ArgumentTypeError: synonyms is a mapping of words to what they mean, not {'USA': 3}
    """
    if not isinstance(value, Mapping) or not all(
        isinstance(word, str) and isinstance(meaning, str) for word, meaning in value.items()
    ):
        raise ArgumentTypeError(f"{name} is {expected}, not {brief(value)}")


def expect_path(value: object, name: str = "path") -> None:
    """Refuse what names no file: neither a text nor a `pathlib.Path`."""
    expect(value, (str, os.PathLike), name, "the path of a file or directory, a text or a pathlib.Path")


def expect_flag(value: object, name: str) -> None:
    """Refuse what is neither True nor False."""
    expect(value, (bool, np.bool_), name, "True or False")


def expect_count(value: object, name: str, least: int = 1) -> None:
    """Refuse what is no whole number of at least so much.

    >>> expect_count(0, "threads")
    Traceback (most recent call last):
    ...
    tocsin.errors.OptionError: threads is a whole number of at least 1, not 0
    """
    expected = f"a whole number of at least {least:,}"
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{name} is {expected}, not {value!r}")
    expect(value, (int, np.integer), name, expected)
    if value < least:  # type: ignore[operator]
        raise OptionError(f"{name} is {expected}, not {brief(value)}")


def expect_several(values: object, name: str, expected: str) -> None:
    """Refuse what cannot be walked through, and a single text."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"{name} is {expected}, not {brief(values)}")


def is_one_of(value: object, allowed: Iterable[str]) -> bool:
    """Return whether a value is one of some words; anything that is no text is none, an array too.

    >>> is_one_of("null", ("null", "any")), is_one_of(np.array(["null"]), ("null", "any"))
    (True, False)
    """
    return isinstance(value, str) and value in allowed


def expect_choice(value: object, name: str, *allowed: str) -> None:
    """Refuse what is none of the words that an argument may be.

    >>> expect_choice("all", "missing", "error", "unspecified")
    Traceback (most recent call last):
    ...
    tocsin.errors.OptionError: missing is 'error' or 'unspecified', not 'all'
    """
    if not is_one_of(value, allowed):
        shown = " or ".join(filter(None, [", ".join(map(repr, allowed[:-1])), repr(allowed[-1])]))
        raise OptionError(f"{name} is {shown}, not {brief(value)}")
