from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_reference_page_is_what_the_commands_say_of_themselves() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "cli_reference"))["reference"]()
    assert (ROOT / "docs" / "cli.md").read_text() == written, "run scripts/cli_reference"


def test_every_command_describes_itself_and_each_of_its_options() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for section in page.split("\n## ")[1:]:
        options = [line for line in section.splitlines() if line.startswith("  -") and not line.rstrip().endswith(">")]
        assert options
        assert all("  " in line.strip() for line in options), section
