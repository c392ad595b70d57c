"""The scripts around the sources: what they say when something is missing; and the pins."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHON")}
    return subprocess.run(command, capture_output=True, text=True, env=clean | environment, timeout=600)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_new_java_is_taken(tmp_path: Path, version: str) -> None:
    script(tmp_path / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-01-01' >&2")
    assert run(ROOT / "scripts" / "java", JAVA_HOME=str(tmp_path)).returncode == 0


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16"])
def test_an_old_java_is_refused_with_a_way_out(tmp_path: Path, version: str) -> None:
    script(tmp_path / "bin" / "java", f"echo 'openjdk version \"{version}\" 2019-01-01' >&2")
    done = run(ROOT / "scripts" / "java", JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "Java is too old" in done.stderr
    assert "apt install openjdk-17" in done.stderr


def test_a_missing_java_is_refused_with_a_way_out(tmp_path: Path) -> None:
    done = run(ROOT / "scripts" / "java", JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "No working Java" in done.stderr


def test_an_old_python_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """In a copy of the scripts without an environment, where every Python found says that it is too old."""
    script(tmp_path / "scripts" / "environment", (ROOT / "scripts" / "environment").read_text())
    for name in ("python", "python3", *(f"python3.{minor}" for minor in range(11, 15))):
        script(tmp_path / "bin" / name, '[ "$1" = --version ] && echo "Python 3.9.2" || exit 1')
    done = run(tmp_path / "scripts" / "environment", PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 1
    assert "Tocsin needs Python 3.11 or newer; found: Python 3.9.2." in done.stderr
    assert "set PYTHON" in done.stderr
    chosen = run(tmp_path / "scripts" / "environment", PYTHON=str(tmp_path / "bin" / "python3"))
    assert "is not a Python 3.11 or newer" in chosen.stderr


def test_continuous_integration_runs_what_people_run() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines[-1] == "exec make test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_minutes_of_rooms_are_told_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "minutes").write_text('{"tests/space": 60.0}\n{"tests/index": 90.0, "tests/space": 30.0}\n')
    done = run(ROOT / "scripts" / "minutes", tmp_path / "minutes")
    assert [line.split() for line in done.stdout.splitlines()[2:]] == [
        ["tests/space", "1.5"],
        ["tests/index", "1.5"],
        ["all", "3.0"],
    ]
    assert not (tmp_path / "minutes").exists()


SOAKED = """
import os, pathlib, pytest

@pytest.mark.slow
def test_sure():
    with open("ran", "a") as file:
        file.write("sure ")
    print("12 things, seed", os.environ["TOCSIN_SEED"])

@pytest.mark.slow
def test_unsure():
    assert os.path.exists("mended")

def test_quick():
    raise AssertionError("quick tests are no soak")
"""


def test_a_soak_goes_on_with_what_has_not_passed_and_writes_down_what_it_ran(tmp_path: Path) -> None:
    script(tmp_path / "scripts" / "soak", "")
    (tmp_path / "scripts" / "soak").write_text((ROOT / "scripts" / "soak").read_text())
    (tmp_path / "tests" / "room").mkdir(parents=True)
    (tmp_path / "tests" / "room" / "test_some.py").write_text(SOAKED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    author = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in (["git", "init", "-q"], ["git", "add", "."], ["git", "commit", "-qm", "x"]):
        assert run("git", "-C", tmp_path, *command[1:], **author).returncode == 0
    soak = [sys.executable, tmp_path / "scripts" / "soak", "room"]
    assert run(*soak, TOCSIN_SEED="7").returncode == 1
    (tmp_path / "mended").touch()
    assert run(*soak).returncode == 0
    assert "All slow tests of tests/room have passed" in run(*soak).stdout
    assert (tmp_path / "ran").read_text() == "sure "
    lines = (tmp_path / "docs" / "measured" / "soaks.md").read_text().splitlines()[-2:]
    cells = [[cell.strip() for cell in line.split("|")[3:10]] for line in lines]
    assert [row[:4] + row[5:] for row in cells] == [
        ["room", "1", "1", "0", "7", "12 things, seed 7"],
        ["room", "1", "0", "0", "7", ""],
    ]


def test_every_requirement_is_pinned_to_a_version_it_accepts() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    for need in itertools.chain(project["project"]["dependencies"], *extras.values()):
        name, _, least = re.match(r"([\w-]+)(?:\[.*\])?(>=([\d.]+))?", need).groups()  # type: ignore[union-attr]
        if name != "tocsin":
            pinned, asked = ([int(part) for part in text.split(".")] for text in (pins[name], least))
            assert pinned >= asked, need
    assert all("==" in need for need in project["build-system"]["requires"])
