"""Reading hierarchies: every form gives the same tree, and every bad one says what is wrong and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.space.hierarchies import parents

import tocsin
from tocsin.errors import TocsinError, TreeError
from tocsin.space.hierarchy import Hierarchy
from tocsin.space.trees import hierarchy_of

MAPPING = {"product": {"computer": {"portable": ["laptop", "tablet"], "desktop": None}, "gift": "tablet"}}
TEXT = """
# goods
product
  computer
    portable
      laptop = notebook = 笔记本
      tablet
    desktop

  gift
    tablet
"""
TABLE = """child,parent,synonyms
product,,
computer,product,
portable,computer,
laptop,portable,notebook|笔记本
tablet,portable,
tablet,gift,
desktop,computer,
gift,product,
"""
TURTLE = """
@prefix : <http://example.org/goods#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:Product a owl:Class ; rdfs:label "product"@en .
:Computer rdfs:subClassOf :Product, owl:Thing, :Computer ; rdfs:label "computer" .
:Portable rdfs:subClassOf :Computer, [ a owl:Restriction ] ; rdfs:label "portable"@en, "tragbar"@de .
:Laptop rdfs:subClassOf :Portable ; rdfs:label "laptop"@en ; skos:altLabel "notebook"@en, "笔记本"@zh .
:tablet rdfs:subClassOf :Portable, :Gift . :Desktop rdfs:subClassOf :Computer ; rdfs:label "desktop"@en .
:Gift rdfs:subClassOf :Product ; owl:equivalentClass :Present ; rdfs:label "gift"@en .
:Present a owl:Class ; rdfs:label "present"@en .
"""
SKOS = """
@prefix : <http://example.org/goods#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:product a skos:Concept ; skos:narrower :computer, :gift . :portable skos:broader :computer .
:laptop skos:broader :portable ; skos:altLabel "notebook", "笔记本"@zh . :tablet skos:broader :portable, :gift .
:desktop skos:broader :computer .
"""


def ways(tree: Hierarchy) -> dict[str, set[str]]:
    return {name: {tree.names[above] for above in tree.parents[row]} for row, name in enumerate(tree.names)}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_form_gives_the_same_tree(tmp_path: Path) -> None:
    wanted = ways(hierarchy_of(MAPPING))
    files = {
        "t.txt": TEXT,
        "t.csv": TABLE,
        "t.tsv": TABLE.replace(",", "\t"),
        "t.json": json.dumps(MAPPING),
        "t.ttl": TURTLE,
        "s.ttl": SKOS,
    }
    assert ways(hierarchy_of(TEXT)) == wanted
    for name, text in files.items():
        tree = hierarchy_of(write(tmp_path, name, text))
        assert ways(tree) == wanted, name
        if name != "t.json":
            assert tree.path("notebook", "product") == ["laptop", "portable", "computer", "product"]
            assert tree.is_a("笔记本", "computer")
    ontology = hierarchy_of(tmp_path / "t.ttl")
    assert ontology.row("present") == ontology.row("gift") == ontology.row("http://example.org/goods#Present")
    assert ontology.row("tragbar") == ontology.row("Portable") == ontology.row("portable")


def test_an_ontology_in_other_formats_and_as_attributes(tmp_path: Path) -> None:
    import rdflib

    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    for suffix, kind in ((".owl", "xml"), (".nt", "nt"), (".jsonld", "json-ld")):
        graph.serialize(str(tmp_path / f"t{suffix}"), format=kind)
        assert ways(hierarchy_of(tmp_path / f"t{suffix}")) == ways(hierarchy_of(MAPPING))
    contacts = """@prefix : <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :email rdfs:subPropertyOf :contact . :cellphone rdfs:subPropertyOf :contact ."""
    tree = tocsin.read_ontology(write(tmp_path, "c.ttl", contacts), properties=True)
    assert ways(tree) == {"contact": set(), "email": {"contact"}, "cellphone": {"contact"}}
    ambiguous = SKOS + ':gift skos:altLabel "notebook" .'
    path = write(tmp_path, "a.ttl", ambiguous)
    assert "notebook" not in tocsin.read_ontology(path, ambiguous="drop")


BAD: list[tuple[object, str]] = [
    ({"a": {"b": {"c": "a"}}}, "in a circle: "),
    ({"a": "a"}, "in a circle: a → a"),
    ({}, "the tree is empty"),
    ("", "the tree is empty"),
    ({"a": 5}, "below 'a' stands 5"),
    ({"": "b"}, "the name of a concept is text, not ''"),
    ({7: "b"}, "the name of a concept is text, not 7"),
    (7, "a tree is a mapping, indented text, a pathlib.Path or a Hierarchy, not 7"),
    ([{"a": "b"}, {"c": "b"}], "'b' is in two trees, that of 'a' and that of 'c'"),
    ("a\n  b = x\n  c = x", "'x' is a synonym of 'b' and of 'c'; a word has one meaning"),
    ("a\n  b = a", "the synonym 'a' of 'b' is a name of its own"),
    ("a\n    b\n  c", "line 3: 'c' is indented by 2, as no open line above it is"),
    ("a\n\tb\n \tc", "line 3: 'c' is indented by both tabs and blanks"),
    ("a\n\tb\n  c", "line 3: 'c' is indented by both tabs and blanks, or unlike the lines above it"),
    ("a\n  = b", "line 2: a name is missing before ="),
    ("goods.csv", "pass pathlib.Path('goods.csv')"),
]


@pytest.mark.parametrize(("source", "message"), BAD)
def test_a_bad_tree_is_refused(source: object, message: str) -> None:
    with pytest.raises(TreeError) as caught:
        tocsin.Concept(source)
    assert message in str(caught.value)


FILES: list[tuple[str, str, str]] = [
    ("t.csv", "child,parent\na,\nb,x\n", "'b' is below 'x', which is not there"),
    ("t.csv", "child,parent\na,b\nb,a\n", "in a circle: "),
    ("t.csv", "left,right\na,b\n", "the first line names columns child and parent; it says 'left, right'"),
    ("t.csv", "child,parent\n,b\n", "line 2: a child and a parent are expected"),
    ("t.json", "{", "is not json"),
    ("t.json", "[]", "holds no concept"),
    ("t.txt", "a\n    b\n  c", "line 3"),
    ("t.ttl", "this is no RDF at all", "cannot be read as RDF (turtle)"),
    ("t.rdf", "<rdf", "cannot be read as RDF (xml)"),
    ("t.ttl", "", "holds no classes and no concepts"),
    ("t.ttl", SKOS + ":product skos:broader :laptop .", "in a circle: "),
    ("t.ttl", SKOS + ':gift skos:altLabel "notebook" .', "the label 'notebook' means 'gift' and 'laptop'"),
    ("t.doc", "a", "a tree is read from .csv"),
]


@pytest.mark.parametrize(("name", "text", "message"), FILES)
def test_a_bad_file_is_refused_by_its_name(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(TreeError) as caught:
        tocsin.Concept(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    for name in ("no.csv", "no.ttl"):
        with pytest.raises(TreeError, match="cannot be read"):
            tocsin.Concept(tmp_path / name)
    (tmp_path / "b.csv").write_bytes(b"child,parent\n\xff\xfe,\n")
    with pytest.raises(TreeError, match="is not UTF-8"):
        tocsin.Concept(tmp_path / "b.csv")


def test_the_nearest_words_are_told_among_many() -> None:
    tree = Hierarchy.of({f"concept {number}": [] for number in range(5000)} | {"laptop": [], "Desktop PC": []})
    assert tree.nearest("labtop") == "did you mean laptop?" and tree.nearest("desktop pc") == "did you mean Desktop PC?"
    assert tree.nearest("laptob").startswith("did you mean laptop") and "concept 4321" in tree.nearest("koncept 4321")
    assert tree.nearest("zzz") == "there is concept 0, concept 1, concept 2, concept 3, concept 4, ..."


def test_clashing_synonyms_are_refused() -> None:
    for synonyms, message in (
        ({"desktop": "laptop"}, "is a name of its own"),
        ({"x": "labtop"}, "which is not there; did you mean laptop"),
    ):
        with pytest.raises(TreeError, match=message):
            tocsin.Concept(MAPPING, synonyms=synonyms)


@settings(deadline=None)
@given(parents())
def test_a_space_keeps_its_trees(given: dict[str, list[str]]) -> None:
    tree = Hierarchy.of(given, {"word": next(iter(given))})
    kinds = {"a": tocsin.Concept(tree, unknown_terms="text"), "b": tocsin.Repeated(tocsin.Concept(tree))}
    space = tocsin.Space(kinds)
    again = tocsin.Space.from_json(json.loads(json.dumps(space.to_json())))
    assert again == space and again["a"] == space["a"] and again.scalar(("b",)).tree is again["a"].tree  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "damage",
    [
        {"names": ["a", "a"], "parents": [[], []]},
        {"names": ["a"], "parents": [[5]]},
        {"names": ["a", "b"], "parents": [[1], [0]]},
        {"names": 5},
        {"names": ["a"], "parents": [[0]]},
    ],
)
def test_a_damaged_tree_in_json_is_refused(damage: object) -> None:
    data = tocsin.Space({"a": tocsin.Concept({"a": "b"})}).to_json()
    data["trees"] = [damage]
    with pytest.raises(TocsinError):
        tocsin.Space.from_json(data)
