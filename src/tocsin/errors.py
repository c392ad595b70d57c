"""Every error Tocsin raises: one base class, one branch a room.

Each message says what was wrong, where, and what would be right. Any room may import this module; it imports nothing.
"""

from __future__ import annotations


class TocsinError(Exception):
    """The base of every error raised by Tocsin.

    >>> issubclass(ExpressionError, TocsinError)
    True
    """


class IndexError_(TocsinError):  # noqa: N801 - the trailing underscore keeps the built-in usable
    """An index was asked for something it cannot do: a box number twice, an unknown engine, a damaged file."""


class UnknownEngineError(IndexError_):
    """The engine name is not one of those installed."""


class BoxNumberError(IndexError_):
    """A box number was inserted twice, or removed without being there."""


class SavedIndexError(IndexError_):
    """A saved index is damaged, of another version, or not an index at all."""


class MemoryLimitError(IndexError_):
    """The next segment would exceed the configured memory limit; nothing was changed."""


class ExpressionError(TocsinError):
    """A subscription's text is not acceptable."""
