"""Which patterns of LIKE and RLIKE are accepted: those that are sure to compile, and whose cost is bounded.

A pattern that does not compile would fail every later match, so each is tried when it is subscribed.
"""

from __future__ import annotations

import re

import pyarrow as pa

from tocsin import arrow as pc

MAX_PATTERN_BYTES = 10_000
"""The longest LIKE pattern with a wildcard inside, in bytes of UTF-8; ``'text%'``, ``'%text'`` and ``'%text%'`` have
no limit of their own."""

MAX_WILDCARDS = 2_000
"""The most wildcards of a LIKE pattern."""

MAX_REGEX_BYTES = 30_000
"""The longest regular expression, in bytes of UTF-8. RE2 writes to the standard error stream of much longer ones."""

REGEX_SHARE = 16
"""A regular expression takes at most this fraction of what RE2 compiles, about 43,000 instructions: searching takes at
most some 40 microseconds for each character of a text."""


def like_problem(pattern: str, escape: str) -> str | None:
    r"""Return why a LIKE pattern with wildcards or escapes inside is refused, or None.

    >>> like_problem("50\\%_off%", "\\")
    >>> like_problem("a\\b", "\\")
    "in a pattern, '\\\\' stands only before %, _ or itself"
    """
    at = pattern.find(escape)
    wildcards = pattern.count("%") + pattern.count("_")
    while at >= 0:
        if pattern[at + 1 : at + 2] not in ("%", "_", escape):
            return f"in a pattern, {escape!r} stands only before %, _ or itself"
        wildcards -= (pattern[at] in "%_") + (pattern[at + 1] in "%_")
        at = pattern.find(escape, at + 2)
    length = len(pattern.encode())
    if length > MAX_PATTERN_BYTES:
        return f"the pattern has {length:,} bytes; the limit is {MAX_PATTERN_BYTES:,} for one with a wildcard inside"
    if wildcards > MAX_WILDCARDS:
        return f"the pattern has {wildcards:,} wildcards; the limit is {MAX_WILDCARDS:,}"
    return None


def split_pattern(pattern: str, escape: str) -> tuple[list[str], str]:
    r"""Return the literal texts of a LIKE pattern, unescaped, and the wildcards that stand between them.

    >>> split_pattern("50\\%_off%", "\\")
    (['50%', 'off', ''], '_%')
    """
    sign = re.escape(escape)
    pieces: list[list[str]] = [[]]
    wildcards: list[str] = []
    for match in re.finditer(rf"{sign}(.)|([%_])|([^%_{sign}]+|.)", pattern, re.DOTALL):
        escaped, wildcard, letters = match.groups()
        if wildcard:
            pieces.append([])
            wildcards.append(wildcard)
        else:
            pieces[-1].append(escaped or letters)
    return ["".join(piece) for piece in pieces], "".join(wildcards)


def regex_problem(pattern: str) -> str | None:
    """Return why a regular expression is refused, or None.

    >>> regex_problem("b+")
    >>> regex_problem("(?=a)")
    'the regular expression is refused: invalid perl operator: (?= (RE2 syntax: no look-around, no back-references)'
    """
    length = len(pattern.encode())
    if length > MAX_REGEX_BYTES:
        return f"the regular expression has {length:,} bytes; the limit is {MAX_REGEX_BYTES:,}"
    problem = _compile_problem(pattern)
    if problem is not None and "too large" not in problem:
        return f"the regular expression is refused: {problem} (RE2 syntax: no look-around, no back-references)"
    # A \Q that is left open is closed by the second form.
    repeated = [f"(?:{pattern})" * REGEX_SHARE, f"(?:{pattern}\\E)" * REGEX_SHARE]
    if problem is not None or all(map(_compile_problem, repeated)):
        return (
            f"the regular expression is too large: the limit is 1/{REGEX_SHARE} of what RE2 compiles, about 43,000 "
            "instructions; write fewer or smaller repetitions"
        )
    return None


def _compile_problem(pattern: str) -> str | None:
    """Return what RE2, as Arrow has it, says against a regular expression."""
    try:
        pc.match_substring_regex(pa.array([""], pa.string()), pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None
