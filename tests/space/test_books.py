"""Books keep the order of their keys whatever arrives, and a full book is spread anew without changing an answer."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin.space import books
from tocsin.space.books import Book, BookFullError

keys = st.binary(max_size=12)
long_keys = st.binary(min_size=6, max_size=10).map(lambda tail: b"same-head" + tail)


def expected_sign(value: bytes, key: bytes) -> int:
    return (value > key) - (value < key)


def check(book: Book, placed: list[bytes], values: list[bytes]) -> None:
    """Every value compares with every key as its code does with the key's label, one by one and in bulk."""
    ordered = sorted(set(placed))
    labels = np.asarray(book.place(ordered), np.int64)
    assert np.all(np.diff(labels) >= 2), "labels leave room for what lies between"
    assert len(book) == len(ordered)
    sought = [*values, *ordered]
    codes = book.find(pa.array(sought, pa.large_binary()))
    assert codes.tolist() == [book.find_one(value) for value in sought]
    for value, code in zip(sought, codes.tolist(), strict=True):
        at = bisect_left(ordered, value)
        assert all(code > label for label in labels[:at])
        assert all(code < label for label in labels[at + (at < len(ordered) and ordered[at] == value) :])
        if value in placed:
            assert code == labels[at]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("one"), st.lists(keys, min_size=1, max_size=3)),
        st.tuples(st.just("many"), st.lists(st.one_of(keys, long_keys), min_size=9, max_size=30)),
        st.tuples(st.just("find"), st.lists(keys, min_size=1, max_size=5)),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_order_holds_when_placing_and_finding_interleave(steps: list[tuple[str, list[bytes]]]) -> None:
    book = Book()
    placed: list[bytes] = []
    sought: list[bytes] = [b"", b"\xff" * 9]
    for kind, some in steps:
        if kind == "find":
            sought += some
            book.find(pa.array(some, pa.large_binary()))
            continue
        before = {key: book.find_one(key) for key in placed}
        labels = book.place(some if kind == "one" else pa.array(some, pa.large_binary()))
        assert [book.find_one(key) for key in some] == list(labels)
        assert {key: book.find_one(key) for key in placed} == before, "labels once given stay"
        placed += some
    check(book, placed, sought)


