"""Operators that packages offer as entry points; one that is broken takes nothing from the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tocsin import Matcher, Number, Space, TocsinError

OFFERS = """[tocsin.operators]
positive = offers_good:positive
missing = offers_nowhere:f
broken = offers_broken:f
leaving = offers_leaving:f
absent = offers_good:absent
nothing = offers_good:nothing
alias = offers_good:positive
"""

GOOD = """
import tocsin

@tocsin.operator(reads=["x"], version="3")
def positive(x):
    return x > 0

nothing = 3
"""

SCRIPT = """
import pyarrow as pa
import tocsin
names = ["positive", "missing", "broken", "leaving", "absent", "nothing", "alias", "conjured"]
matcher = tocsin.Matcher(tocsin.Space({"x": tocsin.Number()}))
problems = []
table = pa.table({"id": names + ["plain"], "expression": [f"{name}()" for name in names] + ["x > 1"]})
matcher.subscribe_many(table, problems=problems)
for problem in problems:
    print(problem.id, "|", str(problem.error).splitlines()[0])
print(matcher.match({"x": 2}))
matcher.save(PATH)
print(tocsin.Matcher.load(PATH).match({"x": 2}))
"""


def test_what_is_broken_is_refused_with_its_reason_and_the_rest_works(tmp_path: Path) -> None:
    described = tmp_path / "offers-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: offers\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(OFFERS)
    (tmp_path / "offers_good.py").write_text(GOOD)
    (tmp_path / "offers_broken.py").write_text("raise RuntimeError('broken on import')\n")
    (tmp_path / "offers_leaving.py").write_text("raise SystemExit(3)\n")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + SCRIPT.replace(
        "PATH", repr(str(tmp_path / "saved"))
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    *problems, found, loaded = run.stdout.splitlines()
    told = dict(line.split(" | ") for line in problems)
    assert {name: text.partition(" (line")[0] for name, text in told.items() if name != "conjured"} == {
        "missing": "the operator missing is offered by offers_nowhere:f, which fails: "
        "ModuleNotFoundError: No module named 'offers_nowhere'",
        "broken": "the operator broken is offered by offers_broken:f, which fails: RuntimeError: broken on import",
        "leaving": "the operator leaving is offered by offers_leaving:f, which fails: SystemExit: 3",
        "absent": "the operator absent is offered by offers_good:absent, which fails: "
        "AttributeError: module 'offers_good' has no attribute 'absent'",
        "nothing": "the operator nothing is offered by offers_good:nothing, which is no operator: 3",
        "alias": "the operator alias is offered by offers_good:positive, whose name is positive; call it so",
    }
    assert told["conjured"].startswith("there is no operator conjured")
    assert found == loaded == "['positive', 'plain']"


def test_an_operator_whose_library_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [name for name in sys.modules if name.partition(".")[0] == "shapely"]
    for module in (*held, "tocsin.operators.geometry", "tocsin.operators.shapes"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "shapely", None)
    matcher = Matcher(Space({"x": Number()}))
    with pytest.raises(TocsinError, match=r"within needs shapely; install it with: pip install 'tocsin\[geo\]'"):
        matcher.subscribe("a", "within(x, x, 'POINT (1 1)')")
