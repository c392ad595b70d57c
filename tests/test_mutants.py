"""`scripts/mutants`: what it changes, and that every change is one line that still compiles."""

from __future__ import annotations

import ast
import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOADER = SourceFileLoader("mutants", str(ROOT / "scripts" / "mutants"))
SPEC = importlib.util.spec_from_loader("mutants", LOADER)
assert SPEC is not None
mutants = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(mutants)

SOURCE = '''"""Docstring with 1 < 2."""
def f(é, b=3):
    if é < b and not b:
        g("é", é + 1)
        raise ValueError("x")
    return b
'''


def test_every_kind_of_change_is_made_in_its_place() -> None:
    sites = mutants.Sites("f.py", SOURCE)
    sites.visit(ast.parse(SOURCE))
    changed = {each.lines(SOURCE) for each in sites.found}
    assert changed == {
        ("def f(é, b=3):", "def f(é, b=(3 + 1)):"),
        ("if é < b and not b:", "if é <= b and not b:"),
        ("if é < b and not b:", "if é < b or not b:"),
        ("if é < b and not b:", "if é < b and b:"),
        ("if é < b and not b:", "if True:"),
        ("if é < b and not b:", "if False:"),
        ('g("é", é + 1)', "pass"),
        ('g("é", é + 1)', 'g("é", é - 1)'),
        ('g("é", é + 1)', 'g("é", é + (1 + 1))'),
        ('raise ValueError("x")', "pass"),
        ("return b", "return None"),
    }


def test_an_argued_mutant_names_a_line_and_a_reason() -> None:
    for line in (ROOT / "tests" / "mutants" / "equivalent.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            change, reason = line.split("  # ")
            file, _, lines = change.partition(": ")
            assert " => " in lines and reason.strip(), line
            assert (ROOT / file).exists(), line
