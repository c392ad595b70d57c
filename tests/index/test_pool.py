"""Pools, number maps, locks and event samples: the small parts under the clustered engines."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tocsin.errors import BoxNumberError
from tocsin.index import NULL, Queries
from tocsin.index.clusters.pool import BlockPool
from tocsin.index.clusters.sample import SIZE, EventSample
from tocsin.index.locks import ReadWriteLock
from tocsin.index.numbers import NumberPlaces
from tocsin.kernels.pool import CAPACITY, FILLED, FIRST, LINES


def append(pool: BlockPool, block: int, value: int) -> None:
    pool.blocks.adding[block] += 1
    pool.announce(np.array([block], np.int32))
    first, capacity, filled, lines = pool.blocks.shape[block]
    for line in range(lines):
        pool.pool[first + line * capacity + filled] = value + line
    pool.blocks.shape[block, FILLED] += 1


def test_blocks_grow_side_by_side_and_keep_their_content() -> None:
    pool = BlockPool()
    pool.extend(5)
    pool.blocks.shape[:, LINES] = 1, 2, 3, 1, 4
    random = np.random.default_rng(0)
    true: list[list[int]] = [[] for _ in range(5)]
    for value in range(800):
        block = int(random.integers(5))
        append(pool, block, 10 * value)
        true[block].append(10 * value)
    pool.tidy()
    for block in range(5):
        first, capacity, filled, lines = pool.blocks.shape[block]
        for line in range(lines):
            begin = first + line * capacity
            assert pool.pool[begin : begin + filled].tolist() == [value + line for value in true[block]]
    assert len(pool.pool) <= 1.5 * (pool.blocks.shape[:, CAPACITY] * pool.blocks.shape[:, LINES]).sum()
    assert pool.blocks.used[0] <= len(pool.pool) and pool.blocks.shape[:, FIRST].max() < len(pool.pool)


def test_a_first_filling_takes_exactly_its_room() -> None:
    pool = BlockPool()
    pool.extend(2)
    pool.blocks.shape[:, LINES] = 1, 3
    pool.blocks.adding[:] = 7, 5
    pool.announce(np.array([0, 1, 1, 0], np.int32))
    assert len(pool.pool) == 7 + 15 and not pool.blocks.adding.any()


def test_scattered_numbers_are_held_and_listed() -> None:
    places = NumberPlaces()
    numbers = np.array([2**31 - 1, 0, 4095, 4096, 123_456_789], np.int32)
    places.claim(numbers)
    for number in numbers:
        directory, where, _ = places.arrays
        where[(int(directory[number >> 12]) << 12) + (number & 4095)] = 1
    assert places.held(5).tolist() == sorted(numbers.tolist())
    places.check_held(numbers)
    with pytest.raises(BoxNumberError, match="no box number 7"):
        places.check_held(np.array([0, 7], np.int32))
    places.check_held(numbers)


def test_a_refused_claim_claims_nothing() -> None:
    places = NumberPlaces()
    for refused in ([4, 9, 4], [-1]):
        with pytest.raises(BoxNumberError):
            places.claim(np.array(refused, np.int32))
    places.claim(np.array([4, 9], np.int32))


def test_a_writer_waits_for_readers_and_new_readers_wait_for_it() -> None:
    lock, order = ReadWriteLock(), []
    reading, release = threading.Event(), threading.Event()

    def read_first() -> None:
        with lock.reading():
            reading.set()
            release.wait()
            order.append("reader")

    def write() -> None:
        with lock.writing():
            order.append("writer")

    def read_later() -> None:
        with lock.reading():
            order.append("later")

    threads = [threading.Thread(target=target) for target in (read_first, write, read_later)]
    threads[0].start()
    reading.wait()
    threads[1].start()
    while not lock._waiting:
        time.sleep(0.001)
    threads[2].start()
    release.set()
    for thread in threads:
        thread.join()
    assert order == ["reader", "writer", "later"]


def test_a_sample_remembers_the_latest_events() -> None:
    sample = EventSample()
    for value in range(400):
        sample.note(Queries.points(np.full((2, 640), value)))
    assert sample.codes.shape == (2, SIZE)
    assert sample.codes.min() > 250


def test_a_sample_knows_which_axes_events_carry() -> None:
    sample = EventSample()
    assert sample.presence(2).tolist() == [1.0, 1.0]
    sample.note(Queries.points(np.array([[1, 1, 1, 1]])))
    sample.note(Queries.points(np.array([[NULL] * 4, [5, 5, 5, NULL]])))
    assert sample.presence(3).tolist() == [0.5, 0.375, 0.0]
