"""Writes `entries.h`, which `dispatcher.c` includes: what it must know of the kernels that it is linked with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol

KINDS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
"""The types of arrays' items, in the order of `array_kinds` in `dispatcher.c`."""

OP_ARRAY, OP_INT, OP_FLOAT, OP_BOOL, OP_TUPLE, OP_NONE = range(1, 7)
LAYOUTS = {"A": 0, "C": 1, "F": 2}

MOST = {"SLOTS": 1024, "ARRAYS": 192, "RESULT": 2048, "DIMENSIONS": 4}
"""What the dispatcher has room for: 64-bit words and arrays of the arguments, bytes of the result, axes of an array."""

C_TYPES = {"ptr": "void *", "i64": "int64_t", "i32": "int32_t", "i8": "int8_t", "i1": "_Bool", "double": "double"}


class Named(Protocol):
    """A line of `signatures.txt`."""

    @property
    def kernel(self) -> str:
        """The name of the kernel in this room."""

    @property
    def types(self) -> str:
        """The types of the arguments."""

    @property
    def symbol(self) -> str:
        """The name of the machine code."""


def header(identity: str, lines: Sequence[Named], entries: list[dict[str, Any]]) -> str:
    """Return `entries.h`: a trampoline and two programs for each entry, the table of entries, and that of kernels."""
    classes: list[str] = []
    text = [f"enum {{ MOST_{name} = {most} }};" for name, most in MOST.items()]
    table = []
    for number, (line, entry) in enumerate(zip(lines, entries, strict=True)):
        classes += [name for name in entry["classes"] if name not in classes]
        parameters = [C_TYPES[each] for each in entry["parameters"]]
        _check(line, entry)
        given = ", ".join(["result", "raised", *(_slot(at, kind) for at, kind in enumerate(parameters))])
        text += [
            f"int {line.symbol}({', '.join(['void *', 'void **', *parameters])});",
            f"static int call_{number}(const uint64_t *slots, void *result, void **raised) {{",
            f"    return {line.symbol}({given});\n}}",
        ]
        place = [classes.index(name) for name in entry["classes"]]
        for part in ("arguments", "result"):
            program = ", ".join(map(str, [*_renumbered(entry[part], place, part), 0]))
            text.append(f"static const int16_t {part}_{number}[] = {{{program}}};")
        table.append(
            f'    {{"{line.types}", call_{number}, arguments_{number}, result_{number}, '
            f"{entry['argument_count']}, {entry['result_bytes']}, {int(entry['releases_lock'])}}},"
        )
    text += ["static const Entry all_entries[] = {", *table, "};", *_kernels(lines)]
    quoted = ", ".join(f'"{name}"' for name in classes)
    text.append(f"enum {{ CLASS_COUNT = {len(classes)} }};")
    text.append(f"static const char *const class_names[] = {{{', '.join(filter(None, [quoted, 'NULL']))}}};")
    text.append(f'static const char identity[] = "{identity}";')
    return "\n".join(text) + "\n"


def _kernels(lines: Sequence[Named]) -> list[str]:
    """Return the table of kernels, in the order of their names, each with its entries."""
    rows, first = [], 0
    for kernel, ours in groupby(lines, key=lambda line: line.kernel):
        count = len(list(ours))
        rows.append(f'    {{"{kernel}", "{kernel.rpartition(".")[2]}", {first}, {count}}},')
        first += count
    return ["static const Kernel all_kernels[] = {", *rows, "};", f"enum {{ KERNEL_COUNT = {len(rows)} }};"]


def _check(line: Named, entry: dict[str, Any]) -> None:
    """Raise ValueError if an entry needs more room than the dispatcher has."""
    needed = {
        "SLOTS": len(entry["parameters"]),
        "ARRAYS": line.types.count("["),
        "RESULT": entry["result_bytes"],
        "DIMENSIONS": 1 + max((part.partition("]")[0].count(",") for part in line.types.split("[")), default=0),
    }
    for name, most in MOST.items():
        if needed[name] > most:
            raise ValueError(f"{line.kernel}: {needed[name]} {name.lower()} are more than {most}")


def _slot(place: int, kind: str) -> str:
    if kind == "double":
        return f"((Slot){{.word = slots[{place}]}}).real"
    return f"({kind})(uintptr_t)slots[{place}]" if kind == "void *" else f"({kind})slots[{place}]"


LENGTHS = {
    "arguments": {OP_ARRAY: 5, OP_INT: 2, OP_FLOAT: 2, OP_BOOL: 1, OP_TUPLE: 3, OP_NONE: 1},
    "result": {OP_ARRAY: 4, OP_INT: 3, OP_FLOAT: 3, OP_BOOL: 2, OP_TUPLE: 3, OP_NONE: 2},
}
"""How many numbers each operation takes, itself included."""


def _renumbered(program: list[int], place: list[int], part: str) -> list[int]:
    """Return a program with its classes numbered as those of all entries."""
    found, at = list(program), 0
    while at < len(found):
        if found[at] == OP_TUPLE and found[at + 2] >= 0:
            found[at + 2] = place[found[at + 2]]
        at += LENGTHS[part][found[at]]
    return found
