"""Reading hierarchies: from mappings, indented text, CSV of parents and children; files by their suffix."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tocsin.errors import TreeError
from tocsin.space.hierarchy import Hierarchy, check_word
from tocsin.space.scalars import brief

Source: TypeAlias = Any
"""What a hierarchy is made of: a `Hierarchy`, nested mappings, indented text, a Path, or a list of those."""

MOST_LISTS = 16
"""In how many lists a list of trees may stand."""

_RDF = {
    ".ttl": "turtle",
    ".nt": "nt",
    ".n3": "n3",
    ".rdf": "xml",
    ".owl": "xml",
    ".xml": "xml",
    ".jsonld": "json-ld",
    ".trig": "trig",
}
_TEXT = {".csv", ".tsv", ".txt", ".json"}
_CHILD, _PARENT = ("child", "concept", "name"), ("parent", "broader")


class Sketch:
    """A hierarchy on its way in: the parents of each name in the order met, and the words for it."""

    def __init__(self) -> None:
        self.parents: dict[str, list[str]] = {}
        self.synonyms: dict[str, str] = {}

    def put(self, name: str, parent: str | None = None) -> None:
        """Add a name, below a parent if one is given."""
        above = self.parents.setdefault(name, [])
        if parent is not None and parent not in above:
            above.append(parent)

    def word(self, word: str, name: str) -> None:
        """Add a synonym; a word that is one of another name already is refused."""
        if self.synonyms.setdefault(word, name) != name:
            raise TreeError(f"{word!r} is a synonym of {self.synonyms[word]!r} and of {name!r}; a word has one meaning")

    def finished(self) -> Hierarchy:
        """Return the hierarchy."""
        return Hierarchy.of(self.parents, self.synonyms)


def hierarchy_of(source: Source, depth: int = 0) -> Hierarchy:
    """Return the hierarchy that a source describes; the trees of a list stand beside each other.

    >>> hierarchy_of({"computer": {"portable": ["laptop", "tablet"]}}).path("tablet", "computer")
    ['tablet', 'portable', 'computer']
    >>> hierarchy_of([{"US": []}, {"US": ["Texas"]}])
    Traceback (most recent call last):
    ...
    tocsin.errors.TreeError: 'US' is in two trees, that of 'US' and that of 'US'; a name stands in one tree
    """
    if isinstance(source, Hierarchy):
        return source
    if isinstance(source, list):
        if depth == MOST_LISTS:
            raise TreeError(f"lists of trees stand in more than {MOST_LISTS} others")
        return _beside([hierarchy_of(each, depth + 1) for each in source])
    sketch = Sketch()
    if isinstance(source, Mapping):
        _from_mapping(sketch, source, None)
    elif isinstance(source, Path):
        return _from_file(source)
    elif isinstance(source, str):
        suffix = Path(source.strip()).suffix.lower()
        if "\n" not in source and (suffix in _RDF or suffix in _TEXT):
            raise TreeError(f"{source!r} is read as indented text; to read a file, pass pathlib.Path({source!r})")
        _from_text(sketch, source)
    else:
        raise TreeError(f"a tree is a mapping, indented text, a pathlib.Path or a Hierarchy, not {brief(source)}")
    if not sketch.parents:
        raise TreeError("the tree is empty; name at least one concept")
    return sketch.finished()


def additions_of(source: Source) -> Sketch:
    """Return what a mapping or indented text adds to a hierarchy: its outermost names are there already."""
    sketch = Sketch()
    if isinstance(source, Mapping):
        _from_mapping(sketch, source, None)
    elif isinstance(source, str):
        _from_text(sketch, source)
    else:
        raise TreeError(
            f"additions are a mapping of a parent to what is below it, or indented text, not {brief(source)}"
        )
    return sketch


def _beside(trees: list[Hierarchy]) -> Hierarchy:
    """Return several trees as one forest; a name stands in one of them only."""
    sketch = Sketch()
    owner: dict[str, Hierarchy] = {}
    for tree in trees:
        for row, name in enumerate(tree.names):
            if name in owner:
                first, second = owner[name].root(name), tree.root(name)
                raise TreeError(
                    f"{name!r} is in two trees, that of {first!r} and that of {second!r}; a name stands in one tree"
                )
            owner[name] = tree
            sketch.parents[name] = [tree.names[above] for above in tree.parents[row]]
        for word, row in tree.synonyms.items():
            sketch.word(word, tree.names[row])
    return sketch.finished()


def _from_mapping(sketch: Sketch, below: Any, parent: str | None) -> None:
    """Add what stands below a parent: nested mappings, lists of names, one name, or nothing."""
    waiting: list[tuple[Any, str | None]] = [(below, parent)]
    seen: set[tuple[int, str | None]] = set()  # what holds itself is walked once; `waiting` keeps all of it alive
    for inner, above in waiting:  # grows while it is walked: a deep tree needs no deep stack
        if inner is None or (id(inner), above) in seen:
            continue
        seen.add((id(inner), above))
        if isinstance(inner, Mapping):
            for name, under in inner.items():
                check_word(name)
                sketch.put(name, above)
                waiting.append((under, name))
        elif isinstance(inner, str):
            check_word(inner)
            sketch.put(inner, above)
        elif isinstance(inner, Iterable):
            waiting += [(each, above) for each in inner]
        else:
            raise TreeError(f"below {above!r} stands {brief(inner)}; write a mapping, a list of names, a name or None")


def _from_text(sketch: Sketch, text: str) -> None:
    """Add the names of indented text, a line each, ``name = synonym = synonym``; ``#`` begins a comment line."""
    open_lines: list[tuple[int, str]] = []  # the lines that the next one may stand below, outermost first
    marks: set[str] = set()  # what lines are indented by
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        margin = line[: len(line) - len(line.lstrip())]
        marks.update(margin)
        if len(marks) > 1:
            raise TreeError(
                f"line {number}: {words!r} is indented by both tabs and blanks, or unlike the lines above it"
            )
        margins = [each for each, _ in open_lines]
        if margins and len(margin) < margins[-1] and len(margin) not in margins:
            raise TreeError(f"line {number}: {words!r} is indented by {len(margin)}, as no open line above it is")
        while open_lines and open_lines[-1][0] >= len(margin):
            open_lines.pop()
        name, *synonyms = (word.strip() for word in words.split("="))
        if not name:
            raise TreeError(f"line {number}: a name is missing before =")
        sketch.put(name, open_lines[-1][1] if open_lines else None)
        for word in filter(None, synonyms):
            sketch.word(word, name)
        open_lines.append((len(margin), name))


