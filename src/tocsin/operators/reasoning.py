"""Reasoning over knowledge in RDF: an operator is a SPARQL query in which fields of the event stand as variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import rdflib
from rdflib.plugins.sparql import prepareQuery

from tocsin.errors import OperatorError
from tocsin.operators.operator import Operator, operator


def sparql_operator(
    name: str,
    graph: rdflib.Graph,
    query: str,
    *,
    reads: Sequence[str] = (),
    parameters: Sequence[str] = (),
    namespace: str = "",
    **settings: Any,
) -> Operator:
    """Return an operator that asks a graph.

    Each field read and each parameter is a variable of the query, bound to a literal or, where a ``namespace`` is
    given, to the name in it. An ``ASK`` query is a predicate; the variables of a ``SELECT`` are the operator's outputs,
    and each of its rows is a binding. Property paths such as ``rdfs:subClassOf*`` do the inference.

    >>> graph = rdflib.Graph().parse(format="turtle", data='''
    ...     @prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    ...     :tug rdfs:subClassOf :workboat . :workboat rdfs:subClassOf :vessel . :car rdfs:subClassOf :vehicle .''')
    >>> ask = "ASK { ?craft <http://www.w3.org/2000/01/rdf-schema#subClassOf>* ?kind }"
    >>> is_kind = sparql_operator("is_kind", graph, ask, reads=["craft"], parameters=["kind"], namespace="http://e/")
    >>> is_kind("tug", "vessel"), is_kind("car", "vessel")
    (True, False)
    """
    try:
        prepared = prepareQuery(query)
    except Exception as error:  # rdflib raises what its parser raises
        raise OperatorError(f"{name}: this is no SPARQL query: {error}") from None
    algebra = prepared.algebra
    outputs = [str(each) for each in algebra.PV] if algebra.name == "SelectQuery" else []
    if algebra.name not in ("SelectQuery", "AskQuery"):
        raise OperatorError(f"{name}: the query is a SELECT or an ASK")
    names = [*reads, *parameters]

    def ask(*values: Any) -> Any:
        bound: Mapping[str, Any] = {
            key.replace(".", "_"): rdflib.URIRef(f"{namespace}{value}") if namespace else rdflib.Literal(value)
            for key, value in zip(names, values, strict=True)
        }
        found = graph.query(prepared, initBindings=dict(bound))
        if not outputs:
            return bool(found.askAnswer)
        rows = [tuple(_value(each, namespace) for each in row) for row in found]  # type: ignore[union-attr]
        return rows if len(outputs) > 1 else [row[0] for row in rows]

    return operator(ask, name=name, reads=list(reads), parameters=list(parameters), outputs=outputs, **settings)


def _value(term: Any, namespace: str) -> Any:
    """Return what a term stands for in a constraint: a literal's value, a name without its namespace."""
    if isinstance(term, rdflib.Literal):
        return term.toPython()
    return None if term is None else str(term).removeprefix(namespace)
