"""What every run of the tests says first."""

from __future__ import annotations

from tests.oracle.test_duckdb import EXPRESSIONS, ROWS, SEED, SPACES


def pytest_report_header() -> str:
    cases = 4 * SPACES * EXPRESSIONS
    return f"oracle: seed {SEED} (TOCSIN_SEED), {cases:,} expressions over {ROWS} events each"
