"""Many regular expressions over one text at a time: which of them can match is found in one pass.

Patterns lie in blocks. A block knows the literal texts that its patterns need (RE2's filter), finds those that an event
has in one pass, and leaves the few patterns that may match; patterns that need no literal text (``[0-9]{5}``) are one
automaton (RE2's set). Both give up without a word when they run out of memory, so each has something that is always
found: where that is missing, every pattern of the block is asked for itself.
"""

from __future__ import annotations

from typing import Any

import re2

NEEDED = 64
"""So many patterns make a block; fewer are asked one by one."""

MOST = 4096
_MEMORY = 256 << 20
_ALWAYS = "\ntocsin:always:found"


class Block:
    """The patterns ``start`` to ``stop`` of a family.

    >>> block = Block([re2.compile("a+b"), re2.compile("[0-9]{3}"), re2.compile("xyz")], 0, 3)
    >>> block.found("aab 123")
    [0, 1]
    """

    def __init__(self, patterns: list[Any], start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self._patterns = patterns[start:stop]
        self._filter = self._compiled(re2.Filter(), [*(each.pattern for each in self._patterns), re2.escape(_ALWAYS)])
        free = [] if self._filter is None else self._filter.Match("", potential=True) or []
        self._free = [each for each in free if each < len(self._patterns)]
        options = re2.Options()
        options.max_mem, options.log_errors, options.never_capture = _MEMORY, False, True
        free_set = re2.Set.SearchSet(options)
        self._set = self._compiled(free_set, [*(self._patterns[each].pattern for each in self._free), ""])

    @staticmethod
    def _compiled(empty: Any, patterns: list[str]) -> Any:
        """Return a filter or set with these patterns, None if they take too much memory."""
        try:
            for pattern in patterns:
                empty.Add(pattern)
            empty.Compile()
        except re2.error:
            return None
        return empty

    def found(self, text: str) -> list[int]:
        """Return the numbers of the patterns that are found in a text."""
        last = len(self._patterns)
        maybe = [] if self._filter is None else self._filter.Match(text + _ALWAYS, potential=True) or []
        kept: list[int] = []
        if last not in maybe:
            maybe = range(last)
        else:
            sure = [] if self._set is None else self._set.Match(text) or []
            if len(self._free) in sure:
                free = set(self._free)
                kept = [self._free[each] for each in sure if each < len(self._free)]
                maybe = [each for each in maybe if each not in free]
        kept += [each for each in maybe if each < last and self._patterns[each].search(text) is not None]
        return [self.start + at for at in sorted(kept)]


def blocks_of(memo: dict[str, Any], patterns: list[Any]) -> list[Block]:
    """Return the blocks over all patterns but the last few, with those added since the last time.

    A block is merged with the one before it where that is no larger, so that each pattern is built into few.
    """
    blocks: list[Block] = list(memo.get("blocks", ()))
    start, stop = blocks[-1].stop if blocks else 0, len(patterns)
    if stop - start < NEEDED:
        return blocks
    while start < stop:
        end = min(start + MOST, stop)
        while blocks and blocks[-1].stop - blocks[-1].start <= end - start and end - blocks[-1].start <= MOST:
            start = blocks.pop().start
        blocks.append(Block(patterns, start, end))
        start = end
    memo["blocks"] = blocks
    return blocks
