"""Memory of answers is used again, but never while anyone can read what is in it."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

from tocsin.index.blocks import LEAST, Blocks
from tocsin.language.arrays import number_array

MANY = LEAST // 4


def test_a_block_comes_back_when_the_last_part_of_its_array_is_gone() -> None:
    blocks = Blocks()
    array = blocks.taken(MANY, np.int32)
    part = array[5:].view(np.uint32)[::2]
    del array
    gc.collect()
    assert blocks.kept == 0
    del part
    gc.collect()
    assert blocks.kept == LEAST
    again = blocks.taken(MANY, np.int32)
    assert blocks.kept == 0
    assert len(again) == MANY


def test_arrow_keeps_a_block_as_long_as_anything_made_of_it_is_there() -> None:
    blocks = Blocks()
    array = blocks.taken(MANY, np.int32)
    array[:] = np.arange(MANY)
    held = pa.concat_tables([pa.table({"x": number_array(array)}), pa.table({"x": pa.array([1], pa.int32())})])
    seen = held.slice(10, 20)["x"].chunk(0).to_numpy()
    del array, held
    gc.collect()
    other = blocks.taken(MANY, np.int32)
    other[:] = -1
    assert blocks.kept == 0
    assert seen.tolist() == list(range(10, 30))
    del seen
    gc.collect()
    assert blocks.kept == LEAST


def test_no_more_is_kept_than_was_said() -> None:
    blocks = Blocks(most=3 * LEAST)
    arrays = [blocks.taken(MANY, np.int32) for _ in range(8)]
    arrays.clear()
    gc.collect()
    assert blocks.kept == 3 * LEAST
    assert Blocks(most=0).taken(MANY, np.int64).shape == (MANY,)


def test_small_arrays_and_blocks_far_too_large_are_not_shared() -> None:
    blocks = Blocks()
    large = blocks.taken(8 * MANY, np.int32)
    del large
    gc.collect()
    small, middle = blocks.taken(10, np.int64), blocks.taken(MANY, np.int32)
    assert (len(small), len(middle), blocks.kept) == (10, MANY, 8 * LEAST)


@pytest.mark.parametrize("seed", range(5))
def test_arrays_that_are_held_keep_what_was_written(seed: int) -> None:
    random, blocks = np.random.default_rng(seed), Blocks(most=8 * LEAST)
    held: dict[int, np.ndarray] = {}
    for step in range(200):
        array = blocks.taken(int(random.integers(MANY // 2, 4 * MANY)), np.int32)
        array[::1000] = step
        held[step] = array[: int(random.integers(1, len(array)))]
        del array
        for gone in [step for step in held if random.random() < 0.3]:
            del held[gone]
        assert all((part[::1000] == said).all() for said, part in held.items())
        assert blocks.kept <= 8 * LEAST
