"""Every error Tocsin raises: one base class, one branch a room.

Each message says what was wrong, where, and what would be right. Any room may import this module; it imports nothing.
"""

from __future__ import annotations


class TocsinError(Exception):
    """The base of every error raised by Tocsin.

    >>> issubclass(ExpressionError, TocsinError)
    True
    """


class CopyError(TocsinError, TypeError):
    """Something that holds locks, threads or mapped files was to be copied or pickled; the message says what to do
    instead."""


class ArgumentTypeError(TocsinError, TypeError):
    """An argument is of a type that it cannot have."""


class OptionError(TocsinError, ValueError):
    """An argument is not one of the values that it may have."""


class EngineError(TocsinError):
    """An index was asked for something it cannot do: a box number twice, an unknown engine, a damaged file."""


class UnknownEngineError(EngineError):
    """The engine name is not one of those installed."""


class BoxNumberError(EngineError):
    """A box number was inserted twice, or removed without being there."""


class BoxError(EngineError):
    """A box has an empty interval, or its entries are out of order."""


class ContainmentError(EngineError):
    """Boxes around or inside a box are asked for in a way that has no answer."""


class SavedIndexError(EngineError):
    """A saved index is damaged, of another version, or not an index at all."""


class MemoryLimitError(EngineError):
    """The next segment would exceed the configured memory limit; nothing was changed."""


class ExpressionError(TocsinError):
    """A subscription's text is not acceptable. The message ends with the line, a caret below the place.

    ``line`` and ``column`` count from 1; they are None where no single place is to blame.

    >>> error = ExpressionError("a value is missing", "price <", 6)
    >>> error.line, error.column
    (1, 7)
    >>> print(error)
    a value is missing (line 1, column 7)
      price <
            ^
    """

    def __init__(self, reason: str, text: str = "", offset: int | None = None) -> None:
        self.reason, self.text, self.offset = reason, text, offset
        self.line: int | None = None
        self.column: int | None = None
        message = reason
        if offset is not None:
            offset = min(max(offset, 0), len(text))
            start = text.rfind("\n", 0, offset) + 1
            self.line = text.count("\n", 0, offset) + 1
            self.column = offset - start + 1
            message += f" (line {self.line}, column {self.column})" + self._excerpt(start, offset)
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ExpressionError], tuple[str, str, int | None]]:
        return type(self), (self.reason, self.text, self.offset)

    def _excerpt(self, start: int, offset: int) -> str:
        """Return the line with a caret below the place, cut to what a terminal shows."""
        line = self.text[start:].split("\n", 1)[0]
        first = max(0, offset - start - 60)
        shown = line[first : first + 100].replace("\t", " ")
        return f"\n  {shown}\n  {' ' * (offset - start - first)}^"


class ExpressionSyntaxError(ExpressionError):
    """The text is not a Spark SQL expression."""


class UnsupportedExpressionError(ExpressionError):
    """The text is SQL, but outside the documented subset."""


class NotEnabledError(ExpressionError):
    """The text uses an operator, a variable or a concept test that this space does not evaluate."""


class ExpressionLimitError(ExpressionError):
    """The text is longer, deeper or wider than the documented limits."""


class UnknownFieldError(ExpressionError):
    """The text names a field that the space does not have; the message names the nearest."""


class TypeClashError(ExpressionError):
    """A field is compared with a constant of a type it cannot be compared with."""


class UnknownTermError(ExpressionError):
    """The text names a concept that the field's tree does not have; the message names the nearest."""


class SpaceError(TocsinError):
    """A space is declared, read or inferred wrongly."""


class TreeError(SpaceError):
    """A hierarchy is not one: a cycle, an unknown parent, a name in two trees, a word with two meanings, a bad file."""


class UnitError(SpaceError):
    """A unit is unknown, measures something else than the dimension, or has no rate on the day."""


class EventError(TocsinError):
    """An event does not fit the space: the message names the row, the field, the value and what was expected."""


class OperatorError(TocsinError):
    """An operator is declared or registered wrongly, or is not there when it is needed."""


class OperatorFailedError(EventError):
    """An operator whose failures are errors of the event raised, returned something else than it declared, or did not
    end in time."""


class MissingColumnError(EventError):
    """A table lacks a column that is needed; the message names those it has."""


class SubscriptionError(TocsinError):
    """Subscriptions cannot be added or removed as asked."""


class DuplicateSubscriptionError(SubscriptionError):
    """A subscription of that id is there already."""


class UnknownSubscriptionError(SubscriptionError):
    """There is no subscription of that id."""


class BadSubscriptionsError(SubscriptionError):
    """Some rows of a bulk load are bad; none was applied. ``problems`` lists them all as (row, id, error)."""

    def __init__(self, problems: list[tuple[int, object, TocsinError]]) -> None:
        self.problems = problems
        shown = "\n".join(f"row {row} (id {id!r}): {error}" for row, id, error in problems[:5])
        more = f"\n... and {len(problems) - 5} more" if len(problems) > 5 else ""
        super().__init__(f"{len(problems)} of the subscriptions are bad; none was added\n{shown}{more}")

    def __reduce__(self) -> tuple[type[BadSubscriptionsError], tuple[list[tuple[int, object, TocsinError]]]]:
        return type(self), (self.problems,)


class CoveringError(TocsinError):
    """A relation graph was asked for something it cannot do: a subscription twice, an unknown one, k below 1."""


class SubjectError(TocsinError):
    """A publication, a subscription or a region of them cannot be put, changed or taken away as asked."""


class RegionError(SubjectError):
    """A region constrains nothing, or names a space or a dimension that is not there."""


class FilterError(SubjectError):
    """A filter is not a boolean expression over the regions it may name, or holds where none of them matches."""


class DuplicatePublicationError(SubjectError):
    """A publication of that key is there already."""


class UnknownPublicationError(SubjectError):
    """There is no publication of that key."""


class FileError(TocsinError):
    """A file cannot be read or written as asked: it is missing, a directory, forbidden, or empty."""


class FileFormatError(FileError):
    """A file's contents are not what its format says: wrong magic, truncated, not UTF-8, a malformed line."""


class FileColumnError(FileError):
    """A file lacks a column that is needed; the message names those present and the nearest."""


class SparkError(TocsinError):
    """A Spark job cannot be run as asked: Java is missing, a port is taken, workers share no storage, a schema has
    changed."""
