"""From a file of subscriptions to a matcher that holds them, and a finding for every row that it refuses."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import pyarrow.compute as pc

from tocsin.cli.progress import progress
from tocsin.cli.subscriptions import Subscriptions
from tocsin.errors import DuplicateSubscriptionError, ExpressionError, FileError, TocsinError
from tocsin.matcher import Matcher, Problem


class Finding(NamedTuple):
    """Something to say about one row: its line or row, the column in its expression, its id, and the excerpt."""

    place: str
    number: int
    column: int | None
    id: Any
    kind: str
    reason: str
    excerpt: str = ""

    def as_text(self, name: str) -> str:
        """Return the finding as lines for people, in the form that editors jump to."""
        where = f"{name}:{self.number}" if self.place == "line" else f"{name}, row {self.number}"
        column = f" column {self.column}:" if self.column is not None else ""
        which = f" (id {self.id!r})" if self.id is not None else ""
        return f"{where}:{column} {self.reason}{which}{self.excerpt}"

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the finding as one JSON object."""
        place = {"file": name, self.place: self.number, "column": self.column, "id": self.id}
        return place | {"kind": self.kind, "reason": self.reason}


def load(matcher: Matcher, subscriptions: Subscriptions) -> list[Finding]:
    """Add every good row to the matcher; return what is wrong with the others, in the order of the file."""
    place = subscriptions.place
    found = [Finding(place, *fault[:3], "bad", fault.reason) for fault in subscriptions.faults]
    problems: list[Problem] = []
    with progress("loading subscriptions"):
        matcher.subscribe_many(subscriptions.table, problems=problems)
    found += [_finding(subscriptions, *problem) for problem in problems]
    return sorted(found, key=lambda finding: finding.number)


def never_matching(matcher: Matcher, subscriptions: Subscriptions) -> list[Finding]:
    """Return a finding for each loaded subscription that no event can satisfy."""
    reason = "it can never match: its conditions contradict each other"
    return [
        Finding(subscriptions.place, subscriptions.lines[_first_row(subscriptions, id)], None, id, "never", reason)
        for id in matcher.never()
    ]


def report(name: str, findings: list[Finding]) -> None:
    """Say on standard error what is wrong with a file."""
    for finding in findings:
        print(finding.as_text(name), file=sys.stderr)


def refuse_two_standard_inputs(*paths: str | None) -> None:
    """Raise FileError when more than one input is to come from standard input."""
    if sum(path == "-" for path in paths) > 1:
        raise FileError("only one input can be standard input; give the other as a file")


def _finding(subscriptions: Subscriptions, row: int, id: Any, error: TocsinError) -> Finding:
    place, line = subscriptions.place, subscriptions.lines[row]
    if isinstance(error, DuplicateSubscriptionError) and id is not None:
        first = subscriptions.lines[_first_row(subscriptions, id)]
        return Finding(place, line, None, id, "bad", f"the id is given twice, first on {place} {first}")
    if not isinstance(error, ExpressionError):
        return Finding(place, line, None, id, "bad", str(error))
    inner = f" (line {error.line} of the expression)" if error.line not in (None, 1) else ""
    _, _, excerpt = str(error).partition("\n")
    return Finding(place, line, error.column, id, "bad", error.reason + inner, excerpt and f"\n{excerpt}")


def _first_row(subscriptions: Subscriptions, id: Any) -> int:
    return int(pc.index(subscriptions.table["id"], id).as_py())
