"""The operators that ship, against the same asked one by one."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import rdflib
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin.bench.polygons import points, polygon_texts
from tocsin.operators.commands import program_operator
from tocsin.operators.reasoning import sparql_operator
from tocsin.operators.remote import http_operator

POINT = tocsin.Space({"x": tocsin.Number(), "y": tocsin.Number()})


def pairs_of(matcher: tocsin.Matcher, events: pa.Table) -> set[tuple[int, Any]]:
    found = matcher.match_batch(events)
    return set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def test_many_polygons_give_what_each_of_them_gives() -> None:
    texts = polygon_texts(400, 3)
    shapes = np.array([shapely.from_wkt(text) for text in texts], object)
    events = points(500, 3)
    matcher = tocsin.Matcher(tocsin.Space({"lon": tocsin.Number(), "lat": tocsin.Number()}))
    matcher.subscribe_many(pa.table({"id": range(400), "expression": [f"within(lon, lat, '{t}')" for t in texts]}))
    matcher.subscribe(-1, f"NOT within(lon, lat, '{texts[0]}')")
    inside = shapely.contains_xy(
        shapes[None, :], np.asarray(events["lon"])[:, None], np.asarray(events["lat"])[:, None]
    )
    wanted: set[tuple[int, Any]] = set(zip(*(side.tolist() for side in np.nonzero(inside)), strict=True))
    wanted |= {(row, -1) for row in np.flatnonzero(~inside[:, 0]).tolist()}
    assert pairs_of(matcher, events) == wanted


def _pairs(matcher: tocsin.Matcher, events: pa.Table) -> set[tuple[int, Any]]:
    rows = events.to_pylist()
    return {(row, id) for row, event in enumerate(rows) for id in matcher.match(event)}


@settings(max_examples=40, deadline=None)
@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 2e7))
def test_bounds_of_nearby_lose_no_point(lon: float, lat: float, at: float, above: float, metres: float) -> None:
    matcher = tocsin.Matcher(POINT)
    matcher.subscribe("near", f"nearby(x, y, 'POINT ({at} {above})', {metres!r})")
    one, other = np.radians([lon, lat]), np.radians([at, above])
    half = np.sin((other[1] - one[1]) / 2) ** 2
    half += np.cos(one[1]) * np.cos(other[1]) * np.sin((other[0] - one[0]) / 2) ** 2
    far = 2 * 6_371_008.8 * np.arcsin(np.sqrt(min(half, 1.0)))
    if abs(far - metres) > 1e-3:
        assert matcher.match({"x": lon, "y": lat}) == (["near"] if far <= metres else [])


@pytest.mark.parametrize("areas", [3, 200])
def test_intersects_answers_the_same_by_tree_and_one_by_one(areas: int) -> None:
    rng = np.random.default_rng(areas)
    boxes = [shapely.box(x, y, x + 3, y + 2).wkt for x, y in rng.random((areas, 2)) * 20]
    lines = [shapely.LineString(rng.random((2, 2)) * 20).wkt for _ in range(20)]
    matcher = tocsin.Matcher(tocsin.Space({"path": tocsin.Text()}))
    matcher.subscribe_many(
        pa.table({"id": range(areas), "expression": [f"intersects(path, '{box}')" for box in boxes]})
    )
    wanted = {
        (row, number)
        for row, line in enumerate(lines)
        for number, box in enumerate(boxes)
        if shapely.intersects(shapely.from_wkt(line), shapely.from_wkt(box))
    }
    assert pairs_of(matcher, pa.table({"path": [*lines, "no shape", None]})) == wanted


def test_distance_is_bound_and_compared() -> None:
    matcher = tocsin.Matcher(POINT)
    for number in range(20):
        matcher.subscribe(number, f"distance(x, y, 'POINT (0 0)', :d) AND :d < {number}")
    matcher.subscribe(-1, "distance(x, y, 'POINT (0 0)', :a) AND distance(x, y, 'POINT (10 0)', :b) AND :a = :b")
    assert sorted(id for id in matcher.match({"x": 3, "y": 4}) if id != -1) == list(range(6, 20))
    assert -1 in matcher.match({"x": 5, "y": 7})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("abc -.", max_size=12), min_size=1, max_size=4),
    st.lists(st.text("abc ", min_size=1, max_size=5).filter(str.strip), min_size=1, max_size=6, unique=True),
)
def test_mentions_finds_whole_words_and_phrases(texts: list[str], keywords: list[str]) -> None:
    matcher = tocsin.Matcher(tocsin.Space({"body": tocsin.Text()}))
    for number, keyword in enumerate(keywords):
        matcher.subscribe(number, f"mentions(body, '{keyword}')")
    wanted = {
        (row, number)
        for row, text in enumerate(texts)
        for number, keyword in enumerate(keywords)
        if re.search(r"\b" + r"\W+".join(map(re.escape, keyword.split())) + r"\b", text)
    }
    assert pairs_of(matcher, pa.table({"body": pa.array(texts, pa.string())})) == wanted


def test_embeddings_are_compared_alike_in_large_and_small_batches() -> None:
    rng = np.random.default_rng(4)
    vectors, constants = rng.normal(size=(40, 6)), rng.normal(size=(30, 6))
    vectors[0] = constants[0] * 3  # a cosine of exactly 1, up to the last bits
    matcher = tocsin.Matcher(tocsin.Space({"meaning": tocsin.Repeated(tocsin.Number())}))
    for number, constant in enumerate(constants):
        least = 1.0 if number == 0 else 0.4
        matcher.subscribe(number, f"resembles(meaning, '{json.dumps(constant.tolist())}', {least})")
    table = pa.table({"meaning": [*vectors.tolist(), [1.0], None]})
    assert pairs_of(matcher, table) == _pairs(matcher, table)


class _Service(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        given_text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        if given_text == "broken":
            self.send_error(500)
            return
        body = json.dumps([[word, len(word)] for word in given_text.split()]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture
def service() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_a_service_is_asked_over_http_and_its_failure_is_counted(service: str) -> None:
    words = http_operator("words", service, reads=["text"], outputs={"word": str, "size": int}, limit=20)
    matcher = tocsin.Matcher(tocsin.Space({"text": tocsin.Text()}), operators=[words])
    matcher.subscribe("long", "words(:w, :s) AND :s > 4")
    assert matcher.match({"text": "a short sentence"}) == ["long"]
    assert matcher.match({"text": "a b"}) == []
    assert matcher.match({"text": "broken"}) == []
    assert matcher.stats()["operators"]["used"]["words"]["failures"] == {"raised": 1}


def test_a_program_that_hangs_is_killed_and_started_anew() -> None:
    source = (
        "import sys, json, time\n"
        "for line in sys.stdin:\n"
        "    x = json.loads(line)['x']\n"
        "    time.sleep(60 if x < 0 else 0)\n"
        "    print(json.dumps(x > 1), flush=True)\n"
    )
    big = program_operator("big", [sys.executable, "-c", source], reads=["x"], limit=10.0)
    matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number()}), operators=[big])
    matcher.subscribe("a", "big()")
    assert [matcher.match({"x": x}) for x in (2, -1, 3, 0)] == [["a"], [], ["a"], []]
    assert matcher.stats()["operators"]["used"]["big"]["failures"] == {"too long": 1}


def test_a_program_that_reads_nothing_is_given_up_at_its_limit_however_long_the_text() -> None:
    source = "import threading; threading.Event().wait(60)"
    deaf = program_operator("deaf", [sys.executable, "-c", source], reads=["text"], limit=0.3)
    matcher = tocsin.Matcher(tocsin.Space({"text": tocsin.Text()}), operators=[deaf])
    matcher.subscribe("a", "deaf()")
    assert matcher.match({"text": "x" * 2**20}) == []
    assert matcher.stats()["operators"]["used"]["deaf"]["failures"] == {"too long": 1}


def test_a_graph_infers_what_the_event_does_not_say() -> None:
    graph = rdflib.Graph().parse(
        format="turtle",
        data="""@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :tug rdfs:subClassOf :workboat . :workboat rdfs:subClassOf :vessel . :tug :crew 4 . :ferry :crew 20 .""",
    )
    above = "SELECT ?kind WHERE { ?craft <http://www.w3.org/2000/01/rdf-schema#subClassOf>+ ?kind }"
    crew = "SELECT ?n WHERE { ?craft <http://e/crew> ?n }"
    known = [
        sparql_operator("kinds", graph, above, reads=["craft"], namespace="http://e/"),
        sparql_operator("crew", graph, crew, reads=["craft"], namespace="http://e/"),
    ]
    matcher = tocsin.Matcher(tocsin.Space({"craft": tocsin.Text()}), operators=known)
    matcher.subscribe("vessels", "kinds('vessel')")
    matcher.subscribe("large", "crew(:n) AND :n >= 10")
    assert matcher.match({"craft": "tug"}) == ["vessels"]
    assert matcher.match({"craft": "ferry"}) == ["large"]
