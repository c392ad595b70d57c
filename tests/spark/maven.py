"""Artefacts that Maven fetches: a broker of Kafka, the connectors of Kafka and Delta. They stay in its own cache."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>tocsin</groupId><artifactId>tests</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies>
</project>"""

_DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
<exclusions>{exclusions}</exclusions></dependency>"""

_NOTHING_ELSE = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"


class Artefact(NamedTuple):
    """Coordinates. With ``alone`` its own dependencies are left out: Spark has them, or they are listed."""

    group: str
    name: str
    version: str
    alone: bool = True


class CannotFetchError(Exception):
    """Maven is there, but it does not find an artefact."""


def fetched(folder: Path, *artefacts: Artefact) -> list[str]:
    """Return the files of artefacts."""
    folder.mkdir(parents=True, exist_ok=True)
    dependencies = "".join(
        _DEPENDENCY.format(**each._asdict(), exclusions=_NOTHING_ELSE if each.alone else "") for each in artefacts
    )
    (folder / "pom.xml").write_text(_POM.format(dependencies=dependencies))
    command = ["mvn", "-q", "-B", "dependency:build-classpath", "-DincludeScope=runtime", "-Dmdep.outputFile=files"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    if done.returncode:
        names = ", ".join(":".join(each[:3]) for each in artefacts)
        raise CannotFetchError(f"Maven does not get {names}\n{done.stdout[-2000:]}")
    return (folder / "files").read_text().strip().split(":")


def first_fetched(folder: Path, *choices: list[Artefact]) -> list[str]:
    """Return the files of the first of several choices that can be fetched."""
    errors = []
    for number, choice in enumerate(choices):
        try:
            return fetched(folder / str(number), *choice)
        except CannotFetchError as error:
            errors.append(str(error))
    raise CannotFetchError("\n".join(errors))
