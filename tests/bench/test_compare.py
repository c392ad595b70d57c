"""Two revisions compared: the rule by itself, and the command on a clone."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.bench.compare import interval, judged

ROOT = Path(__file__).parent.parent.parent


def git(*arguments: str, at: Path) -> str:
    return subprocess.run(["git", *arguments], cwd=at, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("factor", "verdict"), [(0.8, "gain"), (1.25, "regression"), (1.0, "noise"), (1.01, "noise")])
def test_the_verdict_follows_the_times(factor: float, verdict: str) -> None:
    noise = random.Random(3)
    launches = [[(noise.gauss(1, 0.02), factor * noise.gauss(1, 0.02)) for _ in range(12)] for _ in range(2)]
    found = judged("W0", launches, 100)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(1 / factor, rel=0.05)


def test_processes_that_disagree_are_noise() -> None:
    assert judged("W0", [[(1.0, 0.5)] * 20, [(1.0, 1.02)] * 6], 100).verdict == "noise"


def test_few_rounds_prove_nothing() -> None:
    assert judged("W0", [[(2.0, 1.0)] * 5], 100).verdict == "noise"
    assert interval([1.0] * 7) == (-math.inf, math.inf)
    assert interval([float(i) for i in range(8)]) == (0.0, 7.0)


def test_equal_revisions_are_seldom_told_apart() -> None:
    """Of 300 comparisons of a thing with itself, under 99 % confidence hardly any may be called a difference."""
    noise = random.Random(5)
    verdicts = [
        judged("W0", [[(noise.gauss(1, 0.1), noise.gauss(1, 0.1)) for _ in range(12)] for _ in range(2)], 1).verdict
        for _ in range(300)
    ]
    assert verdicts.count("noise") >= 290


def test_head_is_compared_with_itself_in_a_clone_that_is_left_clean(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git("clone", "--quiet", str(ROOT), str(clone), at=tmp_path)
    command = [sys.executable, "-c", "from tocsin.cli import main; main()", "bench", "compare", "HEAD", "HEAD"]
    done = subprocess.run(
        [
            *command,
            "--workloads",
            "W1",
            "--size",
            "20",
            "--rounds",
            "2",
            "--launches",
            "1",
            "--engine",
            "scan",
            "--json",
        ],
        cwd=clone,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},  # a fresh clone would compile its kernels twice
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (found,) = map(json.loads, done.stdout.splitlines())
    assert found["workload"] == "W1" and found["verdict"] == "noise" and found["rounds"] == 2
    assert len(git("worktree", "list", at=clone).splitlines()) == 1
    assert git("status", "--porcelain", at=clone) == ""


def test_an_unknown_revision_is_refused_with_what_git_says(tmp_path: Path) -> None:
    git("clone", "--quiet", str(ROOT), str(tmp_path / "clone"), at=tmp_path)
    command = [sys.executable, "-c", "from tocsin.cli import main; main()", "bench", "compare", "HEAD", "no-such-thing"]
    done = subprocess.run(command, cwd=tmp_path / "clone", capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode != 0
    assert "no-such-thing" in done.stderr and "Traceback" not in done.stderr
    assert len(git("worktree", "list", at=tmp_path / "clone").splitlines()) == 1
