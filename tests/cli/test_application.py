"""The frame of the command line, run as a process: exit codes, streams, messages."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

PROGRAM = [sys.executable, "-c", "from tocsin.cli import main; main()"]


def run(*arguments: str, program: list[str] = PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=120)


def test_version_is_printed() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tocsin {version('tocsin')}\n", "")


def test_without_arguments_help_is_shown() -> None:
    assert "Usage: tocsin" in run().stdout + run().stderr
    assert run("--help").returncode == 0


def test_a_wrong_command_is_a_usage_error_that_names_the_right_one() -> None:
    done = run("mach")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "No such command 'mach'. Did you mean 'match'?" in done.stderr


def test_a_missing_extra_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['typer'] = None; from tocsin.cli import main; main()"
    done = run("--help", program=[sys.executable, "-c", hidden])
    assert done.returncode == 2
    assert done.stderr == "tocsin: the command line needs typer: pip install 'tocsin[cli]'\n"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    script = (
        "import sys, os\n"
        "reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1)\n"
        "from tocsin.cli import main; sys.argv = ['tocsin', '--help']; main()\n"
    )
    done = run(program=[sys.executable, "-c", script])
    assert done.stderr == ""
