"""The command line as its users meet it: a process in a folder, with files, arguments and standard streams."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tocsin.cli import main

PROGRAM = [sys.executable, "-c", "from tocsin.cli import main; main()"]


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


Tocsin = Callable[..., Done]


@pytest.fixture
def tocsin(tmp_path: Path) -> Tocsin:
    """Run `tocsin` with these arguments in a folder of the test's own, which holds the files given by name."""

    def run(*arguments: str, files: dict[str, str] | None = None, stdin: str | bytes = b"") -> Done:
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run([*PROGRAM, *arguments], input=given, capture_output=True, cwd=tmp_path, timeout=1800)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def tocsin_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tocsin:
    """Run `tocsin` as the fixture above does, but in this process: for tests with many cases."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, files: dict[str, str] | None = None, stdin: str | bytes = b"") -> Done:
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        given = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        monkeypatch.setattr(sys, "argv", ["tocsin", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capfd.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return run
