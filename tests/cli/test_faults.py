"""What goes wrong around the command line is one sentence and an exit code, never a traceback."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Tocsin

from tocsin import Number, Space, Text

SPACE = json.dumps(Space({"price": Number("int64"), "seller": {"city": Text()}}).to_json())
FILES = {"subs.csv": "id,expression\na,price > 3\n", "space.json": SPACE, "one.jsonl": '{"price": 5}\n'}
WITHOUT = "import sys; sys.modules['matplotlib'] = sys.modules['duckdb'] = None; from tocsin.cli import main; main()"


def test_rows_of_json_that_cannot_be_read_are_skipped_and_told(tocsin_here: Tocsin) -> None:
    lines = ['{"price": 5}', '{"price": ', '{"price": "x"}', '{"price": 7, "seller": "oops"}', "[1]", '{"price": 9}']
    deep = '{"price": 8, "x": ' + "[" * 60_000 + "]" * 60_000 + "}"
    events = {"events.jsonl": "\n".join([*lines, deep])}
    declared = ("--space", "space.json", "--missing", "unspecified")
    done = tocsin_here("match", "events.jsonl", "subs.csv", *declared, "--skip-bad", "--json", files=FILES | events)
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == [0, 5]
    told = done.err.splitlines()
    assert done.code == 1 and len(told) == 5
    assert told[0] == "events.jsonl: event 1: line 2, column 11: expecting value"
    assert told[1] == "events.jsonl: event 2: line 3: 'price' is 'x', where int64 is expected"
    assert told[2] == "events.jsonl: event 3: line 4: 'seller' is 'oops', where struct<city: string> is expected"
    assert "event 4: line 5, column 1: it is an array" in told[3] and "event 6: line 7" in told[4]
    mixed = tocsin_here("match", "events.jsonl", "subs.csv", "--skip-bad", "--json")
    assert [json.loads(line)["event"] for line in mixed.out.splitlines()] == [0, 3, 5]
    array = {"events.json": '[{"price": 5}, {"price": "x"},\n {"price": 9}]'}
    done = tocsin_here("match", "events.json", "subs.csv", "--skip-bad", "--json", files=array)
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == [0, 2] and "event 1: line 1" in done.err
    assert tocsin_here("match", "events.jsonl", "subs.csv").code == 2


def test_json_that_nests_too_deeply_is_refused(tocsin_here: Tocsin) -> None:
    for depth in (100, 500, 60_000):
        files = {"deep.jsonl": '{"price": 5}\n{"price": 5, "x": ' + '{"a":' * depth + "1" + "}" * depth + "}\n"}
        done = tocsin_here("match", "deep.jsonl", "subs.csv", "--space", "space.json", files=FILES | files)
        assert done.code == 2
        assert done.err == f"tocsin: deep.jsonl: line 2: it is nested {depth + 1:,} deep; the limit is 100\n"
        assert tocsin_here("space", "deep.jsonl").code == 2
        assert tocsin_here("explain", "--event", files["deep.jsonl"].split("\n")[1], "--where", "price > 3").code == 2
    files = {"deep.jsonl": '{"price": 5, "t": "[[[[", "x": ' + "[" * 99 + "1" + "]" * 99 + "}\n"}
    assert tocsin_here("match", "deep.jsonl", "subs.csv", "--space", "space.json", files=files).code == 0


@pytest.mark.parametrize(
    "arguments", [("match", "one.jsonl", "subs.csv"), ("check", "subs.csv", "--space", "space.json")]
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_output_to_a_full_device_is_told(tmp_path: Path, arguments: tuple[str, ...], form: tuple[str, ...]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    if arguments[0] == "check" and form:
        (tmp_path / "subs.csv").write_text("id,expression\na,prize > 3\n")  # a finding, so that something is printed
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments, *form], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False
        )
    assert done.returncode == 2
    assert done.stderr.decode() == "tocsin: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("redirection", "code", "told"),
    [
        (">&-", 2, "tocsin: standard output cannot be written: Bad file descriptor\n"),
        ("--json >&-", 2, "tocsin: standard output cannot be written: Bad file descriptor\n"),
        ("--output out.csv <&- >&-", 0, ""),
        ("--output out.csv 2>&-", 0, ""),
    ],
)
def test_closed_standard_streams_are_no_traceback(tmp_path: Path, redirection: str, code: int, told: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command = f"{shlex.join(PROGRAM)} match one.jsonl subs.csv {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", told)
    assert not code or not (tmp_path / "out.csv").exists()


def test_a_closed_standard_input_is_told(tmp_path: Path) -> None:
    (tmp_path / "subs.csv").write_text(FILES["subs.csv"])
    command = f"{shlex.join(PROGRAM)} match - subs.csv <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (2, "tocsin: standard input cannot be read: Bad file descriptor\n")


def test_the_exit_code_stands_where_standard_error_is_full(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, "space", "none.csv"], stderr=full, cwd=tmp_path, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "package"),
    [
        (("covering", "subs.csv", "--space", "space.json", "--picture", "x.png"), "matplotlib"),
        (("demo",), "matplotlib"),
        (("bench", "engines", "--quick"), "duckdb"),
    ],
)
def test_a_package_that_is_not_there_is_named(tmp_path: Path, arguments: tuple[str, ...], package: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-c", WITHOUT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (2, f"tocsin: this needs {package}: pip install 'tocsin[bench]'\n")
    assert not (tmp_path / "out").exists()


def test_an_interrupt_while_modules_are_imported_is_silent(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import signal; signal.raise_signal(signal.SIGINT)\n")
    program = tmp_path / "tocsin"
    program.write_text("from tocsin.cli import main\nmain()\n")
    path = str(Path(__file__).parents[2] / "src")
    begin = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {path!r}]; sys.argv = [{str(program)!r}]; "
    command = [sys.executable, "-c", begin + "from tocsin.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_bad_rows_make_covering_end_with_1(tocsin_here: Tocsin) -> None:
    bad = {"bad.csv": "id,expression\na,price > 3\nb,prize > 3\n"}
    done = tocsin_here("covering", "bad.csv", "--space", "space.json", files=FILES | bad)
    assert done.code == 1 and "1 subscriptions" in done.out and "there is no field 'prize'" in done.err
    assert tocsin_here("covering", "subs.csv", "--space", "space.json").code == 0


def test_missing_columns_need_a_declared_space(tocsin_here: Tocsin) -> None:
    done = tocsin_here("match", "one.jsonl", "subs.csv", "--missing", "unspecified", files=FILES)
    assert done.code == 2 and "--missing unspecified needs --space FILE" in done.err


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_json_lines_may_be_none(tocsin_here: Tocsin, text: str) -> None:
    files = FILES | {"none.jsonl": text}
    done = tocsin_here("match", "none.jsonl", "subs.csv", "--space", "space.json", "--json", files=files)
    assert done == (0, "", "")


def test_check_tells_columns_that_the_space_does_not_have(tocsin_here: Tocsin) -> None:
    files = FILES | {"events.jsonl": '{"Price": 5, "seller.city": "x", "seller": {"town": "y"}}\n'}
    done = tocsin_here("check", "subs.csv", "--space", "space.json", "--events", "events.jsonl", files=files)
    assert done.code == 1
    assert done.out.splitlines()[:3] == [
        "events.jsonl: the space has no field Price; did you mean price?",
        "events.jsonl: the space has no field 'seller.city' by that one name; "
        "write it nested: {'seller': {'city': ...}}",
        "events.jsonl: the space has no field seller.town; did you mean seller.city?",
    ]
