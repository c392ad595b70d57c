"""When two names are one: as Spark resolves columns, and fields inside a struct, without regard to case.

Spark compares a struct's fields letter by letter, each brought to upper and then to lower case. A column it looks up by
its whole name in lower case, and compares what it finds in that way too. Neither is `str.casefold`: there ``ß`` and
``ss`` are one name, here they are two.
"""

from __future__ import annotations


def column_key(name: str) -> str:
    """Return what names of one column have in common.

    >>> column_key("Größe") == column_key("GRÖẞE"), column_key("größe") == column_key("GRÖSSE")
    (True, False)
    """
    lower, field = name.lower(), field_key(name)
    return lower if lower == field else f"{lower}\0{field}"


def field_key(name: str) -> str:
    """Return what names of one field inside a struct have in common.

    >>> field_key("ſ") == field_key("S"), column_key("ſ") == column_key("S"), field_key("ß") == field_key("ss")
    (True, False, False)
    """
    return name.lower() if name.isascii() else "".join(map(_letter, name))


def path_key(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return what paths of one field have in common; the first part of a path is a column.

    >>> path_key(("Seller", "CITY"))
    ('seller', 'city')
    """
    return (column_key(path[0]), *map(field_key, path[1:]))


def _letter(letter: str) -> str:
    """Return a letter in upper and then in lower case; a letter whose other case is several letters has none."""
    upper = letter.upper()
    return (upper if len(upper) == 1 else letter).lower()[0]
