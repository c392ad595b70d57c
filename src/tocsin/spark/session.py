"""A Spark session on this machine, with errors that say what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.errors import SparkError

OLDEST_JAVA = 17
_FIX = (
    "install a JDK of 17 or newer (Debian, Ubuntu: apt install openjdk-17-jdk-headless; macOS: brew install openjdk@17;"
    " elsewhere: https://adoptium.net/) or set JAVA_HOME to one"
)


def local_session(cores: int | str = "*", memory: str | None = None, **settings: str) -> SparkSession:
    """Return a session in this process, or the one that is running; workers use the running interpreter.

    ``settings`` are Spark's, by their names or with ``_`` for ``.``: ``local_session(spark_sql_ansi_enabled="true")``.
    """
    check_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
        # A driver that dies while it logs its very first batch leaves half a file, which is no reason to refuse:
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    }
    if memory is not None:
        chosen["spark.driver.memory"] = memory
    chosen |= {name if "." in name else name.replace("_", "."): value for name, value in settings.items()}
    builder = SparkSession.builder.master(f"local[{cores}]").appName("tocsin")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # what fails here fails in Java, and Py4J raises many kinds
        raise SparkError(explained(str(error))) from error
    return session


def check_java() -> None:
    """Raise SparkError unless there is a Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    if shutil.which(program) is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise SparkError(f"Spark needs Java: {where}; {_FIX}")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = java_version(said.stderr + said.stdout)
    if version is None or version < OLDEST_JAVA:
        shown = f"is version {version}" if version else f"does not work: {said.stderr.strip()[:200]}"
        raise SparkError(f"Spark needs Java {OLDEST_JAVA} or newer, but {program} {shown}; {_FIX}")


def java_version(text: str) -> int | None:
    """Return the major version that ``java -version`` tells.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_392"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def is_failure(error: Exception) -> bool:
    """Return whether Spark has failed: with an error that PySpark names, or with one that Py4J brings from Java.

    >>> is_failure(PySparkException("no such path")), is_failure(ValueError())
    (True, False)
    """
    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


def reason_of_failure(error: Exception) -> str:
    """Return the line of an error of Spark that says what is wrong.

    >>> reason_of_failure(ValueError("An error occurred while calling o7.start.\\n: java.io.IOException: no space"))
    'java.io.IOException: no space'
    """
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    return (told or ["no reason was given"])[0]


def explained(message: str) -> str:
    """Return what to do about a session that did not start.

    >>> explained("java.net.BindException: Address already in use: Service 'SparkUI' failed")[:44]
    'Spark could not take a port: Address already'
    """
    first = next((line.strip() for line in message.splitlines() if line.strip()), "no reason was given")
    taken = re.search(r"Address already in use[^\n]*", message)
    if taken:
        return (
            f"Spark could not take a port: {taken[0]}; stop the other session, or let Spark choose with "
            "spark.driver.port=0 and spark.ui.enabled=false"
        )
    return f"Spark did not start: {first}"
