"""The command line with odd files and arguments, in this process."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import tocsin
from tests.fuzz import inputs

SPACE = tocsin.Space({"price": tocsin.Number(), "whole": tocsin.Number("int64"), "city": tocsin.Text()})


def files(pick: random.Random, folder: Path) -> None:
    """Write subscriptions, events and a space, one of them damaged now and then."""
    subscriptions = [
        {"id": pick.choice([number, f"s{number}"]) if pick.random() < 0.1 else number, "expression": text(pick)}
        for number in range(pick.randint(0, 3))
    ]
    events = [_plain(inputs.event(pick, cycles=False)) for _ in range(pick.randint(0, 3))]
    for name, rows in (("subscriptions.jsonl", subscriptions), ("events.jsonl", events)):
        written = "\n".join(json.dumps(row) for row in rows) + "\n"
        (folder / name).write_bytes(_damaged(pick, written.encode()))
    (folder / "space.json").write_bytes(_damaged(pick, json.dumps(SPACE.to_json()).encode()))


def arguments(pick: random.Random) -> list[str]:
    """Return the arguments of a command, with a wrong one now and then."""
    space = pick.choice([[], ["--space", "space.json"], ["--space", "missing.json"]])
    files = ["subscriptions.jsonl", "events.jsonl"]
    command = pick.choice(
        [
            ["match", *files, *space, *pick.choice([[], ["--skip-bad"], ["--format", "jsonl"], ["--engine", "x"]])],
            ["check", "subscriptions.jsonl", *space],
            ["explain", "--events", "events.jsonl", "--where", text(pick), *space],
            ["covering", "subscriptions.jsonl", *space],
            ["space", "events.jsonl"],
            ["match", "--unknown", "error", *files],
        ]
    )
    if pick.random() < 0.1:
        command.insert(pick.randrange(len(command) + 1), pick.choice(["--wrong", "", "-", "\x01", "missing.csv", "--"]))
    return command


def text(pick: random.Random) -> str:
    """Return an expression that a file can hold."""
    return inputs.expression(pick).encode(errors="replace").decode()


def _plain(value: Any) -> Any:
    """Return a value of an event as JSON can have it."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or type(value) in (bool, float) else str(value)[:500]


def _damaged(pick: random.Random, content: bytes) -> bytes:
    if pick.random() < 0.8:
        return content
    at = pick.randrange(len(content) + 1)
    return content[:at] + pick.choice([b"", b"\x00", b"\xff\xfe", b"[" * 600, b'"', b"{}"]) + content[at + 1 :]
