"""`tocsin match --operators module:name`: one's own operators, and what is wrong with a name that is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from tests.cli.conftest import Tocsin

MODULE = """\
import tocsin

@tocsin.operator
def longer(text, least):
    return len(text) > least

@tocsin.operator(reads=["item"], outputs={"n": int})
def words(item):
    return len(item.split())

both = [longer, words]
number = 5
"""
SEARCHES = """\
id,expression
long,"longer(item, 7)"
several,words(:n) AND :n > 1
short,"NOT longer(item, 7)"
"""
FILES = {
    "own_operators.py": MODULE,
    "broken_operators.py": "import nothing_of_this_name\n",
    "raising_operators.py": "raise SystemExit('not today')\n",
    "offers.jsonl": '{"item": "bicycle"}\n{"item": "desk lamp"}\n',
    "searches.csv": SEARCHES,
}


@pytest.mark.parametrize(
    "given", [["own_operators:longer", "own_operators:words"], ["own_operators:both"]], ids=["one by one", "a list"]
)
def test_operators_of_a_module_in_the_folder_are_called(tocsin: Tocsin, given: list[str]) -> None:
    options = [part for name in given for part in ("--operators", name)]
    done = tocsin("match", "offers.jsonl", "searches.csv", "--json", *options, files=FILES)
    assert (done.code, done.err) == (0, "")
    found = [tuple(json.loads(line).values()) for line in done.out.splitlines()]
    assert found == [(0, "short"), (1, "long"), (1, "several")]


@pytest.fixture
def _own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a command that runs in this process has imported."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.endswith("_operators"):
            del sys.modules[name]


@pytest.mark.usefixtures("_own_modules")
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("own_operators", "'own_operators' names no operator; write --operators module:name"),
        (":longer", "names no operator"),
        ("own_operators:", "names no operator"),
        ("no_such_module:longer", "there is no module no_such_module in "),
        ("broken_operators:longer", "the module broken_operators needs nothing_of_this_name, which is not installed"),
        ("raising_operators:longer", "importing raising_operators fails: SystemExit: not today"),
        ("own_operators:shorter", "the module own_operators has no shorter"),
        ("own_operators:number", "that is no operator but a int; decorate a function with @tocsin.operator"),
        ("own_operators:both.longer", "the module own_operators has no both.longer"),
    ],
)
def test_what_is_no_operator_is_told_in_a_line(tocsin_here: Tocsin, given: str, reason: str) -> None:
    done = tocsin_here("match", "offers.jsonl", "searches.csv", "--operators", given, files=FILES)
    assert (done.code, done.out) == (2, "")
    assert reason in " ".join(done.err.split())
    assert "Traceback" not in done.err