def _from_csv(sketch: Sketch, text: str, where: str, delimiter: str) -> None:
    """Add a table with a line for each name: columns child and parent, and words for it in ``synonyms`` between ``|``.

    Where some line leaves the parent empty, roots are declared so, and a parent without a line of its own is an error.
    """
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    header = [name.strip().lower() for name in next(rows, [])]
    child = next((header.index(name) for name in _CHILD if name in header), -1)
    parent = next((header.index(name) for name in _PARENT if name in header), -1)
    if child < 0 or parent < 0:
        raise TreeError(f"{where}: the first line names columns child and parent; it says {', '.join(header)!r}")
    words = header.index("synonyms") if "synonyms" in header else -1
    roots = False
    for cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) <= max(child, parent) or not cells[child].strip():
            raise TreeError(f"{where}, line {rows.line_num}: a child and a parent are expected, not {cells!r}")
        name, above = cells[child].strip(), cells[parent].strip()
        roots |= not above
        sketch.put(name, above or None)
        for word in cells[words].split("|") if 0 <= words < len(cells) else ():
            if word.strip():
                sketch.word(word.strip(), name)
    if not roots:
        for name in [each for above in sketch.parents.values() for each in above if each not in sketch.parents]:
            sketch.put(name)


def _from_file(path: Path) -> Hierarchy:
    suffix = path.suffix.lower()
    if suffix in _RDF:
        from tocsin.space.ontology import read_ontology  # rdflib is slow to import, and an extra

        return read_ontology(path, format=_RDF[suffix])
    if suffix not in _TEXT:
        raise TreeError(f"{path}: a tree is read from {', '.join(sorted([*_TEXT, *_RDF]))}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TreeError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TreeError(f"{path} is not UTF-8: {error}") from None
    sketch = Sketch()
    try:
        if suffix == ".json":
            _from_mapping(sketch, json.loads(text), None)
        elif suffix == ".txt":
            _from_text(sketch, text)
        else:
            _from_csv(sketch, text, str(path), "\t" if suffix == ".tsv" else ",")
    except (json.JSONDecodeError, csv.Error) as error:
        raise TreeError(f"{path} is not {suffix[1:]}: {error}") from None
    except TreeError as error:
        raise error if str(path) in str(error) else TreeError(f"{path}: {error}") from None
    if not sketch.parents:
        raise TreeError(f"{path} holds no concept")
    try:
        return sketch.finished()
    except TreeError as error:
        raise TreeError(f"{path}: {error}") from None
