"""Labels spread anew change no answer: keys that arrive in an awkward order fill books, and NULL and ends stay."""

from __future__ import annotations

import threading

import pytest

import tocsin
from tocsin.space import books


def orders(count: int) -> dict[str, list[str]]:
    up, down = [f"a{number:06d}" for number in range(count)], [f"b{number:06d}" for number in range(count, 0, -1)]
    return {
        "two series": [key for pair in zip(up, [f"b{key[1:]}" for key in up], strict=True) for key in pair],
        "towards the middle": [key for pair in zip(up, down, strict=True) for key in pair],
    }


@pytest.mark.parametrize("order", ["two series", "towards the middle"])
def test_awkward_orders_of_keys_change_no_answer(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_END_STEP", 2**12)
    monkeypatch.setattr(books, "_FIRST_SPAN", 2**16)
    relabelled: list[int] = []
    tidied = tocsin.Matcher._make_room
    monkeypatch.setattr(tocsin.Matcher, "_make_room", lambda self: (relabelled.append(len(self)), tidied(self))[1])
    matcher = tocsin.Matcher(tocsin.Space({"s": tocsin.Text()}))
    matcher.subscribe("null", "s IS NULL")
    keys = orders(150)[order]
    for key in keys:
        matcher.subscribe(f"> {key}", f"s > '{key}'")
        matcher.subscribe(f"< {key}", f"s < '{key}'")
        matcher.subscribe(f"= {key}", f"s <= '{key}' AND s >= '{key}'")
    assert relabelled, "the books never filled: the test tests nothing"
    for probe in [*keys[::17], *(f"{key}x" for key in keys[::23]), "", "zz", "a", None]:
        expected = ["null"] if probe is None else []
        if probe is not None:
            expected += [f"> {key}" for key in keys if probe > key] + [f"< {key}" for key in keys if probe < key]
            expected += [f"= {key}" for key in keys if probe == key]
        assert sorted(matcher.match({"s": probe})) == sorted(expected), probe


@pytest.mark.parametrize("engine", ["adaptive", "scan", "counting"])
def test_events_read_before_an_axis_was_there_do_not_match_its_boxes(engine: str) -> None:
    fields = {f"c{number}": tocsin.Number("int64") for number in range(60)}
    matcher = tocsin.Matcher(tocsin.Space(fields), engine=engine)
    event = dict.fromkeys(fields, 1)
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            wrong.extend(matcher.match(event))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for name in fields:
        matcher.subscribe(name, f"{name} IS NULL")
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_replacing_does_not_pile_up_texts_programs_and_keys() -> None:
    matcher = tocsin.Matcher(tocsin.Space({"s": tocsin.Text()}))
    for turn in range(300):
        matcher.subscribe("one", f"s LIKE '%{turn}_x%' OR s = 'k{turn}'", duplicates="replace")
    assert matcher["one"] == "s LIKE '%299_x%' OR s = 'k299'"
    assert matcher.match({"s": "k298"}) == []
    assert matcher.match({"s": "k299"}) == ["one"]
    assert len(matcher._subscriptions._texts._single) == 1
    matcher._make_room()
    assert len(matcher._state.programs.atoms) == 1
    assert len(matcher._state.axes.codecs[0].book) <= 2  # type: ignore[attr-defined]
