"""What a process imports, and compiles, before its first match."""

from __future__ import annotations

import subprocess
import sys

from tocsin.bench.starting import SCRIPT

HEAVY = {
    "pandas",
    "pyspark",
    "asyncio",
    "multiprocessing",
    "duckdb",
    "matplotlib",
    "shapely",
    "pint",
    "rdflib",
}
"""What no process needs that subscribes to plain expressions and matches."""

FIRST_MATCH = """
import sys
import tocsin

given = {
    "price": tocsin.Number(),
    "count": tocsin.Number("int64"),
    "paid": tocsin.Number("decimal(10, 2)"),
    "city": tocsin.Text(),
    "seen": tocsin.Time(),
    "open": tocsin.Boolean(),
    "target": tocsin.Concept({"computer": ["laptop"]}),
}
matcher = tocsin.Matcher(tocsin.Space(given))
matcher.subscribe("a", "price <= 400 AND city = 'NYC'")
matcher.subscribe("b", "city IN ('NYC', 'LA') AND (count > 3 OR open) AND name_is IS NULL".replace("name_is", "paid"))
matcher.subscribe("c", "city LIKE 'N%' AND NOT seen < TIMESTAMP '2020-01-01 00:00:00' AND is_a(target, 'computer')")
event = {"price": 350.0, "city": "NYC", "open": True, "target": "laptop"}
assert sorted(matcher.match(event)) == ["a", "b"], matcher.match(event)
print(*sys.modules)
"""

PLAIN = {"pyarrow.compute"}
"""What subscribing to numbers and texts and matching them does not need besides."""

COMPILING = """
import sys
import tocsin
import numba.core.dispatcher

print(*[name for name, module in sys.modules.items() if name.startswith("tocsin") for value in vars(module).values()
        if isinstance(value, numba.core.dispatcher.Dispatcher) and value.overloads])
"""


def said_by(script: str) -> set[str]:
    """Return the words that a new process prints."""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    return set(run.stdout.split())


def test_a_first_match_imports_nothing_that_it_does_not_need() -> None:
    """Pandas alone, which `pyarrow.array` imports wherever it is installed, takes a quarter of a second."""
    assert not HEAVY & said_by(FIRST_MATCH)


def test_a_plain_first_match_imports_even_less() -> None:
    """What its kernels do not import is tested with kernels of its own, in `tests/kernels`."""
    assert not (HEAVY | PLAIN) & said_by(SCRIPT + "\nimport sys; print(*sys.modules)")


def test_importing_leaves_the_garbage_collector_as_it_was() -> None:
    """It rests while Tocsin is imported."""
    script = "import gc; {}; import tocsin; print(gc.isenabled(), gc.get_freeze_count())"
    assert said_by(script.format("gc.enable()")) == {"True", "0"}
    assert said_by(script.format("gc.disable()")) == {"False", "0"}
    assert said_by(script.format("gc.freeze()")) > {"True"}


def test_importing_tocsin_compiles_no_kernel_and_loads_none() -> None:
    """Kernels are compiled, or taken from the cache, when they are first called."""
    assert said_by(COMPILING) == set()
    assert not said_by("import sys, tocsin; print(*sys.modules)") & (HEAVY | {"tocsin.subjects", "tocsin.spark"})


def test_living_publications_are_there_when_they_are_asked_for() -> None:
    """Every public name is found, also those that are imported late."""
    script = "import tocsin; print(*[name for name in tocsin.__all__ if not hasattr(tocsin, name)], *tocsin.__all__)"
    assert {"Subjects", "Region", "Transitions"} <= said_by(script)
