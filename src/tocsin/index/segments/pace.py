"""What moves cost, as measured: so that `adaptive` chooses the cheaper way."""

from __future__ import annotations

CROSSING = 12.0
"""What it costs to look at one bound on the way, in nanoseconds, until it has been measured."""


class Pace:
    """What moves have cost in a segment, in nanoseconds: comparing two answers a row, for points and for ranges, and
    following a bound; and all that comparing has cost so far."""

    def __init__(self) -> None:
        self.compared = {True: 0.0, False: 0.0}
        self._begun = {True: False, False: False}
        self.crossing = CROSSING
        self.spent = 0.0

    def note_compared(self, points: bool, rows: int, nanoseconds: float) -> None:
        """Take note of a comparison of so many rows.

        The first tells nothing of those to come: it compiles, or reads compiled code and pages of a file for the first
        time, which can cost a thousand times what it does later.

        >>> pace = Pace()
        >>> pace.note_compared(True, 10, 1e9)
        >>> pace.note_compared(True, 10, 5e3)
        >>> pace.compared[True]
        500.0
        """
        known, now = self.compared[points], nanoseconds / rows
        if self._begun[points]:
            self.compared[points] = now if not known else min(now, 0.75 * known + 0.25 * now)
            self.spent += nanoseconds
        self._begun[points] = True

    def note_followed(self, bounds: float, nanoseconds: float) -> None:
        """Take note of so many bounds followed."""
        now = nanoseconds / max(bounds, 1.0)
        self.crossing = min(max(0.75 * self.crossing + 0.25 * now, CROSSING / 8), 4 * CROSSING)
