"""Objects that are neither copied nor pickled, and say what to do instead."""

from __future__ import annotations

from typing import Any, ClassVar

from tocsin.errors import CopyError


class NotPickled:
    """A base of classes that hold locks, threads and mapped files; ``_instead`` says how to have another one.

    >>> import copy
    >>> from tocsin import Matcher, Number, Space
    >>> copy.copy(Matcher(Space({"price": Number()})))
    Traceback (most recent call last):
        ...
    tocsin.errors.CopyError: a Matcher is neither copied nor pickled: save it with matcher.save(path) and open that \
with Matcher.load(path)
    """

    _instead: ClassVar[str]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise CopyError(f"a {type(self).__name__} is neither copied nor pickled: {self._instead}")
