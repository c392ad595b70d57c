"""Hierarchies from RDF: classes below classes (RDFS, OWL) and concepts below concepts (SKOS), through rdflib."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

from tocsin.arguments import expect_choice, expect_flag, expect_path, expect_text
from tocsin.errors import TreeError
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.trees import Sketch


def read_ontology(
    path: str | Path,
    *,
    format: str | None = None,
    language: str = "en",
    ambiguous: Literal["error", "drop"] = "error",
    properties: bool = False,
) -> Hierarchy:
    """Return the hierarchy of an RDF file: ``rdfs:subClassOf``, ``skos:broader`` and ``skos:narrower``.

    A concept is named by its label in the ``language``, or one without language, else by the last part of its IRI; its
    other labels, its IRI and the classes that are ``owl:equivalentClass`` to it are synonyms. A word that means two
    concepts is an error, or meant by none (``ambiguous="drop"``). With ``properties`` it is ``rdfs:subPropertyOf``
    that is read: a tree of attributes.
    """
    expect_path(path)
    expect_text(format, "format", "the name of an RDF format such as 'turtle'", optional=True)
    expect_text(language, "language", "the code of a language such as 'en'")
    expect_choice(ambiguous, "ambiguous", "error", "drop")
    expect_flag(properties, "properties")
    try:
        import rdflib
        from rdflib.namespace import OWL, RDF, RDFS, SKOS
    except ModuleNotFoundError:
        raise TreeError(f"{path}: reading RDF needs rdflib: pip install 'tocsin[ontology]'") from None
    graph = rdflib.Graph()
    logging.getLogger("rdflib").setLevel(logging.ERROR)
    try:
        graph.parse(str(path), format=format)
    except OSError as error:
        raise TreeError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # every parser of rdflib has errors of its own
        told = (" ".join(str(error).split()) or type(error).__name__)[:300]
        raise TreeError(f"{path} cannot be read as RDF ({format or 'format unknown'}): {told}") from None
    uri = rdflib.URIRef
    below = [RDFS.subPropertyOf] if properties else [RDFS.subClassOf, SKOS.broader]
    edges: list[tuple[Any, Any]] = [(low, high) for way in below for low, high in graph.subject_objects(way)]
    if not properties:
        edges += [(low, high) for high, low in graph.subject_objects(SKOS.narrower)]
    kinds = (
        [RDF.Property, OWL.ObjectProperty, OWL.DatatypeProperty]
        if properties
        else [RDFS.Class, OWL.Class, SKOS.Concept]
    )
    nodes = {node: None for kind in kinds for node in graph.subjects(RDF.type, kind) if isinstance(node, uri)}
    edges = [(low, high) for low, high in edges if isinstance(low, uri) and isinstance(high, uri) and low != high]
    nodes |= {node: None for edge in edges for node in edge}
    ignored = {OWL.Thing, RDFS.Resource, RDFS.Class}
    same = _same(graph.subject_objects(OWL.equivalentClass), nodes, uri)
    members: dict[Any, list[Any]] = {}
    for node in sorted(nodes, key=str):
        if node not in ignored:
            members.setdefault(same.get(node, node), []).append(node)
    if not members:
        raise TreeError(f"{path} holds no classes and no concepts; subClassOf or broader is expected")
    labels = {node: _labels(graph, each, language, RDFS, SKOS) for node, each in members.items()}
    names = _names(labels, members)
    sketch = Sketch()
    for node in members:
        sketch.put(names[node])
    for low, high in sorted(edges, key=lambda edge: (str(edge[0]), str(edge[1]))):
        low, high = same.get(low, low), same.get(high, high)
        if low != high and low in members and high in members:
            sketch.put(names[low], names[high])
    _add_words(sketch, names, labels, members, ambiguous, path)
    try:
        return sketch.finished()
    except TreeError as error:
        raise TreeError(f"{path}: {error}") from None


def _same(pairs: Any, nodes: dict[Any, None], uri: type) -> dict[Any, Any]:
    """Return for each of several equivalent classes the one that stands for all: the least by name."""
    head: dict[Any, Any] = {}

    def top(node: Any) -> Any:
        while head.get(node, node) != node:
            node = head[node]
        return node

    for one, other in pairs:
        if isinstance(one, uri) and isinstance(other, uri) and one in nodes and other in nodes:
            first, second = sorted((top(one), top(other)), key=str)
            head[second] = first
    return {node: top(node) for node in head}


def _labels(graph: Any, nodes: list[Any], language: str, rdfs: Any, skos: Any) -> list[str]:
    """Return the labels of equivalent nodes, behind the one that names them: empty if they have none fit for it."""
    found: list[tuple[int, str]] = []
    for node in nodes:
        for rank, way in ((0, skos.prefLabel), (0, rdfs.label), (10, skos.altLabel), (10, skos.hiddenLabel)):
            for label in graph.objects(node, way):
                tongue = getattr(label, "language", None)
                found.append((rank + (0 if tongue == language else 1 if not tongue else 2), str(label).strip()))
    ranked = sorted((rank, text) for rank, text in found if text)
    fit = ranked[0][1] if ranked and ranked[0][0] <= 1 else ""
    return [fit, *(text for _, text in ranked)]


def _names(labels: dict[Any, list[str]], members: dict[Any, list[Any]]) -> dict[Any, str]:
    """Return a name for each node: its best label where no other node has it, else the end of its IRI, else its IRI."""
    names: dict[Any, str] = {}
    for choose in (lambda node: labels[node][0] or _local(node), _local, str):
        wanted = {node: choose(node) for node in members if node not in names}
        taken = set(names.values())
        counts: dict[str, int] = {}
        for name in wanted.values():
            counts[name] = counts.get(name, 0) + 1
        names |= {node: name for node, name in wanted.items() if counts[name] == 1 and name not in taken}
    return names


def _local(node: Any) -> str:
    text = str(node)
    return text.rstrip("/#").replace("#", "/").rpartition("/")[2] or text


def _add_words(
    sketch: Sketch,
    names: dict[Any, str],
    labels: dict[Any, list[str]],
    members: dict[Any, list[Any]],
    ambiguous: str,
    path: str | Path,
) -> None:
    """Add the synonyms; one that means two concepts is an error or left out."""
    meant: dict[str, set[str]] = {}
    for node, each in members.items():
        for word in [*labels[node][1:], *map(str, each), *map(_local, each)]:
            meant.setdefault(word, set()).add(names[node])
    certain = {word for node in members for word in labels[node][1:]}
    taken = set(names.values())
    for word, owners in meant.items():
        others = owners | ({word} if word in taken else set())
        if len(others) == 1:
            if word not in taken:
                sketch.word(word, next(iter(owners)))
        elif ambiguous == "error" and word in certain:
            shown = " and ".join(map(repr, sorted(others)[:3]))
            raise TreeError(
                f"{path}: the label {word!r} means {shown}; mend the file, or read it with "
                "tocsin.read_ontology(path, ambiguous='drop')"
            )
