"""Starting Spark: what is said when Java is missing, too old or broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.errors import SparkError
from tocsin.spark.session import check_java, explained


def java(folder: Path, text: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def test_a_missing_java_is_told_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=r"has no bin/java; install a JDK of 17 or newer"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkError, match=r"there is no java on the PATH; install a JDK"):
        check_java()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is version 11"),
        ("echo 'java version \"1.8.0_392\"' >&2", "is version 8"),
        ("echo broken >&2; exit 1", "does not work: broken"),
    ],
)
def test_an_old_or_broken_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str) -> None:
    java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=f"Spark needs Java 17 or newer, but .* {told}"):
        check_java()


def test_a_new_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path, "echo 'openjdk version \"21.0.1\" 2024-01-01' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


def test_a_taken_port_is_told_with_the_fix() -> None:
    message = "java.net.BindException: Address already in use: Service 'sparkDriver' failed after 16 retries"
    assert explained(message).startswith("Spark could not take a port: Address already in use: Service 'sparkDriver'")
    assert "spark.driver.port=0" in explained(message)
    assert explained("Gateway exited") == "Spark did not start: Gateway exited"
