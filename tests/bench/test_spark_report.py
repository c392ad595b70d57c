"""A run of the Spark benchmark becomes targets, a page and a picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tocsin.bench.machine import describe
from tocsin.bench.spark import SparkFigures
from tocsin.bench.spark_cost import Cost, processor_seconds
from tocsin.bench.spark_joins import BY_HAND, COMMON, COUNTING, NESTED, Join
from tocsin.bench.spark_report import draw_spark, mark, page, targets
from tocsin.bench.spark_sizes import Size
from tocsin.bench.spark_workers import Workers

SMALL = Size(
    1_000_000,
    7.5,
    131_000_000,
    200_000,
    10.0,
    40_000,
    (
        Join(COMMON, 1_000_000, 60_000, 9.0, 10_000.0, 200.0, 1),
        Join(BY_HAND, 1_000_000, 60_000, 2.0, 33_000.0, 60.0, 1),
    ),
    ((NESTED, "within 180 s: interrupted"), (COUNTING, "within 180 s: interrupted")),
)
LARGE = Size(
    5_000_000, 30.0, 650_000_000, 180_000, 11.0, 200_000, (Join(COMMON, 5_000_000, 9_000, 9.0, 1_700.0, 1_200.0, 1),)
)


def figures(*sizes: Size) -> SparkFigures:
    workers = Workers(2, 14.0, 12.0, 131_000_000, 12_000_000, 82_000_000, 160_000_000)
    return SparkFigures("W0", 2_000_000, 2, 300_000.0, 7.0, 0.667, 0.2, workers, sizes, 840.0)


def test_the_best_plain_join_counts_at_the_largest_size_that_it_finishes() -> None:
    assert [mark(one) for one in targets(figures(SMALL, LARGE))] == ["yes", "yes", "yes", "yes"]
    met = targets(figures(SMALL, LARGE))[1]
    assert met.measured.startswith("106x by the clock, 109x by processors' time at 5,000,000: hash join on the columns")
    assert [mark(one) for one in targets(figures(SMALL))] == ["yes", "no", "yes", "yes"]
    assert mark(targets(figures(SMALL._replace(joins=())))[1]) == "unknown"


def test_a_page_has_the_targets_all_sizes_and_what_did_not_finish() -> None:
    found = figures(SMALL, LARGE)
    text = page(describe("tocsin bench spark", 4089), found, targets(found), "pictures/spark.png")
    assert "| 0.667 (200,000 of 300,000.0 events/s) | yes |" in text
    assert f"| {COMMON} | 1,700.0 | 1,200.0 | 9,000 | 0.327 | 105.9x | 109.1x |" in text
    assert f"| {NESTED} | not finished within 180 s: interrupted |  |  |  |  |  |" in text
    assert "is 9.1 times as fast" in text and "](pictures/spark.png)" in text


def test_the_picture_is_drawn_with_joins_and_without(tmp_path: Path) -> None:
    for number, found in enumerate((figures(SMALL, LARGE), figures(SMALL._replace(joins=())))):
        draw_spark(tmp_path / f"{number}.png", found)
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


def test_what_a_process_used_is_counted_when_it_has_ended() -> None:
    before = processor_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    seen = processor_seconds()
    assert seen - before >= 0.15
    child.communicate("\n")
    assert processor_seconds() >= seen


def test_a_fixed_cost_leaves_at_least_a_tenth() -> None:
    assert Cost(10.0, 8.0).without(Cost(4.0, 9.0)) == Cost(6.0, 0.8)
