"""Every example in the documentation runs and prints what it says.

- A ```python block with `>>>` prompts is a doctest; one without is executed. The blocks of a page share their
  names, in order.
- A ```console block is a shell session: each `$ command` runs in a temporary folder of its page, and what it
  prints (both streams) must be what follows, where `...` stands for any text. Lines that start with `> `
  continue a command.
- The docstrings of `src/tocsin` are doctests.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tocsin.operators.operator import Operator, operator

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted((ROOT / "src" / "tocsin").rglob("*.py"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_BLOCK = re.compile(
    r"^(?P<fence>```+)(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)\s*$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block of a page: the line of its first line, its language, its text."""

    line: int
    language: str
    text: str


class Command(NamedTuple):
    """A command of a shell session, and what it is said to print."""

    text: str
    expected: str


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in _BLOCK.finditer(page):
        yield Block(page.count("\n", 0, found.start("body")) + 1, found["language"], found["body"])


def commands_of(session: str) -> list[Command]:
    """Return the commands of a shell session with their outputs."""
    parts = re.split(r"^\$ ", session, flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block starts with `$ command`"
    commands = []
    for part in parts[1:]:
        text, *rest = part.splitlines()
        while rest and rest[0].startswith("> "):
            text += "\n" + rest.pop(0)[2:]
        commands.append(Command(text, "\n".join(rest)))
    return commands


def printed_as_expected(printed: str, expected: str) -> bool:
    """Return whether the output is the expected one, line ends and blank line ends aside, `...` being any
    text."""
    pieces = [re.escape(piece) for piece in _trimmed(expected).split("...")]
    return re.fullmatch(".*".join(pieces), _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()).strip("\n")


def run_python(name: str, block: Block, names: dict[str, object]) -> None:
    """Run one Python block in the names of its page."""
    if ">>>" not in block.text:
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), names)  # tracebacks show the page's lines
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, name, name, block.line - 1)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not report, "".join(report)


def run_console(name: str, block: Block, folder: Path) -> None:
    """Run one shell session in a folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands_of(block.text):
        done = subprocess.run(
            ["sh", "-c", command.text],
            cwd=folder,
            env=os.environ | {"PATH": path, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
        )
        assert printed_as_expected(done.stdout, command.expected), (
            f"{name}:{block.line}: $ {command.text}\nprinted\n{done.stdout}\ninstead of\n{command.expected}"
        )


def _case(page: Path) -> object:
    """Return a page as a case; the pages of Spark share the session of its tests."""
    marks = [pytest.mark.xdist_group("spark")] if page.name in ("spark.md", "transitions.md") else []
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", [_case(page) for page in PAGES])
def test_examples_of_the_page_run_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text()):
        if block.language == "python":
            run_python(str(page), block, names)
        elif block.language == "console":
            run_console(str(page), block, tmp_path)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_docstring_examples_run_as_printed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0
    assert failures_in_operators(module) == 0


def failures_in_operators(module: ModuleType) -> int:
    """Run the examples of the functions that `@tocsin.operator` has made operators of; return how many fail.

    What it returns is neither a function nor a class, so that `doctest` does not look at it by itself.
    """
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for name, value in vars(module).items():
        if isinstance(value, Operator) and value.function.__module__ == module.__name__:
            found = doctest.DocTestFinder().find(value.function, name, module, vars(module) | {})
            assert value.form != "bulk" or any(test.examples for test in found), f"{name} shows no example"
            for test in found:
                runner.run(test)
    return runner.summarize(verbose=False).failed


def test_examples_of_operators_are_run() -> None:
    page = ModuleType("page")

    def wrong(x: float) -> bool:
        """Return a truth.

        >>> 1 + 1
        3
        """
        return x > 0

    wrong.__module__ = "page"
    page.wrong = operator(wrong)  # type: ignore[attr-defined]
    assert failures_in_operators(page) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!\w+:|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_architecture_names_every_room_there_is() -> None:
    rooms = {path.parent.name for path in (ROOT / "src" / "tocsin").glob("*/__init__.py")}
    named = re.findall(r"^\| `(\w+)/?` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert rooms <= set(named)


def test_blocks_are_found_with_their_lines() -> None:
    page = "a\n```python\nx = 1\n```\nb\n````md\n```\n````\n"
    assert list(blocks_of(page)) == [Block(3, "python", "x = 1\n"), Block(7, "md", "```\n")]


def test_sessions_are_split_into_commands() -> None:
    assert commands_of("$ cat <<E\n> a\n> E\na\n$ true\n") == [
        Command("cat <<E\na\nE", "a"),
        Command("true", ""),
    ]


@pytest.mark.parametrize(
    ("printed", "expected", "agrees"),
    [
        ("a\nb\n", "a\nb", True),
        ("a  \nb\n\n", "a\nb", True),
        ("a\nb\n", "a", False),
        ("took 5 s\n", "took ... s", True),
        ("a\nb\nc\n", "a\n...", True),
        ("a.b", "a?b", False),
        ("", "...", True),
        ("x", "", False),
    ],
)
def test_output_is_compared_with_a_wildcard(printed: str, expected: str, agrees: bool) -> None:
    assert printed_as_expected(printed, expected) is agrees


def test_a_wrong_example_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_python("page", Block(1, "python", ">>> 1 + 1\n3\n"), {})
    with pytest.raises(ZeroDivisionError):
        run_python("page", Block(1, "python", "1 / 0\n"), {})
    with pytest.raises(AssertionError, match="instead of"):
        run_console("page", Block(1, "console", "$ echo one\ntwo\n"), tmp_path)


def test_blocks_of_a_page_share_their_names() -> None:
    names: dict[str, object] = {}
    run_python("page", Block(1, "python", "x = 20\n"), names)
    run_python("page", Block(1, "python", ">>> y = x + 1\n>>> y\n21\n"), names)
    run_python("page", Block(1, "python", "assert y == 21\n"), names)
