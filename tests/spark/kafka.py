"""A real Kafka: one node, started on loopback from its own artefacts, with its own console tools."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.maven import Artefact, fetched

VERSION = "4.1.0"
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs
num.partitions=3
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""


class Kafka:
    """A running broker."""

    def __init__(self, servers: str, classpath: str) -> None:
        self.servers, self._classpath = servers, classpath

    def send(self, topic: str, events: list[dict[str, Any]]) -> None:
        """Write events to a topic as JSON, spread over its partitions."""
        lines = "".join(f"{number}\t{json.dumps(event)}\n" for number, event in enumerate(events))
        keyed = ["--property", "parse.key=true", "--topic", topic]
        self._tool("ConsoleProducer", *keyed, given=lines)

    def received(self, topic: str) -> list[dict[str, Any]]:
        """Return all that a topic holds."""
        said = self._tool("ConsoleConsumer", "--topic", topic, "--from-beginning", "--timeout-ms", "10000")
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]

    def _tool(self, name: str, *options: str, given: str = "") -> str:
        program = f"org.apache.kafka.tools.{'consumer.' if name == 'ConsoleConsumer' else ''}{name}"
        command = ["java", "-cp", self._classpath, program, "--bootstrap-server", self.servers, *options]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def running(folder: Path) -> Iterator[Kafka]:
    """Start a broker, and end it."""
    names = (Artefact("org.apache.kafka", name, VERSION, alone=False) for name in ("kafka_2.13", "kafka-tools"))
    classpath = ":".join(fetched(folder / "maven", *names))
    port, controller = _free_ports()
    settings = folder / "server.properties"
    settings.write_text(_PROPERTIES.format(port=port, controller=controller, folder=folder))
    name = uuid.uuid4().bytes
    cluster = base64.urlsafe_b64encode(bytes([name[0] & 127]) + name[1:]).decode().rstrip("=")  # begins with no dash
    java = ["java", "-Xmx512m", "-cp", classpath]
    subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)], check=True)
    with (folder / "broker.log").open("w") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
    try:
        _wait_for(port, broker, folder / "broker.log")
        yield Kafka(f"127.0.0.1:{port}", classpath)
    finally:
        broker.terminate()
        broker.wait(timeout=600)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait_for(port: int, broker: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert broker.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"the broker does not listen\n{log.read_text()}")
