"""The frame of the command line: exit codes, streams, messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.cli.conftest import PROGRAM, Done, Tocsin

from tocsin.kernels.compile import runs


def test_version_is_printed(tocsin: Tocsin) -> None:
    assert tocsin("--version") == Done(0, f"tocsin {version('tocsin')}\n", "")


def test_the_version_as_json_says_what_kernels_run_as(tocsin: Tocsin) -> None:
    said = json.loads(tocsin("--version", "--json").out)
    assert said["version"] == version("tocsin")
    assert said["kernels"] == runs()
    assert runs()["code"] in ("native", "numba", "python")
    assert runs()["why"]


def test_an_option_without_a_command_is_a_usage_error(tocsin: Tocsin) -> None:
    done = tocsin("--json")
    assert (done.code, done.out) == (2, "")
    assert "Missing command" in done.err


def test_without_arguments_help_is_shown(tocsin: Tocsin) -> None:
    done = tocsin()
    assert "Usage: tocsin [OPTIONS] COMMAND" in done.out + done.err


def test_a_wrong_command_is_a_usage_error_that_names_the_right_one(tocsin: Tocsin) -> None:
    done = tocsin("mach")
    assert (done.code, done.out) == (2, "")
    assert "No such command 'mach'. Did you mean 'match'?" in done.err


def test_a_missing_extra_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['typer'] = None; from tocsin.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert done.stderr == "tocsin: the command line needs typer: pip install 'tocsin[cli]'\n"


def test_an_interrupted_command_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("id,expression\na,x > 1\n")
    os.mkfifo(tmp_path / "events.csv")
    command = [*PROGRAM, "match", "events.csv", "rules.csv"]
    with (
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        (tmp_path / "events.csv").open("wb"),  # opens when the command reads: it is now waiting for events
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("id,expression\n" + "".join(f"{n},x >= 0\n" for n in range(200)))
    (tmp_path / "events.csv").write_text("x\n" + "1\n" * 2_000)
    command = [*PROGRAM, "match", "events.csv", "rules.csv", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"event": 0, "subscription": "0"}\n'
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(timeout=600) == 1
