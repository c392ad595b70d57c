"""Services and programs that are slow, broken or hostile: their calls fail, and nothing else."""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tocsin
from tocsin.operators.channels import TooLongError
from tocsin.operators.commands import program_operator
from tocsin.operators.remote import MOST_BYTES, http_operator

LONG = 60.0
"""A limit that nothing exceeds that ends at all."""

SPACE = tocsin.Space({"x": tocsin.Text()})


class _Hostile(BaseHTTPRequestHandler):
    released = threading.Event()
    gone: ClassVar[list[str]] = []
    headers_seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["x"]
        try:
            getattr(self, asked)()
        except OSError:
            self.gone.append(asked)

    def do_GET(self) -> None:
        self.headers_seen.append(str(self.headers.get("Authorization")))
        self.answer(b"true")

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def good(self) -> None:
        self.answer(b"true")

    def mute(self) -> None:
        self.released.wait(LONG)

    def drips(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        self.trickle(b"X-Nothing: 1\r\n")

    def drips_its_body(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        self.trickle(b" ")

    def trickle(self, piece: bytes) -> None:
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            for byte in piece:
                self.wfile.write(bytes([byte]))
                time.sleep(0.02)

    def huge(self) -> None:
        self.answer(b"[" + b"1," * MOST_BYTES + b"1]")

    def endless(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            self.wfile.write(b"1" * 65_536)

    def moved(self) -> None:
        self.answer(b"true", 302, Location="/elsewhere")

    def created(self) -> None:
        self.answer(b"true", 201)

    def refused(self) -> None:
        self.answer(b"true", 403)

    def no_json(self) -> None:
        self.answer(b"<html>true</html>")

    def nothing(self) -> None:
        self.answer(b"")

    def deep(self) -> None:
        self.answer(b"[" * 200_000)

    def cut(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n12")

    def no_http(self) -> None:
        self.wfile.write(b"\x00\xff" * 100)

    def object(self) -> None:
        self.answer(b'{"answer": true}')

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    _Hostile.released.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("asked", "failure"),
    [
        ("mute", "too long"),
        ("drips", "too long"),
        ("drips_its_body", "too long"),
        ("huge", "raised: ValueError: the answer is longer than 1,000,000 bytes"),
        ("endless", "raised: ValueError: the answer is longer than 1,000,000 bytes"),
        ("moved", "raised: HTTPError: HTTP Error 302"),
        ("created", "raised: ValueError: status 201, not 200"),
        ("refused", "raised: HTTPError: HTTP Error 403"),
        ("no_json", "raised: JSONDecodeError"),
        ("nothing", "raised: JSONDecodeError"),
        ("deep", "raised: RecursionError"),
        ("cut", "raised: ValueError: the answer breaks off, 1 bytes before its end"),
        ("no_http", "raised: BadStatusLine"),
        ("object", "wrong type: {'answer': True} is no truth"),
    ],
)
def test_a_service_that_answers_badly_fails_its_call_alone(service: str, asked: str, failure: str) -> None:
    limit = 1.0 if failure == "too long" else LONG
    asks = http_operator("asks", service, reads=["x"], limit=limit, headers={"Authorization": "secret"})
    matcher = tocsin.Matcher(SPACE, operators=[asks])
    matcher.subscribe("yes", "asks()")
    matcher.subscribe("no", "NOT asks()")
    matcher.subscribe("other", "x <> ''")
    assert matcher.match({"x": asked}) == ["other"]
    assert matcher.stats()["operators"]["used"]["asks"]["last_failure"].startswith(failure)
    assert not _Hostile.headers_seen, "a redirection is not followed"


def test_a_connection_is_closed_at_the_limit(service: str) -> None:
    asks = http_operator("asks", service, reads=["x"], limit=0.5)
    _Hostile.gone.clear()
    for asked in ("drips", "drips_its_body"):
        with pytest.raises(TooLongError):
            asks(asked)
        wait_for(lambda asked=asked: asked in _Hostile.gone)  # type: ignore[misc]


def test_a_service_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    matcher = tocsin.Matcher(
        SPACE, operators=[http_operator("asks", f"http://127.0.0.1:{port}/", reads=["x"], limit=LONG)]
    )
    matcher.subscribe("yes", "asks()")
    assert matcher.match({"x": "good"}) == []
    assert "refused" in matcher.stats()["operators"]["used"]["asks"]["last_failure"]


PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    x = json.loads(line)["x"]
    if x == "hangs":
        time.sleep(600)
    if x == "hangs with a child":
        child = os.fork()
        open(PATH, "w").write(str(child or os.getpid())) if child else time.sleep(600)
        time.sleep(600)
    if x == "dies":
        sys.exit(7)
    if x == "floods":
        while True:
            print("x" * 1000)
    if x == "floods one line":
        while True:
            sys.stdout.write("1" * 100000)
    if x == "two":
        sys.stdout.write("false\\nfalse\\n")
    elif x == "later":
        print("true", flush=True)
        while not os.path.exists(PATH):
            time.sleep(0.01)
        print("false", flush=True)
        os.remove(PATH)
        continue
    elif x == "no json":
        print("maybe")
    else:
        print(json.dumps(len(x) > 3))
    sys.stdout.flush()
"""


def program(path: str = "", limit: float = LONG, source: str = PROGRAM) -> Any:
    return program_operator(
        "long_name", [sys.executable, "-c", source.replace("PATH", repr(path))], reads=["x"], limit=limit
    )


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("dies", "the program has ended with status 7"),
        ("floods", "more than a line|longer than|Expecting value"),
        ("floods one line", "longer than 1,000,000 bytes"),
        ("two", "the program answers with more than a line"),
        ("no json", "Expecting value"),
    ],
)
def test_a_program_that_answers_badly_is_started_anew(x: str, message: str) -> None:
    asks = program()
    assert (asks("long"), asks("no")) == (True, False)
    for _ in range(2):
        with pytest.raises((ValueError, OSError), match=message):
            asks(x)
        assert (asks("long"), asks("no")) == (True, False)


def test_a_line_too_many_is_never_the_answer_to_another_call(tmp_path: Path) -> None:
    path = tmp_path / "go on"
    asks = program(str(path))
    assert asks("later") is True
    path.touch()
    wait_for(lambda: not path.exists())
    with pytest.raises(ValueError, match="more than a line"):
        asks("long")
    assert asks("long") is True


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_program_that_hangs_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    asks = program(str(tmp_path / "child"), limit=10.0)
    assert asks("long")
    with pytest.raises(TooLongError):
        asks("hangs with a child")
    wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "")
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not _is_alive(child))
    assert asks("long")


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_program_that_reads_nothing_keeps_nobody_waiting() -> None:
    asks = program(source="import time; time.sleep(600)", limit=0.5)
    for _ in range(2):
        with pytest.raises(TooLongError, match="the program is starting"):
            asks("x" * 5_000_000)


def test_a_program_that_starts_slowly_is_not_killed_for_it(tmp_path: Path) -> None:
    gate, pids = tmp_path / "gate", tmp_path / "pids"
    gate.touch()
    source = (
        f"import os, time\nopen({str(pids)!r}, 'a').write('x')\nwhile os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    )
    asks = program(limit=2.0, source=source + PROGRAM)
    for _ in range(2):
        with pytest.raises(TooLongError, match="the program is starting"):
            asks("long")
    assert pids.read_text() == "x", "it was started once"
    gate.unlink()
    until = time.monotonic() + LONG
    while True:
        try:
            assert asks("no") is False, "not what was asked before"
            break
        except TooLongError:
            assert time.monotonic() < until


def test_a_program_that_answers_once_and_ends_is_asked_again() -> None:
    asks = program(source="import sys; sys.stdin.readline(); print('true', flush=True)")
    assert [asks("a") for _ in range(4)] == [True] * 4


def test_calls_of_several_threads_each_have_their_answer() -> None:
    asks = program()
    found: list[bool] = []
    texts = ["no", "long"] * 8

    def ask(text: str) -> None:
        found.append(asks(text) is (text == "long"))

    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * len(texts)


def test_a_program_ends_with_its_operator() -> None:
    asks = program(source="import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
    pid = asks("a")
    assert _is_alive(pid)
    del asks
    gc.collect()
    wait_for(lambda: not _is_alive(pid))
    assert os.getpid() != pid


def test_a_program_that_is_not_there_is_told() -> None:
    matcher = tocsin.Matcher(SPACE, operators=[program_operator("asks", ["/nowhere/at/all"], reads=["x"])])
    matcher.subscribe("yes", "asks()")
    assert matcher.match({"x": "a"}) == []
    assert "/nowhere/at/all" in matcher.stats()["operators"]["used"]["asks"]["last_failure"]