def run(count: int, kind: str) -> list[bytes]:
    """Return keys in the order of their arrival."""
    inwards = [each for pair in zip(range(count // 2), range(count, count // 2, -1), strict=True) for each in pair]
    order = {"ascending": range(count), "descending": range(count, 0, -1), "inwards": inwards}[kind]
    return [f"{number:09d}".encode() for number in order]


@pytest.mark.parametrize("kind", ["ascending", "descending"])
@pytest.mark.parametrize("size", [1, 100])
def test_runs_in_order_find_room(kind: str, size: int) -> None:
    book = Book()
    arriving = run(5000, kind)
    for start in range(0, len(arriving), size):
        chunk = arriving[start : start + size]
        book.place(chunk if size == 1 else pa.array(chunk, pa.large_binary()))
    check(book, arriving, [b"", b"000000100x", b"z"])


def test_a_run_towards_the_middle_keeps_its_order_through_relabelling() -> None:
    book = Book()
    spread = 0
    for key in run(1000, "inwards"):
        try:
            book.place([key])
        except BookFullError:
            book = book.relabelled(book.to_arrays()["labels"].astype(np.int64))[0]
            book.place([key])
            spread += 1
    assert spread > 0, "this is the order that fills a book fastest"
    check(book, run(1000, "inwards"), [b"", b"000000500x"])


def test_arrays_bring_a_book_back() -> None:
    book = Book()
    placed = [f"{number * 7919 % 1000:04d}".encode() for number in range(700)]
    book.place(pa.array(placed, pa.large_binary()))
    book.place([b"", b"zz"])
    again = Book.from_arrays(book.to_arrays())
    values = pa.array([b"", b"0500", b"0500x", b"zz", b"zzz"], pa.large_binary())
    assert again.find(values).tolist() == book.find(values).tolist()
    check(again, [*placed, b"", b"zz"], [b"05"])


def test_relabelling_keeps_what_is_used_and_its_order() -> None:
    book = Book()
    labels = np.asarray(book.place(pa.array([f"{number:03d}".encode() for number in range(100)], pa.large_binary())))
    used = np.concatenate([labels[10:20], labels[50:60] + 1, labels[90:] - 1])
    fresh, old, new = book.relabelled(used)
    assert old.tolist() == [*labels[10:20], *labels[50:60], *labels[90:]]
    assert len(fresh) == 30 and np.all(np.diff(new) > 2)
    assert fresh.find_one(b"012") == new[2]


def test_the_key_near_a_code_is_found_from_either_side() -> None:
    book = Book()
    label = int(np.asarray(book.place([b"b"]))[0])
    assert [book.key_near(label + step) for step in (-1, 0, 1)] == [(b"b", -1), (b"b", 0), (b"b", 1)]
    with pytest.raises(KeyError):
        book.key_near(label + 5)


def test_a_book_that_has_no_label_left_says_so_and_stays_as_it_was() -> None:
    book = Book()
    placed: list[bytes] = []
    with pytest.raises(BookFullError):
        for key in run(5000, "inwards"):
            book.place([key])
            placed.append(key)
    assert len(placed) > 25, "there is room for many keys beside each other"
    check(book, placed, [b"", b"000002500x"])


TEXTS = ["a" + "\0" * number + "\1" for number in range(120)]


@pytest.mark.parametrize("engine", ["adaptive", "scan"])
def test_a_matcher_survives_full_books(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_FIRST_SPAN", 2**12)
    monkeypatch.setattr(books, "_END_STEP", 2**5)
    matcher = tocsin.Matcher(tocsin.Space({"s": tocsin.Text(), "r": tocsin.Repeated(tocsin.Text())}), engine=engine)
    events = [{"s": text, "r": [text, "zz"]} for text in [*TEXTS[::7], "a", "b", "", "zz"]]
    model: dict[str, tuple[str, str]] = {}
    relabelled = 0
    for number, text in enumerate(TEXTS):
        literal = "'" + text.replace("\0", "\\0").replace("\1", "\\u0001") + "'"
        before = matcher._state.axes
        for operator in ("<", "<>", "="):
            matcher.subscribe(f"{operator}{number}", f"s {operator} {literal}")
            model[f"{operator}{number}"] = operator, text
        matcher.subscribe(f"r{number}", f"r = {literal} AND NOT (r = 'q') AND s LIKE '%'")
        model[f"r{number}"] = "r", text
        relabelled += matcher._state.axes is not before
        if number % 10 == 3:
            matcher.unsubscribe(f"<{number}")
            del model[f"<{number}"]
    assert relabelled > 3, "the books did fill up"
    compare = {"<": str.__lt__, "<>": str.__ne__, "=": str.__eq__, "r": str.__eq__}
    for event in events:
        expected = {id for id, (operator, text) in model.items() if compare[operator](str(event["s"]), text)}
        assert set(matcher.match(event)) == expected
    batch = pa.Table.from_pylist(events)
    pairs = matcher.match_batch(batch)
    assert len(pairs) == sum(len(matcher.match(event)) for event in events)


def test_a_full_book_in_the_middle_of_a_bulk_load_leaves_all_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_FIRST_SPAN", 2**15)
    monkeypatch.setattr(books, "_END_STEP", 8)
    matcher = tocsin.Matcher(tocsin.Space({"s": tocsin.Text()}), engine="scan")
    for start in range(0, 2000, 100):
        words = [f"{number * 7919 % 2000:04d}" for number in range(start, start + 100)]
        table = pa.table({"id": words, "expression": [f"s = '{word}'" for word in words]})
        assert matcher.subscribe_many(table) == 100
        assert matcher.match({"s": words[0]}) == [words[0]]
    assert len(matcher) == 2000
    assert matcher.match({"s": "1234x"}) == []
